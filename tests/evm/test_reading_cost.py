"""Every query is bounded: a walk along an index, at the same cost anywhere in a list of any length."""

import re
import sqlite3
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.evm.reading_scene import now
from tests.steps import Steps

from icefall.db.migrate import load_schema
from icefall.db.sqlite import SqliteReader
from icefall.evm.encoding import position_of
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.evm.reading.balances import BalanceReader, HistoryReader
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.holders import HolderReader
from icefall.evm.reading.lists.cached import CachedLists
from icefall.evm.reading.model import PageRange
from icefall.evm.reading.tokens import TokenReader
from icefall.evm.reading.transfers import TransferReader
from icefall.evm.standards import load_statements
from icefall.evm.storing.store import PACKAGE

FILES = sorted(file.name for file in files("icefall.evm.reading").iterdir() if file.name.endswith(".sql"))
STATEMENTS = [
    ("icefall.evm.reading", file, name)
    for file in FILES
    for name in load_statements("icefall.evm.reading", file).names()
]
ROLLBACK = ("icefall.evm.storing", "rollback.sql")
# What is scanned in a plan and is no table: one row, a list that was given, or the rows found by the steps before.
FEW_ROWS = ("CONSTANT ROW", "counted", "json_each", "newest", "oldest", "page", "rolled_back", "wanted")
BUSY, QUIET, TOKEN = b"\x01" * 20, b"\x02" * 20, b"\x03" * 20
MANY, FEW = 50_000, 10  # whether a list is walked or sought is seen long before that


def made(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    connection.executescript(load_schema(PACKAGE, "sqlite").creation.script)
    return connection


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    connection = made(tmp_path_factory.mktemp("empty") / "empty.sqlite")
    yield connection
    connection.close()


def plan(statement: str, empty: sqlite3.Connection) -> list[str]:
    in_order = re.findall(r"\?\d*", statement)
    params: Any = [1] * len(in_order) if in_order else dict.fromkeys(re.findall(r":(\w+)", statement), 1)
    return [row[3] for row in empty.execute(f"explain query plan {statement}", params)]


@pytest.mark.parametrize(("package", "file", "name"), STATEMENTS, ids=[name for _, _, name in STATEMENTS])
def test_plans_are_seeks(package: str, file: str, name: str, empty: sqlite3.Connection) -> None:
    steps = plan(load_statements(package, file).named(name), empty)
    assert steps
    for before, step in pairwise(["", *steps]):
        assert "TEMP B-TREE" not in step or before in ("SCAN page", "SCAN counted"), steps
        assert not step.startswith("SCAN") or step.removeprefix("SCAN ").startswith(FEW_ROWS), steps
        assert "AUTOMATIC" not in step, steps
    if "SCAN page" in steps and name != "in_token":  # its order is that of the answer
        joined = [step for step in steps if step.startswith(("SEARCH e ", "SEARCH t "))]
        assert joined
        assert all(steps.index("SCAN page") < steps.index(step) for step in joined), steps


@pytest.mark.parametrize("name", load_statements(*ROLLBACK).names())
def test_a_rollback_seeks_what_it_deletes(name: str, empty: sqlite3.Connection) -> None:
    """It may sort what is rolled back, and pass through what it found of a table in two parts."""
    steps = plan(getattr(load_statements(*ROLLBACK), name), empty)
    for step in steps:
        scanned = step.removeprefix("SCAN ")
        parts = [found for found in steps if found.startswith(f"SEARCH {scanned}_")]
        assert not step.startswith("SCAN") or step.removeprefix("SCAN ").startswith(FEW_ROWS) or len(parts) == 2, steps
        assert "AUTOMATIC" not in step, steps


EACH = "with recursive n (i) as (values (0) union all select i + 1 from n where i < :last) "
MINE = "case when i < :many then 1 else 2 end"
ID = "cast(printf('%032d', i) as blob)"
ROWS = (
    f"insert into block select i, {ID}, {ID}, i, 1, x'00', x'00', x'00', x'00', x'00', i, 1, x'', null, null, null "
    "from n",
    f"insert into tx select i << 24, {ID}, {MINE}, 3, 4, x'0000000000ffff', x'', x'' from n",
    "insert into tx_by_hash select substr(hash, 1, 4), tx_at >> 24 from tx",
    "insert into erc20_in select 3, i, 0, 0 from n",
    f"insert into native_of select {MINE}, i << 24 from n where i % 2",
    f"insert into touch_of select {MINE}, i << 24 from n where i % 2 = 0",
    f"insert into erc20 select i << 24, 0, 3, {MINE}, 3, x'00' from n",
    f"insert into erc20_of select {MINE}, i << 24 from n",
    f"insert into erc721 select i << 24 | 1, 0, 3, {MINE}, 3, x'00', null from n",
    f"insert into erc721_of select {MINE}, i << 24 | 1 from n",
    f"insert into erc1155 select i << 24 | 2, 0, 0, 3, {MINE}, 3, x'00', x'00' from n",
    f"insert into erc1155_of select {MINE}, i << 24 | 2 from n",
    f"insert into internal select i << 24, 1, 'CALL', {MINE}, 3, x'00', x'00', x'00', 0 from n",
    f"insert into internal_of select {MINE}, i << 24, 1 from n",
    f"insert into deployment select 3, i << 24, 1, {MINE} from n",
    f"insert into deployed_by select {MINE}, i << 24, 1 from n",
    f"insert into native_balance select {MINE}, i, x'00', null from n",
    f"insert into erc20_balance select {MINE}, 3, i, x'0105' from n",
    "insert into address select i + 10, cast(printf('%020d', i) as blob) from n",
    "insert into token (token, first_block, standards, kind, name, symbol)"
    " select i + 10, i, 1, 'ERC-20', printf('Token %07d', i), printf('T%07d', i) from n",
    f"insert into nft (token, token_id, first_block, retry_at) select 3, {ID}, i, null from n",
    f"insert into holder select 3, 1, i + 10, {ID} from n",
)
BATCH = position_of(MANY + FEW - 1, 7), 5000


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteReader]:
    """One address with 50,000 of everything, and one with 10."""
    path = tmp_path_factory.mktemp("large") / "large.sqlite"
    connection = made(path)
    connection.executemany("insert into address (id, address) values (?, ?)", [(1, BUSY), (2, QUIET), (3, TOKEN)])
    for statement in ROWS:
        connection.execute(EACH + statement, {"last": MANY + FEW - 1, "many": MANY})
    for holder in (1, 2):
        connection.execute("insert into erc20_holding values (?, ?, 3, x'00')", (holder, TOKEN))
    batch = [(BATCH[0], position) for position in range(BATCH[1])]
    connection.executemany("insert into erc1155 values (?, ?, 0, 3, 2, 3, x'00', x'00')", batch)
    connection.execute("insert into erc1155_of values (2, ?)", (BATCH[0],))
    connection.commit()
    connection.close()
    opened = SqliteReader(path)
    opened.read("select 1 from block limit 1")  # the first one reads the schema
    yield opened
    opened.close()


