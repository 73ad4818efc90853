"""Sessions of a PostgreSQL server: how they are opened, with which settings, and what is refused."""

import os
import re
import struct
from collections.abc import Mapping
from itertools import chain, repeat
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg.adapt import AdaptersMap, Buffer, Loader, PyFormat
from psycopg.conninfo import make_conninfo
from psycopg.pq import Format
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8, Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper, StrDumperUnknown

from icefall.db.engine import Row, StoreError, StoreUnreachable
from icefall.db.statements import load

SQL = load("icefall.db", "postgres.sql")
SERVER_MIN = 140000
QUERY_LIMIT_S = 5.0
CONNECT_LIMIT_S = 3
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
# Every query is a walk along an index with seeks: so it is planned, whatever the statistics of fresh tables say, and
# for readers once per session. Compiling it would cost more than running it.
_PLANNING = {"jit": "off", "random_page_cost": "1.1", "enable_seqscan": "off"}
_READER_PLANNING = {
    "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
}  # fmt: skip
_INT8_OID, _INT8_ARRAY_OID = 20, 1016
_ARRAY_HEAD = struct.Struct("!iiIii")  # dimensions, whether it has nulls, type of the elements; size and first index
Connection = psycopg.Connection[Row]
AsyncConnection = psycopg.AsyncConnection[Row]


class _TextDumper(StrDumperUnknown):
    """PostgreSQL has no text with a zero character: it is stored, and looked for, as the replacement character."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _BinaryTextDumper(StrBinaryDumper):
    """Replaces the zero character of text in COPY, as `_TextDumper` does elsewhere."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _ArrayDumper(ListBinaryDumper):
    """Dumps lists as arrays. Those of numbers, which may be thousands of IDs, are packed at once: the driver looks at
    each element three times. It can do so because ours are flat, and every number is an int8."""

    def _find_list_element(self, elements: list[Any], _format: PyFormat) -> Any:
        """Return the element whose type is that of the array."""
        return next((one for one in elements if one is not None), None)

    def dump(self, obj: list[Any]) -> Buffer | None:
        if self.oid != _INT8_ARRAY_OID or not obj:
            return super().dump(obj)
        try:
            values = struct.pack("!" + "iq" * len(obj), *chain.from_iterable(zip(repeat(8), obj)))
        except struct.error:  # it has nulls
            return super().dump(obj)
        return _ARRAY_HEAD.pack(1, 0, _INT8_OID, len(obj), 1) + values


class _BoolLoader(Loader):
    """Loads truth values as 0 and 1, as the embedded engine answers."""

    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int(bytes(data) != b"\0")


def connection_info(url: str) -> str:
    limits = {"connect_timeout": CONNECT_LIMIT_S, "tcp_user_timeout": 4000, **_KEEPALIVE}
    return make_conninfo(url, application_name=f"icefall {os.getpid()}", **limits)


def register_types(adapters: AdaptersMap) -> None:
    adapters.register_dumper(int, psycopg.adapters.get_dumper(Int8, PyFormat.BINARY))  # one plan for every number
    adapters.register_dumper(bool, Int8BinaryDumper)
    # As text, all arrays of a statement would be of the smallest type of number that holds those of the first one.
    adapters.register_dumper(list, _ArrayDumper)
    adapters.register_dumper(str, _BinaryTextDumper)
    adapters.register_dumper(str, _TextDumper)
    adapters.register_loader("bool", _BoolLoader)


def session_settings(host: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session: these, and those of all. Sockets of this machine need no keepalive."""
    keepalive = {} if host.startswith("/") else _SERVER_KEEPALIVE
    return {"timezone": "UTC", **_PLANNING, **keepalive, **settings}


def set_configs(settings: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the statement that sets these settings in a session, and its parameters."""
    calls = ", ".join("set_config(%s, %s, false)" for _ in settings)
    return f"select {calls}", [part for setting in settings.items() for part in setting]


def connect(url: str, settings: Mapping[str, str]) -> Connection:
    """Open a session with these settings. StoreUnreachable where there is none to be had."""
    try:
        connection = psycopg.Connection.connect(connection_info(url), autocommit=True, prepare_threshold=1)
    except psycopg.Error as error:
        raise unreachable(error) from error
    register_types(connection.adapters)
    try:
        connection.execute(*set_configs(session_settings(connection.info.host, settings)))
        _check_server(url, connection)
    except psycopg.Error as error:
        connection.close()
        raise unreachable(error) from error
    except BaseException:
        connection.close()
        raise
    return connection


async def connect_async(url: str, settings: Mapping[str, str]) -> AsyncConnection:
    """Open a session for an event loop, without the checks of the server that `connect` makes."""
    connection: AsyncConnection | None = None
    try:
        connection = await psycopg.AsyncConnection.connect(connection_info(url), autocommit=True, prepare_threshold=1)
        register_types(connection.adapters)
        text: Any
        text, params = set_configs(session_settings(connection.info.host, settings))
        await connection.execute(text, params)
    except BaseException as error:
        if connection is not None:
            connection.pgconn.finish()
        if isinstance(error, psycopg.Error):
            raise unreachable(error) from error
        raise
    return connection


def _check_server(url: str, connection: Connection) -> None:
    ((version, session),) = connection.execute(SQL.server.postgres).fetchall()
    if version < SERVER_MIN:
        raise StoreError(f"the store needs PostgreSQL 14 or newer, the server is {version // 10000}")
    if session != connection.info.backend_pid and _is_shared(url, connection):
        raise StoreError(_SHARED_SESSION)


def _is_shared(url: str, connection: Connection) -> bool:
    """Tell whether a pooler is between us and the server that gives one session to two clients."""
    with psycopg.Connection.connect(url, autocommit=True, prepare_threshold=None) as other:
        for _ in range(3):
            ours, theirs = (one.execute(SQL.session.postgres).fetchall() for one in (connection, other))
            if ours == theirs:
                return True
    return False


class SessionSettings(NamedTuple):
    """The settings of a session for reading."""

    schema: str
    limit_s: float

    def settings(self) -> dict[str, str]:
        return {
            "search_path": self.schema,
            "statement_timeout": str(round(self.limit_s * 1000)),
            "default_transaction_read_only": "on",
            **_READER_PLANNING,
        }


def unreachable(error: psycopg.Error) -> StoreError:
    """Return the error without the server's address, which clients of the API need not know."""
    reason = re.sub(r"\s+", " ", str(error).rpartition("failed: ")[2]).strip()
    return StoreUnreachable(f"the PostgreSQL server cannot be used: {reason}")


def shown_url(url: str) -> str:
    """Return a URL without credentials, for the terminal and log files."""
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2] or 'the local server'}/{unquote(parts.path).lstrip('/')}"


def params_of_each(keys: Any) -> list[list[Any]]:
    """Return keys column by column: each column is one array parameter."""
    return [list(column) for column in zip(*keys, strict=True)]
