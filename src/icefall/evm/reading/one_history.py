"""One history per answer: what several statements read belongs to one chain of blocks, or is read again.

IDs of addresses and positions in the chain are reused after a rollback. A statement that finds a name by an ID, or a
transaction by a position, which a statement before it returned, may so find that of another one, if blocks are rolled
back and committed in between. Every rollback counts itself in the meta row `rollbacks`, in its own transaction. An
answer whose statements all lie between two readings of the same count is of one history.

The count is read once at the end of an answer: the first reading is the last one of an answer before it. If the store
has not changed since that one, only its version is compared, which costs an embedded store 4 us and a server the check
that many requests share (db/postgres_version.py). An answer of one statement from a server is not checked.

Where standbys are read (db/replicas.py), a standby and its server are two histories, as one of them is behind. All
statements of an answer and its check go to the server that was chosen before the first of them. If a standby fails
meanwhile, the whole answer is read again from another server. The node of Citus that holds a chain (db/citus.py) is
chosen in the same way. As a chain may be moved away from there, an answer of one statement is checked too.
"""

from collections.abc import Awaitable, Callable, Container, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from icefall.db.engine import (
    Reader,
    Row,
    StatementParams,
    StoreBusy,
    StoreError,
    StoreReplaying,
    StoreUnreachable,
)
from icefall.db.replicas import ServerChoice
from icefall.db.statements import load

SQL = load("icefall.evm.reading", "chain.sql")
TRIES_MAX = 5  # each of them ends with a rollback while it reads
T = TypeVar("T")
Stamp = tuple[int, str | None]  # the generation of the store, and its rollbacks


class HistoryChanged(StoreBusy):
    """Blocks were rolled back while an answer was read from their rows."""

    def __init__(self) -> None:
        super().__init__("blocks were rolled back while they were read: try again")


class _Server:
    """A server that has the chain's store. `stamp`: as it was read last; `version`: that of the store then.
    `can_lose`: the store may be moved away from there, which only the version tells."""

    __slots__ = ("can_lose", "number", "reader", "stamp", "version")

    def __init__(self, number: int, reader: Reader, *, can_lose: bool = False) -> None:
        self.number = number
        self.reader = reader
        self.can_lose = can_lose
        self.stamp: Stamp | None = None
        self.version: int | None = None

    async def read_stamp(self) -> Stamp:
        version = self.reader.version()  # before the count: a commit in between is seen by the next check
        if version is None:
            version = await self.reader.current_version()
        known = self.stamp
        if known is None or version is None or version != self.version or known[0] != self.reader.generation:
            rows = await self.reader.rows(SQL.rollbacks)
            self.stamp, self.version = (self.reader.generation, rows[0][0]), version
            return self.stamp
        return known


class _Read:
    """The statements of one answer in one chain, all read from one server, and its stamp from before the first of them.
    `version`: of the store after the last of them, if it was asked for. `has_failed`: another server is to be read."""

    __slots__ = ("has_failed", "server", "stamp", "statements", "version")

    def __init__(self, server: _Server, stamp: Stamp) -> None:
        self.server = server
        self.stamp = stamp
        self.statements = 0
        self.version: int | None = None
        self.has_failed = False

    def is_unchanged(self) -> bool:
        """Whether nothing at all was committed since before the first statement, as far as that is known at once."""
        version = self.server.reader.version() if self.version is None else self.version
        return version is not None and version == self.server.version and self.stamp == self.server.stamp

    async def has_changed(self) -> bool:
        """Whether blocks were rolled back since before the first statement, or the server is another one. Caches of an
        embedded store count as statements."""
        reader = self.server.reader
        if self.statements == 1 and not reader.is_embedded and not self.server.can_lose:
            return False
        return await self.server.read_stamp() != self.stamp


class _Answer:
    """What one try to make an answer has read. `avoided`: standbys that failed in the tries before, by chain."""

    __slots__ = ("avoided", "reads")

    def __init__(self, avoided: "dict[CheckedReader, set[int]]") -> None:
        self.reads: dict[CheckedReader, _Read] = {}
        self.avoided = avoided


_ANSWER: ContextVar[_Answer | None] = ContextVar("answer", default=None)


class Standbys(NamedTuple):
    """The standbys of a chain's server in the order of their numbers, and the choice between them and the server.
    `can_lose`: they are nodes of Citus, from which a chain may be moved away."""

    readers: Sequence[Reader]
    choice: ServerChoice
    can_lose: bool = False