Of = Callable[[bytes, PageRange, int], Coroutine[Any, Any, Sequence[Any]]]
LISTS: dict[str, Callable[[SqliteReader], Of]] = {
    "native": lambda reader: CachedLists(reader).txs_of,
    "touched": lambda reader: CachedLists(reader).touched_txs,
    "erc20": lambda reader: partial(CachedLists(reader).transfers_of, ERC20),
    "erc721": lambda reader: partial(CachedLists(reader).transfers_of, ERC721),
    "internals": lambda reader: TransferReader(reader).internals_of,
}


@pytest.mark.parametrize("name", LISTS)
def test_a_page_costs_the_same_wherever_it_is(reader: SqliteReader, name: str) -> None:
    of = LISTS[name](reader)
    costs = []
    spans = [
        (QUIET, PageRange()),
        (BUSY, PageRange()),
        (BUSY, PageRange(before=(position_of(MANY // 2, 0), 0))),
        (BUSY, PageRange(before=(position_of(11, 0), 0))),
        (BUSY, PageRange(MANY // 3, MANY // 3 + 100)),
    ]
    for address, span in spans:
        with Steps(reader) as steps:
            rows = now(of(address, span, 5))
        assert len(rows) == 5
        costs.append(steps.count)
    assert max(costs) <= 1.3 * min(costs), costs


def test_lists_of_a_token_and_of_everyone(reader: SqliteReader) -> None:
    costs = []
    for before in (MANY, MANY // 2, 40):
        with Steps(reader) as steps:
            assert (
                len(now(TransferReader(reader).in_token(TOKEN, PageRange(before=(position_of(before, 0), 0)), 6))) == 6
            )
        costs.append(steps.count)
    assert max(costs) <= 1.3 * min(costs), costs
    with Steps(reader) as steps:
        assert now(ChainReader(reader).newest_txs(None, 10, status=0)) == ([], position_of(MANY + FEW - 5000, 0))
    assert steps.count < 100_000


def test_ascending(reader: SqliteReader) -> None:
    costs = []
    for after in (None, (position_of(MANY // 2, 0),), (position_of(MANY - 20, 0),)):
        with Steps(reader) as steps:
            assert len(now(CachedLists(reader).touched_txs(BUSY, PageRange(before=after), 5, ascending=True))) == 5
        costs.append(steps.count)
    assert max(costs) <= 1.3 * min(costs), costs


def test_inside_a_large_batch(reader: SqliteReader) -> None:
    costs = []
    transfers = TransferReader(reader)
    lists: list[tuple[Of, bytes]] = [
        (partial(CachedLists(reader).transfers_of, ERC1155), QUIET),
        (transfers.in_token, TOKEN),
    ]
    for of, address in lists:
        for position in (4999, 2500, 20):
            with Steps(reader) as steps:
                rows = now(of(address, PageRange(before=(BATCH[0], position)), 5))
            assert [row.position for row in rows] == list(range(position - 1, position - 6, -1))
            costs.append(steps.count)
        assert max(costs) <= 1.5 * min(costs), costs
        costs.clear()


def test_deployments_of_a_contract_that_was_deployed_50_000_times(reader: SqliteReader) -> None:
    """The latest one was by another: all pages are empty, and each is the same small part of the list."""
    transfers, costs = TransferReader(reader), []
    for before in (None, (position_of(MANY // 2, 0), 1), (position_of(6000, 0), 1)):
        with Steps(reader) as steps:
            rows, more = now(transfers.deployed_by(BUSY, before, 10))
        assert rows == []
        assert more is not None
        costs.append(steps.count)
    assert max(costs) <= 1.3 * min(costs), costs
    assert max(costs) < 1_000_000
    rows, more = now(transfers.deployed_by(QUIET, None, 10))
    assert [row.tx_at for row in rows] == [position_of(MANY + FEW - 1, 0)]
    assert more is None


def test_balances_do_not_cost_history(reader: SqliteReader) -> None:
    balances = BalanceReader(reader, None)
    for address in (BUSY, QUIET):
        now(balances.erc20(address, 0, None, 10))  # what is known of tokens is read once
    costs = []
    for address in (BUSY, QUIET):
        for block in (0, MANY // 2, MANY + FEW):
            with Steps(reader) as steps:
                now(balances.erc20(address, block, None, 10))
            if address == BUSY:
                costs.append(steps.count)
    assert max(costs) <= 1.3 * min(costs), costs
    for block in (0, MANY // 2, MANY):
        with Steps(reader) as steps:
            assert now(balances.native(BUSY, block)) == 0
        assert steps.count < 200


Page = Callable[[SqliteReader, int], Coroutine[Any, Any, Any]]
NEWEST = MANY + FEW
# Ten rows of each list of the Explorer, behind the row of a block.
EXPLORER: dict[str, Page] = {
    "blocks": lambda reader, at: ChainReader(reader).page(at, 10),
    "transactions": lambda reader, at: ChainReader(reader).newest_txs(position_of(at, 0), 10),
    "tokens": lambda reader, at: TokenReader(reader).tokens((at, 0), 10),
    "tokens of a standard": lambda reader, at: TokenReader(reader).tokens((at, 0), 10, "ERC-20"),
    "search": lambda reader, at: TokenReader(reader).search(f"Token {at - 20:07}"[:-1], 10),
    "NFTs": lambda reader, at: TokenReader(reader).nfts(TOKEN, f"{at - 20:032}".encode(), 10),
    "holders by balance": lambda reader, at: HolderReader(reader).by_balance(TOKEN, ERC20, (_balance(at), at), 10),
    "holders by ID": lambda reader, at: HolderReader(reader).by_id(TOKEN, ERC20, at - 20, 10),
    "native balances": lambda reader, at: HistoryReader(reader).native(BUSY, 0, min(at, MANY), 10),
    "token balances": lambda reader, at: HistoryReader(reader).erc20(BUSY, TOKEN, 0, min(at, MANY), 10),
}


def _balance(at: int) -> int:
    """A number that is packed to the balance of a holder, and zeros behind it: its first byte is a length, 48."""
    return int.from_bytes(f"{at:032}".encode()[1:].ljust(48, b"\0"), "big")


@pytest.mark.parametrize("name", EXPLORER)
def test_a_page_of_the_explorer_costs_the_same_wherever_it_is(reader: SqliteReader, name: str) -> None:
    costs = []
    for at in (NEWEST, MANY // 2, 40):
        with Steps(reader) as steps:
            found = now(EXPLORER[name](reader, at))
        rows = found[0] if isinstance(found, tuple) else found
        assert len(rows) == 10
        costs.append(steps.count)
    assert max(costs) <= 1.3 * min(costs), costs
    assert max(costs) < 1_000, "no more rows are read than a page has"
