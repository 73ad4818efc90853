"""The table of token standards: its rows fit the tables, the calls and the statements that are made from them."""

import sqlite3
from pathlib import Path

import pytest

import icefall
from icefall.db.migrate import load_schema
from icefall.db.statements import parse
from icefall.evm.contract_calls import balance_of, balance_of_id, holding_call, owner_of, uri_call
from icefall.evm.model import ERC20, ERC721, ERC1155, BlockRows, ProbedStandard
from icefall.evm.standards import (
    BY_ID,
    BY_NUMBER,
    STANDARDS,
    WITH_IDS,
    Holding,
    TokenStandard,
    load_statements,
    rows_of_statements,
)
from icefall.evm.storing.store import PACKAGE
from icefall.wire.evm.events import Erc1155Moved
from icefall.wire.evm.rlp import keccak256

TOKEN, HOLDER, TOKEN_ID = bytes(range(20)), bytes([7] * 20), 2**255 + 9
CALLS = {
    "ERC-20": ("balanceOf(address)", ""),
    "ERC-721": ("ownerOf(uint256)", "tokenURI(uint256)"),
    "ERC-1155": ("balanceOf(address,uint256)", "uri(uint256)"),
}
each_standard = pytest.mark.parametrize("standard", STANDARDS, ids=lambda standard: standard.name)


def selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4] if signature else b""


@pytest.fixture(scope="module")
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(load_schema(PACKAGE, "sqlite").creation.script)
    return connection


def test_numbers_are_bits_of_their_own() -> None:
    assert [standard.number for standard in STANDARDS] == [1 << place for place in range(len(STANDARDS))]
    assert set(BY_NUMBER) == {ERC20, ERC721, ERC1155}
    assert {kind.value for kind in ProbedStandard if kind.value} <= {standard.name for standard in STANDARDS}


@each_standard
def test_selectors_are_those_of_the_signatures(standard: TokenStandard) -> None:
    holding, uri = CALLS[standard.name]
    assert standard.holding_selector == selector(holding)
    assert standard.uri_selector == selector(uri)
    assert standard.has_ids == bool(uri)


def test_calls_name_what_the_standard_holds() -> None:
    holder, token_id = HOLDER.rjust(32, b"\0"), TOKEN_ID.to_bytes(32, "big")
    expected = {
        Holding.AMOUNT: ("70a08231", holder, balance_of(TOKEN, HOLDER)),
        Holding.OWNER: ("6352211e", token_id, owner_of(TOKEN, TOKEN_ID)),
        Holding.AMOUNT_BY_ID: ("00fdd58e", holder + token_id, balance_of_id(TOKEN, HOLDER, TOKEN_ID)),
    }
    for standard in STANDARDS:
        called, arguments, short = expected[standard.holding]
        call = holding_call(standard, TOKEN, HOLDER, TOKEN_ID)
        assert call == short
        assert (call.to, call.data) == (TOKEN, bytes.fromhex(called) + arguments)
    assert [uri_call(one, TOKEN, TOKEN_ID).data for one in WITH_IDS] == [
        selector("tokenURI(uint256)") + token_id,
        selector("uri(uint256)") + token_id,
    ]


@each_standard
def test_columns_are_those_of_the_table(standard: TokenStandard, database: sqlite3.Connection) -> None:
    columns = [row[1] for row in database.execute(f"pragma table_info({standard.table})")]
    assert sorted(columns) == sorted(standard.columns)
    assert f"{standard.table}_transfers" in BlockRows.__struct_fields__


@each_standard
def test_every_standard_has_the_statements_that_are_found_by_its_table(standard: TokenStandard) -> None:
    table = standard.table
    wanted = {
        ("storing", "writes.sql"): (f"put_{table}", f"put_{table}_of"),
        ("storing", "rollback.sql"): (f"drop_{table}", f"drop_{table}_of", f"moved_{table}", f"restate_{table}"),
        ("storing", "holders.sql"): (f"moved_{table}", f"{table}_held"),
        ("storing", "clear.sql"): (f"clear_{table}", f"clear_{table}_of"),
        ("auditing", "audit.sql"): (f"moves_of_{table}", f"{table}_oldest", f"{table}_from", f"{table}_by_key"),
        ("auditing", "verify.sql"): (table, f"{table}_page"),
    }
    for (folder, file), names in wanted.items():
        found = load_statements(f"icefall.evm.{folder}", file)
        assert set(names) <= set(found.names()), file


def test_a_template_is_read_once_for_each_row() -> None:
    text = """
-- name: plain
select '{braces}' from a;
-- name: drop_{kind}_of
delete from {kind}_of where x in ({marks});
-- postgres: drop_{kind}_of
delete from only {kind}_of where x in ({marks});
"""
    rows = {"kind": [{"kind": "a", "marks": "?"}, {"kind": "b", "marks": "?, ?"}]}
    found = parse("test", text, rows)
    assert found.names() == ["plain", "drop_a_of", "drop_b_of"]
    assert found.plain == "select '{braces}' from a"
    assert found.each("drop_{kind}_of") == [found.drop_a_of, found.named("drop_b_of")]
    assert found.drop_b_of == "delete from b_of where x in (?, ?)"
    assert found.drop_b_of.postgres == "delete from only b_of where x in (%s, %s)"
    with pytest.raises(ValueError, match=r"nothing is given for \{kind\} of drop_\{kind\}_of"):
        parse("test", text)
    with pytest.raises(ValueError, match="names drop_a_of twice"):
        parse("test", text + "-- name: drop_a_of\nselect 1;", rows)


def test_a_fourth_standard_gets_its_statements_from_its_row() -> None:
    """A standard that holds amounts of IDs, as ERC-1155 does: its tables are named in no statement of today."""
    fourth = TokenStandard(
        8, "ERC-6909", "erc6909", Erc1155Moved, BY_ID[0].columns, Holding.AMOUNT_BY_ID, b"\0" * 4, b"\1" * 4
    )
    rows = rows_of_statements((*STANDARDS, fourth))
    source = Path(icefall.__file__).parent
    for file in (
        "evm/storing/rollback.sql",
        "evm/storing/holders.sql",
        "evm/auditing/audit.sql",
        "metrics/queries.sql",
        "evm/reading/balances.sql",
        "evm/reading/lists/joined.sql",
        "evm/reading/lists/stored.sql",
    ):
        found = parse(file, (source / file).read_text(), rows)
        own = [name for name in found.names() if "erc6909" in name]
        assert own
        assert all("erc6909" in found.named(name) for name in own)


def test_a_list_of_all_standards_names_each_table_once() -> None:
    text = """
-- fragment: {kind}_of_tx
select x from {kind};
-- fragment: {kind}_page
({{kind}_of_tx} limit 1);
-- name: all
{union {kind}_of_tx}
order by x;
-- postgres: all
{union {kind}_page};
"""
    rows = {"kind": [{"kind": "a"}, {"kind": "b"}]}
    found = parse("test", text, rows).all
    assert found == "select x from a\nunion all\nselect x from b\norder by x"
    assert found.postgres == "(select x from a limit 1)\nunion all\n(select x from b limit 1)"
    with pytest.raises(ValueError, match=r"no fragment \{kind\}_of above its use"):
        parse("test", text + "-- name: other\n{union {kind}_of};", rows)
