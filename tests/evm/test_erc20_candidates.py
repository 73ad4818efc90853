"""Candidates for ERC-20 balances with cached tokens are those that one statement joins."""

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from bench.evm_rows import Rows, address
from tests.awaited import awaited
from tests.evm.indexed import open_store

from icefall.db.sqlite import SqliteReader
from icefall.evm.reading import erc20_candidates
from icefall.evm.reading.erc20_candidates import Erc20Candidates

HOLDERS, BLOCKS = 12, 30
TOKENS = "select token from token order by token"
_MOVED = "holder, token, block, balance from erc20_balance_recent where (holder, token, block) = (?, ?, ?)"
# The rows that a server joins, in one statement of SQLite.
JOINED = """
select h.token_address, h.token, t.is_untrusted, coalesce(
    (select newest.balance from (
        select b.block, b.balance from erc20_balance b
        where b.holder = h.holder and b.token = h.token and b.block <= :block
        order by b.block desc limit 1) newest), h.baseline), p.reputation
from erc20_holding h
left join token_trust t on t.token = h.token
left join reputation p on p.token_address = h.token_address
where h.holder = (select id from address where address = :address) and h.token_address > :after
    and coalesce(t.standards & 1 <> 0 or :block < t.standards_since or t.standards_since = 0, true)
order by h.token_address limit :limit
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A chain on which few addresses hold many tokens, each of them as an audit, a list or a new deployment left it."""
    found = tmp_path / "chain.sqlite"
    store = open_store(found)
    asyncio.run(store.commit(list(Rows(HOLDERS, per_block=20, busy_every=5).blocks(BLOCKS))))
    store.close()
    draw = random.Random(7)
    with closing(sqlite3.connect(found, isolation_level=None)) as file:
        for (token,) in file.execute(TOKENS).fetchall():
            standards, since = draw.choice([(1, 0), (1, 0), (3, 9), (2, 0), (2, 5), (4, 20)])
            untrusted = draw.choice([None, None, 3])
            file.execute(
                "update token set standards = ?, standards_since = ?, untrusted_since = ? where token = ?",
                (standards, since, untrusted, token),
            )
            if draw.random() < 0.2:
                file.execute("insert into reputation select address, 'Malicious' from address where id = ?", (token,))
        file.execute("delete from token where token = (select min(token) from token)")
        # Rows of both parts in any order, as balances leave them that were corrected at old blocks.
        for key in file.execute("select holder, token, block from erc20_balance_recent").fetchall():
            if draw.random() < 0.5:
                file.execute(f"insert into erc20_balance_merged select {_MOVED}", key)
                file.execute("delete from erc20_balance_recent where (holder, token, block) = (?, ?, ?)", key)
    return found


@awaited
async def test_they_are_those_of_one_statement(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erc20_candidates, "CACHED_MAX", 20)
    with closing(SqliteReader(path)) as reader:
        candidates = Erc20Candidates(reader)
        seen = set()
        for number in range(HOLDERS + 1):
            for block in (0, 4, 5, 9, 19, 20, BLOCKS):
                after = b""
                while True:
                    rows = await candidates.rows(address(number), block, after, 4)
                    where = {"address": address(number), "block": block, "after": after, "limit": 4}
                    # Without a row that says otherwise, a token is not untrusted.
                    assert rows == [(*row[:2], bool(row[2]), *row[3:]) for row in reader.read(JOINED, where)]
                    seen.update(rows)
                    if len(rows) < 4:
                        break
                    after = rows[-1][0]
        assert {row[2] for row in seen} == {False, True}
        assert {row[4] for row in seen} == {None, "Malicious"}
        assert len({row[1] for row in seen}) > 20


@awaited
async def test_tokens_are_read_once_for_each_version_of_the_store(path: Path) -> None:
    with closing(SqliteReader(path)) as reader, closing(sqlite3.connect(path, isolation_level=None)) as other:
        candidates = Erc20Candidates(reader)
        statements: list[str] = []
        reader._connection.set_trace_callback(statements.append)
        pages = [await candidates.rows(address(number), BLOCKS, b"", 100) for number in (0, 0, 2)]
        assert len([one for one in statements if "token_trust" in one]) < 3
        assert pages[0] == pages[1]
        named = next(row for row in pages[0] if row[4] is None)
        other.execute("insert into reputation values (?, 'Benign')", (named[0],))
        (again,) = [row for row in await candidates.rows(address(0), BLOCKS, b"", 100) if row[:2] == named[:2]]
        assert again == (*named[:4], "Benign")
