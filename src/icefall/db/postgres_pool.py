"""Connections to a PostgreSQL server: how they are opened, and a bounded pool of them for reading.

One pool serves every schema of a process. A query runs in a thread of the pool: while it waits for the server other
requests are answered, and it works on any event loop.
"""

import asyncio
import os
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg.adapt import Buffer, Loader, PyFormat
from psycopg.conninfo import make_conninfo
from psycopg.pq import Format
from psycopg.types.numeric import Int8, Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper, StrDumperUnknown

from icefall.db.engine import Row, StatementParams, StoreBusy, StoreError, StoreUnreachable
from icefall.db.statements import for_postgres, load

T = TypeVar("T")

SQL = load("icefall.db", "postgres.sql")
POOL_SIZE = 8
WAITING_MAX = 256
SERVER_MIN = 140000
QUERY_LIMIT_S = 5.0
CONNECT_LIMIT_S = 3
_NO_ANSWER_S = 3.0  # after the server's own limit on a query
_SHARED_SESSION = (
    "this is a transaction pooler, which gives one session to several clients: locks and settings of a session do not "
    "hold there; use a pooler in session mode, or the server itself"
)
# A peer that is gone without a word is noticed after about four seconds, on both sides.
_KEEPALIVE = {"keepalives": 1, "keepalives_idle": 2, "keepalives_interval": 1, "keepalives_count": 2}
_SERVER_KEEPALIVE = {
    "tcp_keepalives_idle": "2", "tcp_keepalives_interval": "1", "tcp_keepalives_count": "2", "tcp_user_timeout": "4000",
    "client_connection_check_interval": "2s",
}  # fmt: skip
_PLANNING = {"jit": "off", "random_page_cost": "1.1"}  # queries are seeks: compiling them costs more than running them
Connection = psycopg.Connection[Row]


class _TextDumper(StrDumperUnknown):
    """PostgreSQL has no text with a zero character: it is stored, and looked for, as the replacement character."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _BinaryTextDumper(StrBinaryDumper):
    """The same for COPY."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _BoolLoader(Loader):
    """0 and 1, as the embedded engine answers."""

    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int(bytes(data) != b"\0")


