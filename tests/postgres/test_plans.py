"""Lists whose rows are found through their blocks or in batches: the server reads those blocks and the part of a batch
that is on the page, however long the tables are."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.postgres.server import server_url
from tests.store.opened import open_store, schema_of

from icefall.db.engine import Transaction
from icefall.db.postgres_session import Connection, SessionSettings, connect
from icefall.evm.reading.balances import SQL as BALANCES
from icefall.evm.reading.chain import SQL as CHAIN
from icefall.evm.reading.holders import SQL as HOLDERS
from icefall.evm.reading.lists.cached import SQL as STORED
from icefall.evm.reading.lists.joined import SQL as JOINED
from icefall.evm.reading.model import AFTER_ALL
from icefall.evm.reading.transfers import SQL as TRANSFERS
from icefall.evm.storing.store import PACKAGE

BLOCKS, PER_BLOCK = 2_000, 20
HOT, RARE, ABSENT = 1, 2, 3  # IDs of tokens
FIRST_HELD, HELD = 1000, 3_000  # tokens that HOLDER has
KINDS = {bytes: "bytea", int: "bigint", str: "text"}
ITEMS, HOLDER, BATCH = 5, 6, 5_000  # a token, who receives it, and how much of it with every 1000th block
ROWS = (
    "insert into address select i, decode(lpad(to_hex(i), 40, '0'), 'hex') from generate_series(1, 40) i",
    "insert into block select i, sha256(i::text::bytea), '', i, 20, '', '', '', '', '', i, 1, '', null, null, null "
    f"from generate_series(0, {BLOCKS - 1}) i",
    f"create temp table n as select i, i / {PER_BLOCK} as block, i % {PER_BLOCK} as index "
    f"from generate_series(0::bigint, {BLOCKS * PER_BLOCK - 1}) i",
    f"insert into address select {FIRST_HELD} + i, substr(sha256(i::text::bytea), 1, 20) "
    f"from generate_series(0, {HELD - 1}) i",
    rf"insert into held_token select {FIRST_HELD} + i, i, {HOLDER}, substr(sha256(i::text::bytea), 1, 3), '\x00' "
    f"from generate_series(0, {HELD - 1}) i",
    "insert into tx (tx_at, hash, sender, recipient, kind, amounts, selector, input, sender_balance) "
    r"select block << 24 | index, sha256(i::text::bytea), 10 + i % 30, 10 + i % 29, 23, '', '', '\x000002', '\x01' "
    "from n",
    "insert into erc20 select block << 24 | index, index, "
    r"case when i % 9973 = 0 then 2 when i % 2 = 0 then 1 else 4 end, 10 + i % 30, 10 + i % 29, '\x0105' from n",
    r"update erc20 set sender_balance = '\x01'",
    "update erc20 set touches = case when recipient = 15 then 2 when sender % 2 = 0 then 1 else 0 end",
    "insert into touch_rest select 16, block >> 2, block << 24 | index from n where index = 3",
    f"insert into erc1155 select i << 24 | 30, p, 3, {ITEMS}, 10, {HOLDER}, '', '' "
    f"from generate_series(0::bigint, {BLOCKS - 1}) i, "
    f"generate_series(0, case when i % 1000 = 500 then {BATCH - 1} else 0 end) p",
    f"insert into erc1155_of select {HOLDER}, log_at from erc1155 group by log_at",
)


@pytest.fixture(scope="module", params=[True, False])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A reader's, of a chain with 40,000 transfers, of which the server has statistics or not: it has none of tables
    that were just made."""
    path = tmp_path_factory.mktemp("plans") / "chain.postgres"
    store = open_store(path, PACKAGE)

    def fill(tx: Transaction) -> None:
        for statement in (*ROWS, "analyze") if request.param else ROWS:
            tx.run(statement)

    store.write_here(fill)
    store.close()
    opened = connect(server_url(), SessionSettings(schema_of(path), 30).settings())
    yield opened
    opened.close()


