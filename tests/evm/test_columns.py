"""Rows are tuples: the statements that write, read and compare them must list the same columns in the same order."""

import re
import sqlite3

import pytest

from icefall.db.migrate import migrations
from icefall.evm.auditing import verify
from icefall.evm.storing import folding, writing
from icefall.evm.storing.store import PACKAGE

INSERTS = writing.INSERTS | folding.INSERTS


def inserted_columns(table: str) -> list[str]:
    found = re.match(r"insert into (\w+) \(([^)]*)\)", INSERTS[table])
    assert found is not None
    assert found[1] == table, "the statement is of another table"
    return re.split(r",\s*", found[2])


@pytest.fixture(scope="module")
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for migration in migrations(PACKAGE, "sqlite"):
        connection.executescript(migration.script)
    return connection


@pytest.mark.parametrize("table", INSERTS)
def test_inserts_name_columns_of_their_table(table: str, database: sqlite3.Connection) -> None:
    columns = {row[1] for row in database.execute(f"pragma table_info({table})")}
    assert set(inserted_columns(table)) <= columns


@pytest.mark.parametrize("table", verify.COMPARED)
def test_verification_selects_the_inserted_columns(table: str, database: sqlite3.Connection) -> None:
    select, _ = verify.COMPARED[table]
    cursor = database.execute(select, {"from_at": 0, "to_at": 0})
    assert [column[0] for column in cursor.description] == inserted_columns(table)
