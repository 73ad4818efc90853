"""A chain's schema written by the release before is migrated when this one opens it, and loses nothing."""

from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.digest import digests
from tests.evm.indexed import indexing
from tests.evm.older_rows import write_older_form
from tests.evm.test_store_migration import amount
from tests.store.opened import open_store, schema_of
from tests.upstream.evm_replay import EvmReplay

from icefall.db import postgres
from icefall.db.engine import Transaction
from icefall.db.migrate import migrations
from icefall.evm.storing.store import PACKAGE

CHAIN, HEAD = "geth-1", 60
BEFORE = 5  # migrations of the release before
CHANGED = {"tx", "tx_by_hash", "erc20_in", "erc20_holding", "erc20_holder"}


def old_schema(path: Path, current: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a current schema, in one that only has the migrations of the release before."""
    shipped = migrations(PACKAGE, "postgres")[:BEFORE]
    with monkeypatch.context() as patched:
        patched.setattr(postgres, "migrations", lambda package, engine: shipped)
        store = open_store(path, PACKAGE)
    source = schema_of(current)

    def copy(tx: Transaction) -> None:
        found = tx.rows("select tablename from pg_tables where schemaname = ?", (schema_of(path),))
        for (table,) in found:
            if table not in CHANGED and table != "schema_version":
                tx.run(f"insert into {table} select * from {source}.{table} on conflict do nothing")
        rows = tx.rows(f"select tx_at, hash, sender, recipient, amounts, kind, selector, input from {source}.tx")
        tx.run_many(
            "insert into tx (tx_at, hash, sender, recipient, value, nonce, gas_limit, gas_used, gas_price, max_fee, "
            "max_priority_fee, kind, selector, input) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*row[:4], *(amount(row[4], index) for index in range(7)), *row[5:]) for row in rows],
        )
        tx.run(
            "insert into erc20_holding (holder, token_address, token, since, baseline) "
            f"select h.holder, h.token_address, h.token, o.since, h.baseline from {source}.erc20_holding h "
            f"join {source}.erc20_holder o on o.token = h.token and o.holder = h.holder"
        )

    store.write_here(copy)
    store.close()


@awaited
async def test_a_schema_of_the_release_before_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    current, path = tmp_path / "current.postgres", tmp_path / "before.postgres"
    replay = EvmReplay(CHAIN)
    replay.shown = HEAD
    async with indexing(current, replay) as it:
        await it.follower.run()
    expected = digests(current)
    assert write_older_form(current)
    old_schema(path, current, monkeypatch)
    open_store(path, PACKAGE).close()
    assert digests(path) == expected
    replay.shown = 2 * HEAD
    for one in (current, path):
        async with indexing(one, replay) as it:
            await it.follower.run()
    assert digests(path) == digests(current) != expected
