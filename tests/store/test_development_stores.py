"""Stores that development versions made, before the first release: refused with what to do, and not changed at all."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.postgres.server import new_prefix, server_url
from tests.store.engines import NOTES, SqliteKit

from icefall.cli import main
from icefall.compose.stores import Stores
from icefall.db.engine import StoreOfOtherRelease
from icefall.db.wal import APPLICATION_ID, WRITING_ID

LAST = 10  # the highest number they gave
TEXT = "was made by a development version: index again"


def contents(folder: Path) -> dict[str, bytes]:
    """The -shm file is no part of a store: every reader changes it."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".lock", ".py", ".pyc"))
    return {str(path): path.read_bytes() for path in files if not path.name.endswith("-shm")}


def developed(path: Path, number: int, owner: int = APPLICATION_ID) -> sqlite3.Connection:
    """A store as it was left; its -wal file stays for as long as the connection is open."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute(NOTES)
    connection.execute(f"pragma user_version = {number}")
    connection.execute(f"pragma application_id = {owner}")
    return connection


@pytest.mark.parametrize("number", [1, LAST])
def test_a_file_keeps_every_byte(number: int, tmp_path: Path) -> None:
    kit = SqliteKit(tmp_path)
    developed(kit.path, number).close()
    before = contents(tmp_path)
    with pytest.raises(StoreOfOtherRelease, match=f"{kit.path} {TEXT}. Use another --data-dir .* was changed"):
        kit.open({"schema": NOTES})
    assert {name: raw for name, raw in contents(tmp_path).items() if not name.endswith(".sql")} == before
    kit.close()


@pytest.mark.parametrize("owner", [APPLICATION_ID, WRITING_ID])
def test_a_file_that_was_left_with_its_wal_file_keeps_both(owner: int, tmp_path: Path) -> None:
    kit = SqliteKit(tmp_path / "left")
    (tmp_path / "left").mkdir()
    with closing(developed(tmp_path / "made.sqlite", LAST, owner)):
        for ending in ("", "-wal"):  # as kill -9 leaves them
            Path(f"{kit.path}{ending}").write_bytes(Path(f"{tmp_path / 'made.sqlite'}{ending}").read_bytes())
    before = contents(tmp_path / "left")
    assert len(before) == 2
    with pytest.raises(StoreOfOtherRelease, match=TEXT):
        kit.open({"schema": NOTES})
    assert {name: raw for name, raw in contents(tmp_path / "left").items() if not name.endswith(".sql")} == before
    kit.close()


@pytest.mark.parametrize("verb", [["migrate"], ["keys", "list"], ["index", "--config-file={}"]])
def test_no_verb_changes_one(verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "chains").mkdir()
    chains = tmp_path / "chains.toml"
    chains.write_text('[[chain]]\nid = "7"\nname = "seven"\nrpc = "http://127.0.0.1:1"\n')
    for name, number in (("access", 3), ("node", 4), ("chains/7", LAST)):
        developed(tmp_path / f"{name}.sqlite", number).close()
    before = contents(tmp_path)
    assert main([*(word.format(chains) for word in verb), f"--data-dir={tmp_path}"]) == 1
    assert TEXT in capsys.readouterr().err
    assert {name: raw for name, raw in contents(tmp_path).items() if name in before} == before


@pytest.mark.parametrize("is_allowed_to_write", [True, False])
def test_a_schema_is_only_read(is_allowed_to_write: bool, tmp_path: Path) -> None:
    """A role that may only read gets the same answer: no statement changes anything."""
    prefix = new_prefix()
    schema, role = f"{prefix}_chain_7", f"reads_{prefix}"
    with psycopg.connect(server_url(), autocommit=True) as admin:
        admin.execute(f"create schema {schema}")
        admin.execute(f"create table {schema}.schema_version (number bigint not null primary key, commits bigint)")
        admin.execute(f"insert into {schema}.schema_version select n, 5 from generate_series(1, {LAST}) as n")
        admin.execute(f"create role {role} login")
        admin.execute(f"grant usage on schema {schema} to {role}")
        admin.execute(f"grant select on all tables in schema {schema} to {role}")
        rows = f"select xmin::text, xmax::text, * from {schema}.schema_version order by number"
        before = admin.execute(rows).fetchall()
        url = server_url() if is_allowed_to_write else server_url().replace("postgres@", f"{role}@")
        with closing(Stores(tmp_path, url, prefix)) as stores:
            for exclusive in (True, False):
                with pytest.raises(StoreOfOtherRelease, match=f"schema {schema} of .* {TEXT}"):
                    stores.chain_store("7", exclusive=exclusive)
        assert admin.execute(rows).fetchall() == before
        tables = admin.execute("select tablename from pg_tables where schemaname = %s", [schema]).fetchall()
        assert tables == [("schema_version",)]
