"""The versions of the schemas on a server, asked for many requests at once.

A request may use the result of a check that was sent after it had come, and of no other: so its answer is as new as one
that is read from the store. Those that come while a check is on its way share the next one. Under load one round trip
serves all requests that came during the one before.
"""

import asyncio
import time
from collections.abc import Callable
from itertools import chain
from typing import Protocol

import psycopg
from psycopg.pq import ExecStatus

from icefall.db.engine import StoreError
from icefall.db.postgres_session import SQL, AsyncConnection, connect_async

_LIMIT_S = 2.0  # of one check; requests that wait for it go on without
_PAUSE_S = 5.0  # after a failure: else every request would wait for one, and the server would log each missing column
_SETTINGS = {"statement_timeout": str(round(_LIMIT_S * 1000)), "default_transaction_read_only": "on"}
_BINARY = 1
Done = Callable[[int | None], None]
Failed = Callable[[], None]


class CheckSession(Protocol):
    def send(self, schema: str, done: Done, failed: Failed) -> None:
        """Send one check, in the running event loop. One of the two is called, once, unless the session is closed
        before."""
        ...

    def close(self) -> None: ...


class VersionChecks:
    """Sends one check at a time; schemas take turns."""

    def __init__(self, session: CheckSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, list[asyncio.Future[int | None]]] = {}
        self._served: list[asyncio.Future[int | None]] = []
        self._schema = ""  # of the check that is on its way
        self._is_running = False
        self._timer: asyncio.TimerHandle | None = None
        self._paused_until: dict[str, float] = {}

    async def version(self, schema: str) -> int | None:
        """Return the version of a schema. None if there is none, or it cannot be had: reading the store tells why."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        if self._clock() < self._paused_until.get(schema, 0.0):
            return None
        own: asyncio.Future[int | None] = loop.create_future()  # one request may be cancelled without the others
        self._waiting.setdefault(schema, []).append(own)
        if not self._is_running:
            self._is_running = True
            loop.call_soon(self._next)  # for all that come in this turn of the loop
        return await own

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin anew in this loop: requests that waited in another one have ended with it."""
        self.close()
        self._loop, self._waiting, self._served, self._is_running = loop, {}, [], False

    def _next(self) -> None:
        """Send a check for the schema that waits longest."""
        self._schema = next(iter(self._waiting), "")
        self._is_running = bool(self._schema)
        if self._is_running:
            assert self._loop is not None
            self._served = self._waiting.pop(self._schema)
            self._timer = self._loop.call_later(_LIMIT_S, self._fail)
            self._session.send(self._schema, self._end, self._fail)

    def _end(self, version: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        served, self._served = self._served, []
        for one in served:
            if not one.done():  # cancelled
                one.set_result(version)
        self._next()

    def _fail(self) -> None:
        """Let all requests go on without a version, also those for other schemas: on a server that hangs, each would
        wait for all before it."""
        self._session.close()
        self._paused_until[self._schema] = self._clock() + _PAUSE_S
        waiting, self._waiting = self._waiting, {}
        self._served += chain.from_iterable(waiting.values())
        self._end(None)

    def give_up(self) -> None:
        """Close the session for good, and let all requests that wait go on without a version."""
        if self._loop is not None and not self._loop.is_closed():
            self._fail()
        self.close()

    def close(self) -> None:
        """Close the session. The next check opens another one."""
        if self._timer is not None:
            self._timer.cancel()
        self._session.close()


def _commits_of(schema: str) -> str:
    return SQL.commits.postgres.replace("schema_version", f"{schema}.schema_version")


class VersionSession:
    """A session for checks alone: they do not wait behind the queries of the pool, and cost a third of one, as their
    statements are prepared and sent without what the driver adds. `text_of`: another statement for the version of a
    schema."""

    def __init__(self, url: str, text_of: Callable[[str], str] | None = None) -> None:
        self._url = url
        self._text_of = text_of or _commits_of
        self._loop: asyncio.AbstractEventLoop | None = None  # that of the session
        self._socket = -1  # while it is watched; a lost connection no longer knows it
        self._connection: AsyncConnection | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._prepared: dict[str, bytes] = {}  # names of statements, by schema
        self._found: int | None = None
        self._callbacks: tuple[Done, Failed] | None = None  # of the check that is on its way

    def send(self, schema: str, done: Done, failed: Failed) -> None:
        self._callbacks, self._found = (done, failed), None
        if (name := self._prepared.get(schema)) is not None:
            self._send(name)
        else:
            self._loop = asyncio.get_running_loop()
            self._preparing = self._loop.create_task(self._prepare(schema, self._loop))

    async def _prepare(self, schema: str, loop: asyncio.AbstractEventLoop) -> None:
        """Prepare the check of a schema, and open the session where there is none. The driver waits for the socket by
        itself."""
        name = f"version_{len(self._prepared)}"
        text = self._text_of(schema)
        try:
            self._stop_watching()
            if self._connection is None:
                connection = await connect_async(self._url, _SETTINGS)
                if self._preparing is not asyncio.current_task():  # closed meanwhile: the driver may miss that
                    connection.pgconn.finish()
                    return
                self._connection = connection
            await self._connection.execute(f"prepare {name} as {text}")
        except (psycopg.Error, StoreError):
            if self._preparing is asyncio.current_task():  # else it was given up: another check may be on its way
                self._preparing = None
                self._fail()
            return
        self._preparing = None
        self._socket = self._connection.pgconn.socket
        loop.add_reader(self._socket, self._receive)
        self._prepared[schema] = name.encode()
        self._send(self._prepared[schema])

    def _send(self, name: bytes) -> None:
        assert self._connection is not None
        try:
            self._connection.pgconn.send_query_prepared(name, None, result_format=_BINARY)
            self._connection.pgconn.flush()  # the socket takes so few bytes at once: nothing else is on its way
        except psycopg.Error:
            self._fail()

    def _receive(self) -> None:
        """Take in what the server has sent, which may also be the end of the session."""
        assert self._connection is not None
        server = self._connection.pgconn
        try:
            server.consume_input()
            while not server.is_busy():
                result = server.get_result()
                if result is None:
                    break
                if result.status != ExecStatus.TUPLES_OK:
                    raise psycopg.OperationalError("the check failed")
                value = result.get_value(0, 0) if result.ntuples else None
                self._found = None if value is None else int.from_bytes(value, "big")
            else:
                return
        except psycopg.Error:
            self._fail()
            return
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is not None:
            callbacks[0](self._found)

    def _fail(self) -> None:
        callbacks, self._callbacks = self._callbacks, None
        self.close()
        if callbacks is not None:
            callbacks[1]()

    def _stop_watching(self) -> None:
        if self._socket >= 0 and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
        self._socket = -1

    def close(self) -> None:
        if self._preparing is not None:
            self._preparing.cancel()
        self._stop_watching()
        if self._connection is not None:
            self._connection.pgconn.finish()
        self._connection = self._preparing = self._callbacks = None
        self._prepared.clear()
