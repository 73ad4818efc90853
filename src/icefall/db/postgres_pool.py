"""The sessions of a process for reading, of one server and every schema on it: a bounded number, kept for more queries.

Queries of an event loop run on the loop itself, without threads: handing one to a thread and back costs several times
what the query does.
"""

import asyncio
import threading

import psycopg
from psycopg.pq import TransactionStatus

from icefall.db.engine import Row, StatementParams, StoreBusy, is_urgent
from icefall.db.postgres_session import (
    CONNECT_LIMIT_S,
    SQL,
    AsyncConnection,
    Connection,
    SessionSettings,
    connect,
    connect_async,
    set_configs,
    shown_url,
    unreachable,
)
from icefall.db.postgres_version import VersionChecks, VersionSession
from icefall.db.statements import for_postgres

POOL_SIZE = 8
_URGENT_SIZE = 1
_BLOCKING_SIZE = 2
WAITING_MAX = 256
_NO_ANSWER_S = 3.0  # after the server's own limit on a query
BROKEN = (psycopg.OperationalError, psycopg.InterfaceError)  # what a connection that has ended raises


class AsyncSessions:
    """A pool of at most `size` sessions, and as many queries at once. Idle ones may be used by another loop later."""

    def __init__(self, url: str, size: int = POOL_SIZE) -> None:
        self._url = url
        self._size = size
        self._idle: list[tuple[SessionSettings, AsyncConnection]] = []
        self._open = 0
        self._waiting = 0
        self.generation = 0  # another one when sessions lead to another server, or to one that was started again
        self._server = ""
        self.is_citus = False  # known once there is a session
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(size)

    async def query(self, wanted: SessionSettings, statement: str, params: StatementParams) -> list[Row]:
        """Run a query when a session is free. StoreBusy if too many wait, or the server does not answer long after it
        should have."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._slots, self._waiting = loop, asyncio.Semaphore(self._size), 0
        if self._waiting >= WAITING_MAX:
            raise StoreBusy("too many queries are waiting for the store")
        self._waiting += 1
        try:
            async with asyncio.timeout(wanted.limit_s + CONNECT_LIMIT_S + _NO_ANSWER_S), self._slots:
                return await self._asked(wanted, for_postgres(statement), params)
        except TimeoutError as error:
            raise StoreBusy("the store does not answer in time") from error
        finally:
            self._waiting -= 1

    async def _asked(self, wanted: SessionSettings, text: str, params: StatementParams) -> list[Row]:
        """Run a query, once more on a new connection if the one at hand was broken: it only reads."""
        if (idle := self._take_idle(wanted)) is not None:
            try:
                return await self._rows(*idle, wanted, text, params)
            except BROKEN:
                if not idle[1].closed:
                    raise
            self.close()  # the other idle ones are of the same server, and as old
        self._open += 1
        try:
            connection = await self._connected(wanted)
        except BaseException:
            self._open -= 1
            raise
        return await self._rows(wanted, connection, wanted, text, params)

    async def _rows(
        self,
        was: SessionSettings,
        connection: AsyncConnection,
        wanted: SessionSettings,
        text: str,
        params: StatementParams,
    ) -> list[Row]:
        is_set, generation = was == wanted, self.generation
        try:
            if not is_set:
                await connection.execute(*set_configs(wanted.settings()))
                is_set = True
            cursor = await connection.execute(text, params, binary=True)
            return await cursor.fetchall()
        finally:
            is_idle = connection.info.transaction_status == TransactionStatus.IDLE
            if is_set and is_idle and generation == self.generation:
                self._idle.append((wanted, connection))
            else:  # broken, given up in the middle of a query, or of a server that is no longer the one to ask
                self._end(connection)

    def _take_idle(self, wanted: SessionSettings) -> tuple[SessionSettings, AsyncConnection] | None:
        """Take an idle session with the same settings, or any if no more may be opened."""
        index = next((at for at in reversed(range(len(self._idle))) if self._idle[at][0] == wanted), None)
        if index is None and self._idle and self._open >= self._size:
            index = 0
        return None if index is None else self._idle.pop(index)

    def _end(self, connection: AsyncConnection) -> None:
        self._open -= 1
        connection.pgconn.finish()

    async def _connected(self, wanted: SessionSettings) -> AsyncConnection:
        if not self.generation:
            self.is_citus = await asyncio.to_thread(self._checked)
        connection = await connect_async(self._url, wanted.settings())
        try:
            ((server,),) = await (await connection.execute(SQL.server_process.postgres)).fetchall()
        except BaseException as error:
            connection.pgconn.finish()
            if isinstance(error, psycopg.Error):
                raise unreachable(error) from error
            raise
        if server != self._server:
            self.close()  # idle sessions of the server before
            self._server = server
            self.generation += 1
        return connection

    def _checked(self) -> bool:
        """Check the server's version, and poolers; whether it is Citus. The session ends in the same thread: whoever
        waits for it may have given up."""
        with connect(self._url, {}) as first:
            return bool(first.execute(SQL.citus.postgres).fetchall()[0][0])

    def close(self) -> None:
        """End the idle sessions."""
        dropped, self._idle = self._idle, []
        for _, connection in dropped:
            self._end(connection)


class BlockingSessions:
    """The sessions of queries that wait on the calling thread: as a process starts, and in plain functions."""

    def __init__(self, url: str, size: int = _BLOCKING_SIZE) -> None:
        self._url = url
        self._size = size
        self._idle: list[tuple[SessionSettings, Connection]] = []
        self._guard = threading.Lock()

    def query(self, wanted: SessionSettings, statement: str, params: StatementParams) -> list[Row]:
        """Run a query on the calling thread. It runs once more on a new connection if the one at hand was broken: it
        only reads."""
        text = for_postgres(statement)
        if (idle := self._take_idle(wanted)) is not None:
            try:
                return self._rows(*idle, wanted, text, params)
            except BROKEN:
                if not idle[1].closed:
                    raise
            self.close()  # the others are of the same server, and as old
        return self._rows(wanted, connect(self._url, wanted.settings()), wanted, text, params)

    def _rows(
        self, was: SessionSettings, connection: Connection, wanted: SessionSettings, text: str, params: StatementParams
    ) -> list[Row]:
        is_set = was == wanted
        try:
            if not is_set:
                connection.execute(*set_configs(wanted.settings()))
                is_set = True
            return connection.execute(text, params, binary=True).fetchall()
        finally:
            self._put_back(wanted, connection, is_set=is_set)

    def _take_idle(self, wanted: SessionSettings) -> tuple[SessionSettings, Connection] | None:
        with self._guard:
            index = next((i for i, (of, _) in enumerate(self._idle) if of == wanted), None)
            if index is None and len(self._idle) >= self._size:
                index = 0
            return None if index is None else self._idle.pop(index)

    def _put_back(self, wanted: SessionSettings, connection: Connection, *, is_set: bool) -> None:
        with self._guard:
            if is_set and not connection.closed and len(self._idle) < self._size:
                self._idle.append((wanted, connection))
                return
        connection.close()

    def close(self) -> None:
        """End the idle sessions."""
        with self._guard:
            dropped, self._idle = self._idle, []
        for _, connection in dropped:
            connection.close()


class ServerPool:
    """All sessions of a process for reading: those of event loops, one more for urgent queries, those of plain
    functions, and one for versions."""

    def __init__(self, url: str, size: int = POOL_SIZE) -> None:
        self.url = url
        self.of_loops = AsyncSessions(url, size)
        self.urgent = AsyncSessions(url, _URGENT_SIZE)
        self.blocking = BlockingSessions(url)
        self.versions = VersionChecks(VersionSession(url))

    @property
    def sessions(self) -> AsyncSessions:
        """The sessions that take a query of the running task: a health check does not wait for what others ask."""
        return self.urgent if is_urgent() else self.of_loops

    @property
    def shown_url(self) -> str:
        """The URL without credentials."""
        return shown_url(self.url)

    @property
    def generation(self) -> int:
        """A number that changes whenever queries begin to be answered by another server; 0 before the first."""
        return self.of_loops.generation + self.urgent.generation

    def close(self) -> None:
        self.of_loops.close()
        self.urgent.close()
        self.blocking.close()
        self.versions.close()