def rows_read(session: Connection, statement: str, params: dict[str, Any], table: str) -> int:
    """From the table or its key, with the plan that is made once for all parameters."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", statement).replace("%%", "%")
    kinds = ", ".join(KINDS[type(params[name])] for name in names)
    values = ", ".join(_literal(params[name]) for name in names)
    session.execute(f"prepare read ({kinds}) as {text}".encode())
    ((explained,),) = session.execute(f"explain (analyze, format json) execute read ({values})".encode()).fetchall()
    session.execute("deallocate read")
    plans = explained if isinstance(explained, list) else json.loads(explained)
    return sum(_read(plans[0]["Plan"], table))


def _literal(value: bytes | int | str) -> str:
    return f"'\\x{value.hex()}'" if isinstance(value, bytes) else repr(value)


def _read(plan: dict[str, Any], table: str) -> Iterator[int]:
    if plan.get("Relation Name") == table:
        yield (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    for below in plan.get("Plans", ()):
        yield from _read(below, table)


@pytest.mark.parametrize("token", [HOT, RARE, ABSENT])
@pytest.mark.parametrize("high", [BLOCKS, BLOCKS // 2, 20])
def test_transfers_of_a_token(session: Connection, token: int, high: int) -> None:
    params = {"address": token.to_bytes(20, "big"), "low": 0, "high": high << 24, "inside": 0, "limit": 11}
    assert rows_read(session, TRANSFERS.in_token.postgres, params, "erc20") <= 12 * PER_BLOCK
    assert rows_read(session, TRANSFERS.in_token.postgres, params, "tx") <= 11


@pytest.mark.parametrize("number", [7, BLOCKS * PER_BLOCK // 2, BLOCKS * PER_BLOCK - 1])
def test_a_transaction_by_its_hash(session: Connection, number: int) -> None:
    ((txid,),) = session.execute("select sha256(%s::text::bytea)", [number]).fetchall()
    params = {"hash": bytes(txid)}
    assert 0 < rows_read(session, CHAIN.tx.postgres, params, "tx") <= 4
    assert 0 < rows_read(session, CHAIN.tx.postgres, params, "erc20") <= 2 * PER_BLOCK


@pytest.mark.parametrize("high", [BLOCKS, 501, 500])
def test_transfers_of_an_address_with_large_batches(session: Connection, high: int) -> None:
    params = {"address": HOLDER.to_bytes(20, "big"), "low": 0, "high": high << 24, "limit": 100}
    assert rows_read(session, JOINED.erc1155_of.postgres, params, "erc1155") <= 4 * 100


@pytest.mark.parametrize("inside", [AFTER_ALL, 700])
def test_no_more_of_a_batch_is_sent_than_a_page_has(session: Connection, inside: int) -> None:
    positions = [block << 24 | 30 for block in (500, 1500)]
    params = {"positions": positions, "inside": inside, "limit": 100}
    rows = session.execute(STORED.erc1155_at.postgres.encode(), params).fetchall()
    last = min(inside, BATCH) - 1
    assert [row[1:3] for row in rows] == [(positions[1], at) for at in range(last, last - 100, -1)]


@pytest.mark.parametrize("inside", [-1, 700, BATCH - 2])
@pytest.mark.parametrize("last", [500, 501, 510])
def test_parts_of_a_page_with_a_large_batch(session: Connection, last: int, inside: int) -> None:
    """It is read in pieces, and each reads the batch only as far as it goes."""
    params = {
        "address": HOLDER.to_bytes(20, "big"),
        "first_tx": 500 << 24,
        "last_tx": last << 24 | 3,
        "low": 500 << 24 if inside < 0 else 500 << 24 | 30,
        "inside": inside,
        "high": (last + 1) << 24,
        "limit": 100,
    }
    assert 0 < rows_read(session, JOINED.transfers_of_page.postgres, params, "erc1155") <= 4 * 100


@pytest.mark.parametrize("high", [BLOCKS, BLOCKS // 2])
@pytest.mark.parametrize("name", ["txs_of", "erc20_of", "erc20_of_with_tokens"])
def test_lists_of_an_address(session: Connection, name: str, high: int) -> None:
    """They are views of the rows they list, each of which is found by its sender or by its recipient."""
    params = {"address": (15).to_bytes(20, "big"), "low": 0, "high": high << 24, "limit": 11, "currency": "usd"}
    table = "tx" if name == "txs_of" else "erc20"
    assert 0 < rows_read(session, JOINED.named(name).postgres, params, table) <= 2 * 12 + 11


@pytest.mark.parametrize("high", [BLOCKS, BLOCKS // 2])
@pytest.mark.parametrize("address", [15, 16, 17])
@pytest.mark.parametrize("name", ["touched", "touched_ascending"])
def test_transactions_that_concern_an_address(session: Connection, name: str, address: int, high: int) -> None:
    """They are marks of transfers, by sender and by recipient, besides a table of others."""
    params = {"address": address.to_bytes(20, "big"), "low": 0, "high": high << 24, "limit": 11}
    statement = JOINED.named(name).postgres
    found = rows_read(session, statement, params, "erc20"), rows_read(session, statement, params, "touch_rest")
    assert found[0] <= 2 * 12
    assert found[1] <= 12 + 3, "those of the same group of four blocks too"
    assert 0 < rows_read(session, statement, params, "tx") <= 4 * 12


@pytest.mark.parametrize("block", [BLOCKS, BLOCKS // 2])
def test_the_balance_of_a_holder(session: Connection, block: int) -> None:
    """It is in the newest transfer of the token that has one, out of thousands."""
    params = {"holder": 10, "address": HOT.to_bytes(20, "big"), "block": block}
    assert 0 < rows_read(session, HOLDERS.balance_before.postgres, params, "erc20") <= 2


@pytest.mark.parametrize("after", [b"", bytes([128]), bytes([128]) * 20])
def test_tokens_of_a_holder(session: Connection, after: bytes) -> None:
    """They are in the order of their first bytes, and of a page no more is read than it has."""
    params = {"address": HOLDER.to_bytes(20, "big"), "after": after, "block": BLOCKS, "limit": 11}
    assert 11 <= rows_read(session, BALANCES.erc20.postgres, params, "held_token") <= 11 + 3


@pytest.mark.parametrize("at", [0, HELD // 2, HELD - 1])
def test_a_token_of_a_holder(session: Connection, at: int) -> None:
    ((token,),) = session.execute("select address from address where id = %s", [FIRST_HELD + at]).fetchall()
    params = {"address": HOLDER.to_bytes(20, "big"), "token": bytes(token), "block": BLOCKS}
    assert 1 <= rows_read(session, BALANCES.erc20_in.postgres, params, "held_token") <= 3


@pytest.mark.parametrize("block", [BLOCKS, BLOCKS // 2])
def test_the_native_balance_of_a_sender(session: Connection, block: int) -> None:
    params = {"address": (10).to_bytes(20, "big"), "block": block}
    assert 0 < rows_read(session, BALANCES.native.postgres, params, "tx") <= 2
