"""The files themselves: how schemas and migrations are found and numbered, and how named statements are read."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.engines import package_of

from icefall.db.engine import StoreOfOtherRelease
from icefall.db.migrate import FIRST, Migration, Schema, load_schema
from icefall.db.statements import load, parse


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def test_migrations_are_found_in_order_and_by_engine(folder: Path) -> None:
    package = package_of(folder, "sqlite", {"schema": "all", "0103_b": "two", "0102_a": "one"})
    (folder / package / "schema.postgres.sql").write_text("all of it")
    (folder / package / "migrations" / "0102_a.postgres.sql").write_text("other")
    (folder / package / "migrations" / "notes.txt").write_text("not one")
    assert load_schema(package, "sqlite") == Schema(
        Migration(103, "schema.sqlite.sql", "all"),
        (Migration(102, "0102_a.sqlite.sql", "one"), Migration(103, "0103_b.sqlite.sql", "two")),
    )
    assert load_schema(package, "postgres") == Schema(
        Migration(102, "schema.postgres.sql", "all of it"), (Migration(102, "0102_a.postgres.sql", "other"),)
    )


def test_a_package_may_have_no_migrations(folder: Path) -> None:
    package = package_of(folder, "sqlite", {"schema": "all"})
    (folder / package / "migrations").rmdir()
    assert load_schema(package, "sqlite") == Schema(Migration(FIRST, "schema.sqlite.sql", "all"), ())


@pytest.mark.parametrize("names", [["0103_a"], ["0102_a", "0104_c"], ["0102_a", "0102_b"], ["0001_a"], ["0101_a"]])
def test_a_gap_or_a_number_given_twice_is_refused(folder: Path, names: list[str]) -> None:
    package = package_of(folder, "sqlite", {"schema": ""} | dict.fromkeys(names, ""))
    with pytest.raises(ValueError, match=r"not numbered from 102 on"):
        load_schema(package, "sqlite")


def test_only_what_is_missing_is_pending() -> None:
    steps = tuple(Migration(number, f"{number:04}_x.sqlite.sql", "") for number in (102, 103))
    schema = Schema(Migration(103, "schema.sqlite.sql", ""), steps)
    assert schema.pending(0, "here") == [schema.creation]
    assert schema.pending(101, "here") == list(steps)
    assert schema.pending(102, "here") == [steps[1]]
    assert schema.pending(103, "here") == []
    with pytest.raises(StoreOfOtherRelease, match=r"here was written by a newer Icefall \(schema 104, .* 103"):
        schema.pending(104, "here")
    for number in (1, 10, 100):
        with pytest.raises(StoreOfOtherRelease, match="here was made by a development version: index again"):
            schema.pending(number, "here")


def test_statements_are_read_by_name() -> None:
    parsed = parse("a.sql", "-- what it is\n\n-- name: one\nselect 1;\n\n-- a note\n-- name:  two_b \nselect\n  2;\n")
    assert parsed.names() == ["one", "two_b"]
    assert parsed.one == "select 1"
    assert parsed.two_b == "select\n  2"
    with pytest.raises(AttributeError, match=r"a\.sql has no statement named three"):
        _ = parsed.three


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a\.sql names one twice"):
        parse("a.sql", "-- name: one\nselect 1;\n-- name: one\nselect 2;\n")


def test_fragments_are_written_once() -> None:
    text = "-- fragment: a\nx, {b};\n-- name: one\nselect {a} from t;\n-- postgres: one\nselect {a} from only t;\n"
    parsed = parse("a.sql", "-- fragment: b\ny;\n" + text)
    assert parsed.names() == ["one"]
    assert (parsed.one, parsed.one.postgres) == ("select x, y from t", "select x, y from only t")
    with pytest.raises(ValueError, match=r"a\.sql has no fragment c above its use"):
        parse("a.sql", "-- fragment: b\ny;\n-- name: one\nselect {c};\n-- fragment: c\nz;\n")
    with pytest.raises(ValueError, match=r"a\.sql has the fragment b twice"):
        parse("a.sql", "-- fragment: b\ny;\n-- fragment: b\nz;\n")
    assert parse("a.sql", "-- name: one\nselect {c};\n").one == "select {c}"  # of a template that the caller fills


def test_a_file_is_read_once() -> None:
    assert load("icefall.node", "queries.sql") is load("icefall.node", "queries.sql")
