"""The protocols of a store engine, which is independent of the schema.

A `Reader` answers queries and can change nothing. A `Store` belongs to the one process that writes: `write` runs a
function inside one transaction, in a thread of its own, and either all of it is committed or nothing. Both are `async`:
the embedded engine answers without suspending, while a client/server engine may wait.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from icefall.errors import Unavailable

T = TypeVar("T")

Row = tuple[Any, ...]
StatementParams = Mapping[str, Any] | Sequence[Any]


class Transaction(Protocol):
    """One open transaction of the writer. Its methods are not async: nothing is awaited while it is open."""

    def rows(self, statement: str, params: StatementParams = ()) -> list[Row]: ...

    def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        """The rows of a query for each of many keys, in any order: the query selects its key too.

        One round trip to a server: there the statement takes each column of the keys as an array.
        """
        ...

    def run(self, statement: str, params: StatementParams = ()) -> int:
        """Execute a statement; the number of rows it changed."""
        ...

    def run_many(self, statement: str, params: Sequence[StatementParams]) -> None:
        """Execute a statement for each of many rows. A variant for PostgreSQL that selects from `unnest` takes each
        column of the rows as an array: all of them in one statement, which must not change a row twice."""
        ...


class Reader(Protocol):
    @property
    def is_embedded(self) -> bool:
        """Whether the store is part of this process and answers without waiting; else every statement is a round
        trip."""
        ...

    @property
    def joins_are_slow(self) -> bool:
        """Whether several statements with one table each cost less than one that joins them."""
        ...

    @property
    def generation(self) -> int:
        """A number that changes each time the store is opened, and is 0 until then. The other properties are known once
        it is open."""
        ...

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]: ...

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        """Return the rows of a query for each of many keys, as `Transaction.rows_of_each` does."""
        ...

    def version(self) -> int | None:
        """A number that is another one after every commit, and whenever the store is opened; None where asking for it
        would cost a round trip."""
        ...

    async def current_version(self) -> int | None:
        """Return that number also where it costs a round trip. It is as new as the call: all commits before it are
        counted. None where commits are not counted, or the store cannot be asked: nothing may be cached then."""
        ...

    def close(self) -> None: ...


class BlockingReader(Reader, Protocol):
    def read(self, statement: str, params: StatementParams = ()) -> list[Row]:
        """Answer a query without an event loop: for a process that starts, and for rules that are plain functions."""
        ...

    def read_each(self, statement: str, params: Sequence[Mapping[str, Any]]) -> list[list[Row]]:
        """`read` for each of many params, all of the same names. One round trip to a server; a statement that orders
        its rows must return at most one for each."""
        ...


class MigratedReader(BlockingReader, Protocol):
    """A reader of a store that a program of another release may write."""

    async def schema_number(self) -> int:
        """The number of the store's schema; 0 where there is none yet."""
        ...


class Store(BlockingReader, Protocol):
    async def write(self, change: Callable[[Transaction], T]) -> T: ...

    async def write_in_steps(self, change: Callable[[Transaction], Iterator[None]]) -> None:
        """Write many rows: other tasks run between two steps of the change, which are some milliseconds each. If
        the caller is cancelled, the transaction has ended before the cancellation is raised."""
        ...

    def write_here(self, change: Callable[[Transaction], T]) -> T:
        """Write on the calling thread, for a process that does nothing else meanwhile: many rows are written faster
        if no other thread competes for the interpreter."""
        ...


class StoreError(Unavailable):
    """The store cannot be used; the text says why and what to do. The caller may try again."""


class StoreCorrupt(StoreError):
    """The store's file is damaged, or is no store at all. Trying again does not help until someone replaces it."""


class StoreBusy(StoreError):
    """A query was stopped at its time limit, or the store was locked for too long."""


class StoreReplaying(StoreBusy):
    """A standby ended the query, because it replays a change of the rows that were read. Another server can answer."""


class StoreDenied(StoreError):
    """The role at the server may not read or write this store."""


class StoreOfOtherRelease(StoreError):
    """The store has another schema than this program knows: its tables may mean something else."""


class StoreUnreachable(StoreError):
    """The server of the store does not answer, or ended the session."""


class StoreLost(StoreUnreachable):
    """The session that may write has ended, and its lock with it. The store must be opened again."""


class StoreInUse(StoreError):
    """Another process is the writer of this store. `can_wait`: a standby may wait until that one ends."""

    def __init__(self, text: str, *, can_wait: bool = False) -> None:
        super().__init__(text)
        self.can_wait = can_wait


# -- urgent queries ----------------------------------------------------------------------------------------------

# A store on a server has few sessions, and every query of a worker waits for one of them. Those of health checks use a
# session of their own instead (`ServerPool.sessions`). The listener of a worker marks the requests that it answers
# before others. The mark is a context variable, so that it reaches every query of such a request, whichever reader asks
# it, and also the one for the caller's API key.
_is_urgent: ContextVar[bool] = ContextVar("is_urgent", default=False)


class urgent_queries:  # noqa: N801 - used like a function, and cheaper than a generator: it is entered per request
    """Mark the queries of a block, and of the tasks that are created in it, as urgent."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _is_urgent.set(True)

    def __exit__(self, *_: object) -> None:
        _is_urgent.reset(self._before)


def is_urgent() -> bool:
    """Tell whether queries of the running task are urgent."""
    return _is_urgent.get()
