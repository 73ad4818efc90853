"""The files themselves: how migrations are found and numbered, and how named statements are read."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.engines import package_of

from icefall.db.engine import StoreError
from icefall.db.migrate import Migration, migrations, pending
from icefall.db.statements import load, parse


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def test_migrations_are_found_in_order_and_by_engine(folder: Path) -> None:
    package = package_of(folder, "sqlite", {"0002_b": "two", "0001_a": "one"})
    (folder / package / "migrations" / "0001_a.postgres.sql").write_text("other")
    (folder / package / "migrations" / "notes.txt").write_text("not one")
    assert migrations(package, "sqlite") == [
        Migration(1, "0001_a.sqlite.sql", "one"),
        Migration(2, "0002_b.sqlite.sql", "two"),
    ]
    assert [step.script for step in migrations(package, "postgres")] == ["other"]


@pytest.mark.parametrize("names", [["0002_a"], ["0001_a", "0003_c"], ["0001_a", "0001_b"], ["0000_a"]])
def test_a_gap_or_a_number_given_twice_is_refused(folder: Path, names: list[str]) -> None:
    package = package_of(folder, "sqlite", dict.fromkeys(names, ""))
    with pytest.raises(ValueError, match=r"not numbered 1\.\.n"):
        migrations(package, "sqlite")


def test_only_what_is_missing_is_pending() -> None:
    known = [Migration(n, f"{n:04}_x.sqlite.sql", "") for n in (1, 2, 3)]
    assert pending(known, 0, "here") == known
    assert pending(known, 2, "here") == known[2:]
    assert pending(known, 3, "here") == []
    with pytest.raises(StoreError, match=r"here was written by a newer Icefall \(schema 4, this program knows 3\)"):
        pending(known, 4, "here")


def test_the_packages_own_migrations_are_numbered() -> None:
    own = migrations("icefall.node", "sqlite")
    assert [step.number for step in own] == list(range(1, len(own) + 1))
    assert own[0].name == "0001_node.sqlite.sql"


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