class CheckedReader:
    """A reader of a chain's store that knows which statements belong to the answer which is being made: all of them
    are read from one server."""

    def __init__(self, reader: Reader, standbys: Standbys | None = None) -> None:
        self._reader = reader
        self._choice = standbys.choice if standbys is not None else None
        before = standbys.readers if standbys is not None else ()
        can_lose = standbys is not None and standbys.can_lose
        self._servers = [_Server(number, one, can_lose=can_lose) for number, one in enumerate(before)]
        self._servers.append(_Server(len(self._servers), reader))

    @property
    def is_embedded(self) -> bool:
        return self._reader.is_embedded

    @property
    def joins_are_slow(self) -> bool:
        first = self._servers[0].reader
        return first.joins_are_slow if first.generation else self._reader.joins_are_slow

    @property
    def generation(self) -> int:
        return self._reader.generation

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        answer = _ANSWER.get()
        if answer is None:
            return await (await self._chosen()).reader.rows(statement, params)
        read = answer.reads.get(self) or await self._begin(answer)
        read.statements += 1
        read.version = None
        try:
            return await read.server.reader.rows(statement, params)
        except StoreError as error:
            self._note_failure(read, error)
            raise

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        answer = _ANSWER.get()
        if answer is None:
            return await (await self._chosen()).reader.rows_of_each(statement, keys)
        if not keys:
            return []
        read = answer.reads.get(self) or await self._begin(answer)
        read.statements += 1
        read.version = None
        try:
            return await read.server.reader.rows_of_each(statement, keys)
        except StoreError as error:
            self._note_failure(read, error)
            raise

    def version(self) -> int | None:
        """Return the version of an embedded store, after the last statement of an answer: what is committed later does
        not matter to what it has read. Servers are asked by `current_version`."""
        if self._choice is not None:
            return None
        answer = _ANSWER.get()
        read = answer.reads.get(self) if answer is not None else None
        if read is None:
            return self._reader.version()
        if read.version is None:  # else no statement was read since
            read.version = self._reader.version()
        return read.version

    async def current_version(self) -> int | None:
        return await (await self._chosen()).reader.current_version()

    def close(self) -> None:
        for server in self._servers:
            server.reader.close()

    async def _chosen(self, avoided: Container[int] = ()) -> _Server:
        return self._servers[0 if self._choice is None else await self._choice.choose(avoided)]

    async def _begin(self, answer: _Answer) -> _Read:
        """Choose the server of an answer, before its first statement."""
        avoided = answer.avoided.get(self, set())
        while True:
            server = await self._chosen(avoided)
            stamp = server.stamp
            try:
                if stamp is None or stamp[0] != server.reader.generation:
                    stamp = await server.read_stamp()
            except StoreError as error:
                if not self._can_avoid(server, error):
                    raise
                avoided = answer.avoided.setdefault(self, set())
                avoided.add(server.number)
                continue
            return answer.reads.setdefault(self, _Read(server, stamp))

    def _can_avoid(self, server: _Server, error: StoreError) -> bool:
        """Whether another server may answer in the place of a standby, which is also left out for others if it is gone.
        A query that took too long would take as long there."""
        if self._choice is None or server is self._servers[-1]:
            return False
        if isinstance(error, StoreUnreachable):
            self._choice.leave_out(server.number, str(error))
        return not isinstance(error, StoreBusy) or isinstance(error, StoreReplaying)

    def _note_failure(self, read: _Read, error: StoreError) -> None:
        if self._can_avoid(read.server, error):
            read.has_failed = True

    async def must_repeat(self, read: _Read, answer: _Answer) -> bool:
        """Whether an answer from a store that has changed is to be made again: blocks were rolled back while it was
        read, or its server failed."""
        if not read.has_failed:
            try:
                return await read.has_changed()
            except StoreError as error:
                if not self._can_avoid(read.server, error):
                    raise
        answer.avoided.setdefault(self, set()).add(read.server.number)
        return True


async def in_one_history(read: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Return what `read` returns, or raise what it raises, read from one history of each chain. HistoryChanged if
    blocks are rolled back again and again."""
    avoided: dict[CheckedReader, set[int]] = {}
    for _ in range(TRIES_MAX):
        answer = _Answer(avoided)
        token = _ANSWER.set(answer)
        failure: Exception | None = None
        try:
            result = await read(*args)
        except Exception as error:  # also one that two histories may have caused together
            failure = error
        finally:
            _ANSWER.reset(token)
        changed = isinstance(failure, HistoryChanged)
        for chain, one in answer.reads.items():
            if (one.has_failed or not one.is_unchanged()) and await chain.must_repeat(one, answer):
                changed = True
        if changed:
            continue
        if failure is not None:
            raise failure
        return result
    raise HistoryChanged
