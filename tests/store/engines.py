"""The engines the conformance suite runs on, each as a kit that opens stores. A second engine is a second kit."""

import itertools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from tests.postgres.server import new_prefix, shared_server

from icefall.db.engine import MigratedReader, Reader, Store
from icefall.db.postgres import PostgresReader, PostgresStore
from icefall.db.postgres_pool import ServerPool
from icefall.db.sqlite import SqliteReader, SqliteStore

NOTES = "create table note (id integer primary key, text text not null);\n"
_numbers = itertools.count()


def package_of(folder: Path, engine: str, scripts: Mapping[str, str]) -> str:
    """A new importable package with this schema file and these migrations: `{"schema": ..., "0102_notes": ...}`."""
    name = f"migrated_{next(_numbers)}"
    migrations = folder / name / "migrations"
    migrations.mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    for what, script in scripts.items():
        (folder / name if what == "schema" else migrations).joinpath(f"{what}.{engine}.sql").write_text(script)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return name


class Kit(Protocol):
    """The location of one store. `close` closes everything it opened."""

    name: str

    def open(self, scripts: Mapping[str, str], query_limit_s: float = 5.0) -> Store: ...

    def reader(self, query_limit_s: float = 5.0) -> MigratedReader: ...

    def slow(self) -> str:
        """A query that would run for minutes."""
        ...

    def close(self) -> None: ...


class SqliteKit:
    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "store.sqlite"
        self._opened: list[Reader] = []

    def open(self, scripts: Mapping[str, str], query_limit_s: float = 5.0) -> SqliteStore:
        store = SqliteStore(self.path, package_of(self._folder, self.name, scripts), query_limit_s)
        self._opened.append(store)
        return store

    def reader(self, query_limit_s: float = 5.0) -> SqliteReader:
        reader = SqliteReader(self.path, query_limit_s)
        self._opened.append(reader)
        return reader

    def slow(self) -> str:
        return "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"

    def close(self) -> None:
        for opened in reversed(self._opened):
            opened.close()
        if str(self._folder) in sys.path:
            sys.path.remove(str(self._folder))


class PostgresKit:
    name = "postgres"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.schema = new_prefix()
        self.pool = ServerPool(shared_server().url)
        self._opened: list[Reader] = []

    def open(self, scripts: Mapping[str, str], query_limit_s: float = 5.0, *, exclusive: bool = False) -> PostgresStore:
        own = {what: script.replace(" integer ", " bigint ") for what, script in scripts.items()}
        package = package_of(self._folder, self.name, own)
        store = PostgresStore(self.pool, self.schema, package, query_limit_s, exclusive=exclusive)
        self._opened.append(store)
        return store

    def reader(self, query_limit_s: float = 5.0) -> PostgresReader:
        return PostgresReader(self.pool, self.schema, query_limit_s)

    def slow(self) -> str:
        return "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"

    def close(self) -> None:
        for opened in reversed(self._opened):
            opened.close()
        self.pool.close()
        if str(self._folder) in sys.path:
            sys.path.remove(str(self._folder))


KITS: dict[str, Callable[[Path], Kit]] = {SqliteKit.name: SqliteKit, PostgresKit.name: PostgresKit}
