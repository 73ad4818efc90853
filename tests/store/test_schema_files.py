"""The schema files: every table says what a row means, and both engines have the same tables."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from importlib.resources import files

import pytest

from icefall.db.copying import tables_of
from icefall.db.migrate import load_schema
from icefall.db.schema_docs import STORES
from icefall.db.schema_file import Column, Declared, declarations, expanded
from icefall.evm.storing.recent import SPLIT_TABLES

ONLY_ON_SERVERS = {"touch_rest", "native_rest", "held_token"}  # parts of views that are tables of a file
OTHER_ORDER = {"tx"}  # with the hash behind the numbers, which need no padding then
OTHER_KEYS = {"ledger_tx"}  # has two unique constraints, of which PostgreSQL makes the other one the primary key
POSTGRES_TYPES = {"integer": "bigint", "int4": "bigint", "blob": "bytea", "real": "double precision", "text": "text"}


def declared(package: str, engine: str) -> Mapping[str, Declared]:
    text = files(package).joinpath(f"schema.{engine}.sql").read_text("utf-8")
    return {one.name: one for one in declarations(text)}


def described(package: str, engine: str) -> Mapping[str, Declared]:
    return {name: one for name, one in declared(package, engine).items() if one.kind in ("table", "view")}


@pytest.mark.parametrize("package", STORES)
def test_every_table_says_what_a_row_means(package: str) -> None:
    for one in described(package, "sqlite").values():
        assert one.comment.startswith("A row"), one.name
        assert " Serves: " in one.comment, one.name
        assert " Key: " in one.comment or one.kind == "view", one.name


@pytest.mark.parametrize("package", STORES)
def test_both_engines_say_the_same(package: str) -> None:
    embedded, server = described(package, "sqlite"), described(package, "postgres")
    assert list(embedded) == [name for name in server if name not in ONLY_ON_SERVERS]
    for name, one in server.items():
        if name in ONLY_ON_SERVERS:
            assert one.comment.startswith("A row says: ")
            continue
        assert embedded[name].comment.startswith(one.comment), name
        assert one.comment.endswith("."), name
        assert one.section == embedded[name].section


@pytest.mark.parametrize("package", STORES)
def test_both_engines_have_the_same_columns_and_keys(package: str) -> None:
    def plain(column: Column) -> tuple[str, str, bool]:
        kind = "double precision" if column.kind.startswith("double") else column.kind.partition(" ")[0]
        return column.name, POSTGRES_TYPES.get(kind, kind), "not null" in column.kind

    server = declared(package, "postgres")
    for name, one in declared(package, "sqlite").items():
        if one.kind == "table" and server[name].kind == "table":  # of views, `tests/store/conformance` reads all rows
            embedded = [plain(column) for column in one.columns()]
            on_server = [plain(column) for column in server[name].columns()]
            if name in OTHER_ORDER:
                assert set(embedded) <= set(on_server)
            else:
                assert on_server[: len(embedded)] == embedded
            assert one.key() == server[name].key() or name in OTHER_KEYS
        if one.kind == "index":
            assert server[name].kind == "index"


@pytest.mark.parametrize("package", STORES)
def test_what_is_read_of_a_table_is_what_is_created(package: str) -> None:
    """Copying stores asks SQLite itself; the page of the tables reads the file."""
    read = {name: one for name, one in declared(package, "sqlite").items() if one.kind == "table"}
    created = {table.name: table for table in tables_of(package)}
    assert sorted(read) == sorted(created)
    for name, table in created.items():
        assert tuple(column.name for column in read[name].columns()) == table.columns
        assert tuple(read[name].key()) == table.key


def test_tables_in_two_parts_are_those_whose_rows_are_moved() -> None:
    marked = {name: one for name, one in declared("icefall.evm", "sqlite").items() if one.is_in_two_parts}
    assert sorted(marked) == sorted(table.name for table in SPLIT_TABLES)
    for table in SPLIT_TABLES:
        assert [column.name for column in marked[table.name].columns()] == list(table.columns)
        assert marked[table.name].key() == list(table.key)


SCRIPT = """-- What the file is about.

-- # Things
-- More of them.

-- A row is a thing.
-- in two parts
create table thing (
    id integer not null, -- a number, (of sorts)
    kind text not null default 'a', place integer check (place in (1, 2)),
    primary key (id, kind) -- the last one
) without rowid;
create index thing_place on other (place);
"""


def test_a_file_is_read() -> None:
    thing, index = declarations(SCRIPT)
    assert (thing.kind, thing.name, thing.section, thing.comment) == ("table", "thing", "Things", "A row is a thing.")
    assert thing.columns() == [
        Column("id", "integer not null", "a number, (of sorts)"),
        Column("kind", "text not null default 'a'", ""),
        Column("place", "integer check (place in (1, 2))", ""),
    ]
    assert thing.key() == ["id", "kind"]
    assert (index.kind, index.name, index.comment, index.is_in_two_parts) == ("index", "thing_place", "", False)


def test_what_creates_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="only creates tables"):
        declarations("insert into thing values (1);\n")


def test_a_table_in_two_parts_is_written_and_read_as_one() -> None:
    with closing(sqlite3.connect(":memory:")) as store:
        store.executescript("create table other (place integer);\n" + expanded(SCRIPT))
        store.execute("insert into thing_recent (id, kind, place) values (1, 'new', 1)")
        store.execute("insert into thing (id, kind, place) values (2, 'old', 2), (3, 'old', 1)")
        assert store.execute("select * from thing order by id").fetchall() == [
            (1, "new", 1),
            (2, "old", 2),
            (3, "old", 1),
        ]
        assert store.execute("select id from thing_merged").fetchall() == [(2,), (3,)]
        store.execute("delete from thing where id < 3")
        assert store.execute("select id from thing").fetchall() == [(3,)]


def test_a_script_without_such_tables_stays_as_it_is() -> None:
    text = files("icefall.access").joinpath("schema.sqlite.sql").read_text("utf-8")
    assert load_schema("icefall.access", "sqlite").creation.script == text == expanded(text)
