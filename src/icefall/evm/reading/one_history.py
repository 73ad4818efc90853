"""One history per answer: what several statements read belongs to one chain of blocks, or is read again.

IDs of addresses and positions in the chain are reused after a rollback. A statement that finds a name by an ID, or a
transaction by a position, which a statement before it returned, may so find that of another one, if blocks are rolled
back and committed in between. Every rollback counts itself in the meta row `rollbacks`, in its own transaction. An
answer whose statements all lie between two readings of the same count is of one history.

The count is read once at the end of an answer: the first reading is the last one of an answer before it. If the store
has not changed since that one, only its version is compared, which costs an embedded store 4 us and a server the check
that many requests share (db/postgres_version.py). An answer of one statement from a server is not checked.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from icefall.db.engine import Reader, Row, StatementParams, StoreBusy
from icefall.db.statements import load

SQL = load("icefall.evm.reading", "chain.sql")
TRIES_MAX = 5  # each of them ends with a rollback while it reads
T = TypeVar("T")
Stamp = tuple[int, str | None]  # the generation of the store, and its rollbacks


class HistoryChanged(StoreBusy):
    """Blocks were rolled back while an answer was read from their rows."""

    def __init__(self) -> None:
        super().__init__("blocks were rolled back while they were read: try again")


class _Read:
    """The statements of one answer in one chain, and the stamp from before the first of them. `version`: of the store
    after the last of them, if it was asked for."""

    __slots__ = ("stamp", "statements", "version")

    def __init__(self, stamp: Stamp) -> None:
        self.stamp = stamp
        self.statements = 0
        self.version: int | None = None


_ANSWER: ContextVar["dict[CheckedReader, _Read] | None"] = ContextVar("answer", default=None)


class CheckedReader:
    """A reader of a chain's store that knows which statements belong to the answer which is being made."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._stamp: Stamp | None = None
        self._version: int | None = None  # of the store when the stamp was read
        self.current_version = reader.current_version
        self.close = reader.close

    @property
    def is_embedded(self) -> bool:
        return self._reader.is_embedded

    @property
    def joins_are_slow(self) -> bool:
        return self._reader.joins_are_slow

    @property
    def generation(self) -> int:
        return self._reader.generation

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        answer = _ANSWER.get()
        if answer is not None:
            self._count(answer.get(self) or await self._begin(answer))
        return await self._reader.rows(statement, params)

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        answer = _ANSWER.get()
        if answer is not None and keys:
            self._count(answer.get(self) or await self._begin(answer))
        return await self._reader.rows_of_each(statement, keys)

    def version(self) -> int | None:
        version = self._reader.version()
        answer = _ANSWER.get()
        if answer is not None and (read := answer.get(self)) is not None:
            read.version = version
        return version

    @staticmethod
    def _count(read: _Read) -> None:
        read.statements += 1
        read.version = None

    async def _begin(self, answer: "dict[CheckedReader, _Read]") -> _Read:
        stamp = self._stamp or await self._read_stamp()
        return answer.setdefault(self, _Read(stamp))

    def is_unchanged(self, read: _Read) -> bool:
        """Whether nothing at all was committed since before the first statement, as far as that is known at once."""
        version = self._reader.version() if read.version is None else read.version
        return version is not None and version == self._version and read.stamp == self._stamp

    async def has_changed(self, read: _Read) -> bool:
        """Whether blocks were rolled back since before the first statement. Caches of an embedded store count as
        statements."""
        if read.statements == 1 and not self._reader.is_embedded:
            return False
        return await self._read_stamp() != read.stamp

    async def _read_stamp(self) -> Stamp:
        version = self._reader.version()  # before the count: a commit in between is seen by the next check
        if version is None:
            version = await self._reader.current_version()
        if self._stamp is None or version is None or version != self._version:
            rows = await self._reader.rows(SQL.rollbacks)
            self._stamp, self._version = (self._reader.generation, rows[0][0]), version
        return self._stamp


async def in_one_history(read: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Return what `read` returns, or raise what it raises, read from one history of each chain. HistoryChanged if
    blocks are rolled back again and again."""
    for _ in range(TRIES_MAX):
        answer: dict[CheckedReader, _Read] = {}
        token = _ANSWER.set(answer)
        failure: Exception | None = None
        try:
            result = await read(*args)
        except Exception as error:  # also one that two histories may have caused together
            failure = error
        finally:
            _ANSWER.reset(token)
        changed = isinstance(failure, HistoryChanged)
        for chain, one in answer.items():
            if not chain.is_unchanged(one) and await chain.has_changed(one):
                changed = True
        if changed:
            continue
        if failure is not None:
            raise failure
        return result
    raise HistoryChanged
