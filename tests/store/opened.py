"""Stores of tests by a path, on either engine: a path that ends in `.postgres` names a schema of the throwaway server.

ICEFALL_TEST_STORE=postgres puts every store that is opened here on that server, whatever its path: whole suites can be
run there that normally run on SQLite alone.
"""

import atexit
import hashlib
import os
import signal
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.postgres.server import server_url
from tests.waiting import LIMIT_S

from icefall.db import sqlite
from icefall.db.copying import tables_of as copied_tables
from icefall.db.engine import BlockingReader, Row, StatementParams, Store, StoreInUse
from icefall.db.schema_docs import STORES
from icefall.db.sqlite import SqliteReader, SqliteStore
from icefall.db.statements import load

EVERYWHERE = os.environ.get("ICEFALL_TEST_STORE") == "postgres"
_deaths: list[int] = []  # the write at which this process is to die


def on_postgres(path: Path) -> bool:
    return EVERYWHERE or path.suffix == ".postgres"


def schema_of(path: Path) -> str:
    return f"t_{hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:16]}"


@cache
def pool() -> Any:
    from icefall.db.postgres_pool import ServerPool

    url = server_url()  # before: the pool is closed before its server stops
    found = ServerPool(url)
    atexit.register(found.close)
    return found


@cache
def _migrated(package: str) -> bytes:
    """The file of an empty store: all migrations take 20 times as long as opening it."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "empty.sqlite"
        SqliteStore(path, package).close()
        return path.read_bytes()


def make_empty(path: Path, package: str) -> None:
    """A store without rows, if there is none. A process that is to die at a write may do so in a migration."""
    if not path.exists() and not _deaths:
        path.write_bytes(_migrated(package))


def open_store(path: Path, package: str, *, exclusive: bool = False) -> Store:
    """`exclusive`: on a server, as the only writer, as soon as the one before has ended."""
    if not on_postgres(path):
        make_empty(path, package)
        return SqliteStore(path, package)
    from icefall.db.postgres import PostgresStore

    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            return PostgresStore(pool(), schema_of(path), package, exclusive=exclusive)
        except StoreInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


class _Immediate:
    """A reader that answers without suspending, as that of SQLite does."""

    def __init__(self, reader: BlockingReader) -> None:
        self.read = reader.read
        self.read_each = reader.read_each
        self.close = reader.close
        self.version = reader.version
        self.current_version = reader.current_version
        self.is_embedded = False
        self.joins_are_slow = False
        self.generation = 1

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        return self.read(statement, params)

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        return self.read(statement, [list(column) for column in zip(*keys, strict=True)]) if keys else []


def open_reader(path: Path) -> BlockingReader:
    if not on_postgres(path):
        return SqliteReader(path)
    from icefall.db.postgres import PostgresReader

    return _Immediate(PostgresReader(pool(), schema_of(path)))


@contextmanager
def tables_of(path: Path) -> Iterator["Tables"]:
    tables = SchemaTables(server_url(), schema_of(path)) if on_postgres(path) else FileTables(path)
    try:
        yield tables
    finally:
        tables.close()


class Tables:
    """Every table of a store, whole."""

    _connection: Any
    _list: str

    def names(self) -> list[str]:
        names = [name for (name,) in self._connection.execute(self._list).fetchall()]
        return sorted(name for name in names if name != "schema_version" and not name.startswith("sqlite_"))

    def rows(self, table: str, columns: str = "*", order: str = "") -> tuple[list[str], list[Row]]:
        cursor = self._connection.execute(f"select {columns} from {table}{f' order by {order}' if order else ''}")
        return [column[0] for column in cursor.description], cursor.fetchall()

    def columns(self, table: str) -> list[str]:
        cursor = self._connection.execute(f"select * from {table} limit 0")
        return [column[0] for column in cursor.description]

    def close(self) -> None:
        self._connection.close()


class FileTables(Tables):
    _list = load("icefall.db", "sqlite.sql").tables

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


@cache
def _on_file() -> dict[str, tuple[str, ...]]:
    """The columns of every table that a file may have."""
    return {table.name: table.columns for package in STORES for table in copied_tables(package)}


class SchemaTables(Tables):
    """The tables that a file has, whether the server has tables of these names or views, with their columns."""

    def __init__(self, url: str, schema: str) -> None:
        import psycopg

        self._connection = psycopg.Connection.connect(url, options=f"-c search_path={schema}", autocommit=True)
        self._list = (
            f"select tablename from pg_tables where schemaname = '{schema}' "
            f"union all select viewname from pg_views where schemaname = '{schema}'"
        )

    def names(self) -> list[str]:
        return [name for name in super().names() if name in _on_file()]

    def rows(self, table: str, columns: str = "*", order: str = "") -> tuple[list[str], list[Row]]:
        return super().rows(table, ", ".join(_on_file().get(table, "*")) if columns == "*" else columns, order)

    def columns(self, table: str) -> list[str]:
        return list(_on_file().get(table) or super().columns(table))


def die_at(write: int) -> None:
    """Kill this process for good at its n-th statement of a transaction."""
    from icefall.db import postgres

    _deaths.append(write)
    left = write

    def counted(method: Any) -> Any:
        def run(*args: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*args)

        return run

    transactions: Sequence[Any] = (sqlite._SqliteTransaction, postgres._PostgresTransaction)
    for transaction in transactions:
        for name in ("rows", "rows_of_each", "run", "run_many"):
            setattr(transaction, name, counted(getattr(transaction, name)))
