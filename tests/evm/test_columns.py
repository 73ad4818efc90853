"""Rows are tuples: the statements that write, read and compare them must list the same columns in the same order."""

import re
import sqlite3

import pytest

from icefall.db.migrate import load_schema
from icefall.db.statements import Statements
from icefall.evm.auditing import verify
from icefall.evm.reading import chain, transfers
from icefall.evm.reading.lists import joined, rows
from icefall.evm.storing import folding, writing
from icefall.evm.storing.store import PACKAGE

INSERTS = writing.INSERTS | folding.INSERTS
KNOWN = ("token", "name", "symbol", "decimals")  # of a token, and of the two parties
# Statements whose rows are decoded by position, and the columns that the decoder expects.
READ: dict[Statements, dict[tuple[str, ...], tuple[str, ...]]] = {
    chain.SQL: {rows.TX_COLUMNS: ("txs", "txs_with_status"), chain.FULL_TX_COLUMNS: ("tx", "tx_at")},
    joined.SQL: {
        rows.TX_COLUMNS: ("txs_of", "touched", "touched_ascending"),
        rows.TRANSFER_COLUMNS: ("erc20_of", "erc721_of", "erc1155_of", "erc1155_rest", "transfers_of_page"),
        (*rows.TRANSFER_COLUMNS, *KNOWN, "price", "listed", *KNOWN, "listed", *KNOWN, "listed"): (
            "erc20_of_with_tokens",
        ),
    },
    transfers.SQL: {
        rows.TRANSFER_COLUMNS: ("in_token", "transfers_of_tx"),
        transfers.INTERNAL_COLUMNS: ("internals_of", "internals_of_page", "internals_of_tx"),
        transfers.DEPLOYMENT_COLUMNS: ("deployment", "deployed_by"),
    },
}
EXPECTED = [
    pytest.param(getattr(file, name), columns, id=name)
    for file, by_columns in READ.items()
    for columns, names in by_columns.items()
    for name in names
]


def inserted_columns(table: str) -> list[str]:
    found = re.match(r"insert into (\w+) \(([^)]*)\)", INSERTS[table])
    assert found is not None
    assert found[1].removesuffix("_recent") == table, "the statement is of another table"
    return re.split(r",\s*", found[2])


@pytest.fixture(scope="module")
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(load_schema(PACKAGE, "sqlite").creation.script)
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


@pytest.mark.parametrize(("statement", "columns"), EXPECTED)
def test_reading_selects_the_columns_of_its_decoder(
    statement: str, columns: tuple[str, ...], database: sqlite3.Connection
) -> None:
    cursor = database.execute(statement, dict.fromkeys(re.findall(r":(\w+)", statement), 0))
    assert tuple(column[0] for column in cursor.description) == columns


@pytest.mark.parametrize("file", READ, ids=["chain.sql", "joined.sql", "transfers.sql"])
def test_every_statement_that_selects_all_columns_is_compared(file: Statements) -> None:
    compared = {name for names in READ[file].values() for name in names}
    assert {name for name in file.names() if re.search(r"select (\w\.)?\*", getattr(file, name))} <= compared
