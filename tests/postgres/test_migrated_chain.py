"""A chain's schema of the first release, with all its rows, is migrated: the same rows as in a file, and the same
structure as a new one."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.evm.reading_scene import indexed
from tests.postgres.citus import citus_nodes
from tests.postgres.server import new_prefix, server_url
from tests.store.engines import package_of
from tests.store.structure import structure
from tests.tidy.test_shipped_migrations import first_schema

from icefall.db.copying import StoredTable, compare_table, copy_table, tables_of
from icefall.db.engine import Transaction
from icefall.db.migrate import FIRST
from icefall.db.postgres import PostgresStore
from icefall.db.postgres_pool import ServerPool
from icefall.db.schema_file import declarations
from icefall.db.sqlite import SqliteReader
from icefall.evm.storing.store import PACKAGE

CHAIN = "geth-1"
FIRST_SCHEMA = first_schema("evm/schema.postgres.sql")
TOO_LARGE = 1 << 40  # for four bytes


@pytest.fixture(params=["postgres", "citus"])
def pool(request: pytest.FixtureRequest) -> Iterator[ServerPool]:
    found = ServerPool(server_url() if request.param == "postgres" else citus_nodes()[0])
    yield found
    found.close()


def first_store(pool: ServerPool, folder: Path, schema: str) -> PostgresStore:
    """An empty store as the first release made it."""
    return PostgresStore(pool, schema, package_of(folder, "postgres", {"schema": FIRST_SCHEMA}))


def filled(source: SqliteReader, store: PostgresStore) -> list[StoredTable]:
    """Copy what the first release had: then, no table was a view. The tables that have the same columns today."""
    declared = declarations(FIRST_SCHEMA)
    columns = {one.name: [column.name for column in one.columns()] for one in declared if one.kind == "table"}
    tables = [table for table in tables_of(PACKAGE) if columns.get(table.name) == list(table.columns)]
    for table in tables:
        copy_table(source, store, table, lambda _, __: None)
    return tables


def test_a_schema_of_the_first_release(pool: ServerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    schema, source = new_prefix(), SqliteReader(indexed(CHAIN).path)
    with closing(first_store(pool, tmp_path, schema)) as first:
        tables = filled(source, first)
        assert first.read("select number from schema_version") == [(FIRST,)]
        assert first.read("select count(*) from erc20_balance")[0][0] > 50
    with closing(PostgresStore(pool, schema, PACKAGE)) as migrated:
        assert {table.name: compare_table(source, migrated, table) for table in tables}["erc20"] > 50
        with closing(PostgresStore(pool, f"{schema}_new", PACKAGE)) as new:
            assert structure(migrated) == structure(new)
    source.close()


def test_an_interrupted_migration_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    found = ServerPool(server_url())
    request.addfinalizer(found.close)
    schema = new_prefix()
    with closing(first_store(found, tmp_path, schema)) as first:
        before = structure(first)

        def change(tx: Transaction) -> None:
            """A row that a number of four bytes does not hold: the migration fails at its last table."""
            tx.run("insert into native_balance values (1, ?, '', null)", (TOO_LARGE,))

        first.write_here(change)
    with pytest.raises(Exception, match="out of range"):
        PostgresStore(found, schema, PACKAGE)
    with closing(first_store(found, tmp_path, schema)) as first:
        assert structure(first) == before
        first.write_here(lambda tx: tx.run("delete from native_balance"))
    with closing(PostgresStore(found, schema, PACKAGE)) as migrated:
        assert migrated.read("select count(*) from erc20_balance") == [(0,)]
