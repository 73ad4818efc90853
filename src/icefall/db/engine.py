"""What a store engine offers, and nothing about any table.

A `Reader` answers queries and can change nothing. A `Store` belongs to the one writing process: `write` runs a function
inside one transaction, in a thread of its own, and either all of it is committed or none. Both are `async`, so that the
embedded engine can answer without suspending while a client/server engine may wait.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from icefall.errors import Unavailable

T = TypeVar("T")

Row = tuple[Any, ...]
StatementParams = Mapping[str, Any] | Sequence[Any]


class Transaction(Protocol):
    """One open transaction of the writer. Plain calls: nothing is awaited while it is open."""

    def rows(self, statement: str, params: StatementParams = ()) -> list[Row]: ...

    def run(self, statement: str, params: StatementParams = ()) -> int:
        """Execute a statement; the number of rows it changed."""
        ...

    def run_many(self, statement: str, params: Sequence[StatementParams]) -> None: ...


class Reader(Protocol):
    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]: ...

    def close(self) -> None: ...


class Store(Reader, Protocol):
    def read(self, statement: str, params: StatementParams = ()) -> list[Row]:
        """A query of the writing process, whose rules are plain functions: committed state, answered at once."""
        ...

    async def write(self, change: Callable[[Transaction], T]) -> T: ...

    def write_here(self, change: Callable[[Transaction], T]) -> T:
        """The same on the calling thread, for a process that has nothing better to do meanwhile: many rows go in
        faster where no other thread wants the interpreter between two of them."""
        ...


class StoreError(Unavailable):
    """The store cannot be used as it is; the text says why and what to do. Whoever asked may try again."""


class StoreBusy(StoreError):
    """A query was stopped at its time limit, or the store was locked for too long."""