def connect(url: str, settings: Mapping[str, str], *, prepare_after: int = 3) -> Connection:
    """A session with these settings. StoreUnreachable where there is none to be had."""
    limits = {"connect_timeout": CONNECT_LIMIT_S, "tcp_user_timeout": 4000, **_KEEPALIVE}
    name = f"icefall {os.getpid()}"
    try:
        info = make_conninfo(url, application_name=name, **limits)
        connection = psycopg.Connection.connect(info, autocommit=True, prepare_threshold=prepare_after)
    except psycopg.Error as error:
        raise unreachable(error) from error
    adapters = connection.adapters
    adapters.register_dumper(int, psycopg.adapters.get_dumper(Int8, PyFormat.BINARY))  # one plan for every number
    adapters.register_dumper(bool, Int8BinaryDumper)
    adapters.register_dumper(str, _BinaryTextDumper)
    adapters.register_dumper(str, _TextDumper)
    adapters.register_loader("bool", _BoolLoader)
    try:
        configure(connection, {"timezone": "UTC", **_PLANNING, **_server_keepalive(connection), **settings})
        _check_server(url, connection)
    except psycopg.Error as error:
        connection.close()
        raise unreachable(error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _server_keepalive(connection: Connection) -> dict[str, str]:
    """Sockets of this machine have none, and need none."""
    return {} if connection.info.host.startswith("/") else _SERVER_KEEPALIVE


def configure(connection: Connection, settings: Mapping[str, str]) -> None:
    """Settings of the session, in one round trip."""
    calls = ", ".join("set_config(%s, %s, false)" for _ in settings)
    connection.execute(f"select {calls}", [part for setting in settings.items() for part in setting])


def _check_server(url: str, connection: Connection) -> None:
    ((version, session),) = connection.execute(SQL.server.postgres).fetchall()
    if version < SERVER_MIN:
        raise StoreError(f"the store needs PostgreSQL 14 or newer, the server is {version // 10000}")
    if session != connection.info.backend_pid and _is_shared(url, connection):
        raise StoreError(_SHARED_SESSION)


def _is_shared(url: str, connection: Connection) -> bool:
    """Whether a pooler is between us that gives one session to two clients."""
    with psycopg.Connection.connect(url, autocommit=True, prepare_threshold=None) as other:
        for _ in range(3):
            ours, theirs = (one.execute(SQL.session.postgres).fetchall() for one in (connection, other))
            if ours == theirs:
                return True
    return False


class SessionKind(NamedTuple):
    """What a session for reading is set to."""

    schema: str
    limit_s: float

    def settings(self) -> dict[str, str]:
        return {
            "search_path": self.schema,
            "statement_timeout": str(round(self.limit_s * 1000)),
            "default_transaction_read_only": "on",
        }


class ServerPool:
    """Sessions for reading, of one server. At most `size` are kept, and as many queries run at once."""

    def __init__(self, url: str, size: int = POOL_SIZE) -> None:
        self.url = url
        self._size = size
        self._idle: list[tuple[SessionKind, Connection]] = []
        self._guard = threading.Lock()
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="store")
        self._waiting = 0

    async def run(self, query: Callable[[], T], limit_s: float) -> T:
        """In a thread. StoreBusy if the server does not answer long after it should have."""
        if self._waiting >= WAITING_MAX:
            raise StoreBusy("too many queries are waiting for the store")
        self._waiting += 1
        try:
            async with asyncio.timeout(limit_s + CONNECT_LIMIT_S + _NO_ANSWER_S):
                return await asyncio.get_running_loop().run_in_executor(self._threads, query)
        except TimeoutError as error:
            raise StoreBusy("the store does not answer in time") from error
        finally:
            self._waiting -= 1

    def query(self, kind: SessionKind, statement: str, params: StatementParams) -> list[Row]:
        """On the calling thread. Once more on a new connection if the one at hand was broken: it only reads."""
        text = for_postgres(statement)
        connection, is_fresh = self._take(kind)
        try:
            return self._rows(connection, kind, text, params)
        except psycopg.OperationalError as error:
            if is_fresh or not connection.closed:
                raise
            self._drop_idle()  # they are of the same server, and as old
            try:
                return self._rows(self._take(kind)[0], kind, text, params)
            except psycopg.OperationalError as again:
                raise again from error

    def _rows(self, connection: Connection, kind: SessionKind, text: str, params: StatementParams) -> list[Row]:
        try:
            return connection.execute(text, params, binary=True).fetchall()
        finally:
            self._put_back(kind, connection)

    def _take(self, kind: SessionKind) -> tuple[Connection, bool]:
        """A connection, and whether it is new."""
        with self._guard:
            index = next((i for i, (of, _) in enumerate(self._idle) if of == kind), None)
            if index is None and len(self._idle) >= self._size:
                index = 0
            found = None if index is None else self._idle.pop(index)
        if found is None:
            return connect(self.url, kind.settings()), True
        was, connection = found
        if was != kind:
            configure(connection, kind.settings())
        return connection, False

    def _put_back(self, kind: SessionKind, connection: Connection) -> None:
        if connection.closed:
            return
        with self._guard:
            if len(self._idle) < self._size:
                self._idle.append((kind, connection))
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._guard:
            dropped, self._idle = self._idle, []
        for _, connection in dropped:
            connection.close()

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self._drop_idle()


def unreachable(error: psycopg.Error) -> StoreError:
    """Without the server's address, which clients of the API need not know."""
    reason = re.sub(r"\s+", " ", str(error).rpartition("failed: ")[2]).strip()
    return StoreUnreachable(f"the PostgreSQL server cannot be used: {reason}")


def shown_url(url: str) -> str:
    """Without credentials: for the terminal and log files."""
    parts = urlsplit(url)
    host = parts.hostname or "the local server"
    return f"{host}{f':{parts.port}' if parts.port else ''}/{unquote(parts.path).lstrip('/')}"


def params_of_each(keys: Any) -> list[list[Any]]:
    """Keys, column by column: each column is one array parameter."""
    return [list(column) for column in zip(*keys, strict=True)]
