"""A chain's store written by the release before is migrated when this one opens it, and loses nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.digest import digests
from tests.evm.indexed import NO_RAW, indexing, open_store
from tests.evm.older_rows import write_older_form
from tests.evm.recordings import tokens
from tests.upstream.evm_replay import EvmReplay

from icefall.compose.stores import Stores
from icefall.db import sqlite
from icefall.db.engine import Row, StoreError
from icefall.db.migrate import migrations
from icefall.evm.encoding import pack_uint, unpack_uints
from icefall.evm.health import chain_health
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.raw import SQL as RAW
from icefall.evm.reading.transfers import SQL as TRANSFERS
from icefall.evm.status import decode_status
from icefall.evm.storing.store import PACKAGE, ChainStore

CHAIN, OLD_HEAD, NEW_HEAD = "geth-1", 60, 120
OLD_STATUS = '{"at":1800000000.0,"heard_at":1799999999.0,"synced":true,"head":60,"target":60,"counts":{"blocks":61}}'
OLD_NAMES = {"fact": "meta"}  # tables of the first release that have another name now
FIRST = 2  # the migrations of the first release


FIRST_ROWS = {  # of tables that had other columns: those that it would have stored
    "tx": """select tx_at, hash, sender, recipient, amount(amounts, 0), amount(amounts, 1), amount(amounts, 2),
        amount(amounts, 3), amount(amounts, 4), amount(amounts, 5), amount(amounts, 6), kind, selector, input
        from current.tx""",
    "erc20_holding": """select h.holder, h.token_address, h.token, o.since, h.baseline from current.erc20_holding h
        join current.erc20_holder o on o.token = h.token and o.holder = h.holder""",
}


BY_HASH = "select substr(hash, 1, 6), tx_at from current.tx"
OLDER_ROWS = {  # the same, up to migration 0009
    "tx_by_hash": BY_HASH,
    "tx_by_hash_recent": f"{BY_HASH} where tx_at % 2 = 0",
    "tx_by_hash_merged": f"{BY_HASH} where tx_at % 2 = 1",
}


def amount(packed: bytes, index: int) -> bytes | None:
    number = unpack_uints(packed)[index]
    return None if number is None else pack_uint(number)


def old_store(path: Path, current: Path, release: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a current store, in a store that only has the migrations up to `release`."""
    shipped = migrations(PACKAGE, "sqlite")[:release]
    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "migrations", lambda package, engine: shipped)
        sqlite.SqliteStore(path, PACKAGE).close()
    connection = sqlite3.connect(path)
    connection.create_function("amount", 2, amount)
    connection.execute("attach ? as current", (str(current),))
    connection.execute("delete from main.meta" if release > FIRST else "delete from main.fact")
    for (table,) in connection.execute("select name from main.sqlite_master where type = 'table'").fetchall():
        if not table.startswith("sqlite_"):
            count = len(connection.execute(f"pragma main.table_info({table})").fetchall())
            name = OLD_NAMES.get(table, table)
            columns = [row[1] for row in connection.execute(f"pragma current.table_info({name})").fetchall()]
            kept = ", ".join(columns[:count])  # later migrations only added columns at the end
            rows = OLDER_ROWS.get(table, f"select {kept} from current.{name}")
            if release == FIRST:
                rows = FIRST_ROWS.get(table, rows)
            connection.execute(f"insert into main.{table} {rows}")
    connection.commit()
    connection.close()


def first_store(path: Path, current: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the first release wrote it."""
    old_store(path, current, FIRST, monkeypatch)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("insert into fact values ('status', ?)", (OLD_STATUS,))
        connection.execute("insert into fact values ('audited_to', ?)", (str(OLD_HEAD),))
        connection.execute("insert into reputation values (?, 'Benign')", (next(iter(tokens(CHAIN))),))


async def indexed(path: Path, head: int) -> dict[str, str]:
    replay = EvmReplay(CHAIN)
    replay.shown = head
    async with indexing(path, replay, kept=NO_RAW) as it:  # the release before stored no raw logs
        await it.follower.run()
        assert it.follower.status.synced
    return digests(path)


@awaited
async def test_a_store_of_the_release_before_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await indexed(tmp_path / "current.sqlite", OLD_HEAD)
    with closing(sqlite3.connect(tmp_path / "current.sqlite")) as current, current:
        current.execute("update token set silent_changes = 0")  # the release before did not count them
    expected = digests(tmp_path / "current.sqlite")
    assert write_older_form(tmp_path / "current.sqlite")
    assert digests(tmp_path / "current.sqlite") == expected
    (tmp_path / "chains").mkdir()
    path = tmp_path / "chains" / "7.sqlite"
    first_store(path, tmp_path / "current.sqlite", monkeypatch)

    reader = Stores(tmp_path).chain_reader("7")
    with pytest.raises(StoreError, match="by an older Icefall"):  # a worker that is quicker than the indexer
        await ChainReader(reader).meta("status")

    store = open_store(path)
    try:
        _check_names(store)
    finally:
        store.close()
    assert digests(path) == expected
    assert (await chain_health(ChainReader(reader), 1_800_000_001.0)).counts["blocks"] == 61
    reader.close()
    assert await indexed(path, NEW_HEAD) == await indexed(tmp_path / "current.sqlite", NEW_HEAD)


def _check_names(store: ChainStore) -> None:
    status = store.meta("status")
    assert status is not None
    assert decode_status(status).counts == {"blocks": 61}, "counts go on across the upgrade"
    assert store.read("select reputation from reputation") == [("Benign",)]
    assert store.read("select count(*) from token where untrusted_since is not null") > [(0,)]
    assert store.read("select count(*) from token_trust where is_untrusted") > [(0,)]
    names = {name for (name,) in store.read("select name from sqlite_master")}
    assert not {name for name in names if name == "fact" or name.startswith("told_")}
    for view in ("tx_view", "erc20_view", "erc721_view", "erc1155_view", "internal_view", "deployment_view"):
        assert store.read(f"select count(*) from {view}") == store.read(f"select count(*) from {view[:-5]}")


@pytest.mark.parametrize("release", [7, 8, 9])
@awaited
async def test_a_later_release_keeps_every_row(release: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    current, path = tmp_path / "current.sqlite", tmp_path / "chain.sqlite"
    await indexed(current, OLD_HEAD)
    write_older_form(current)
    old_store(path, current, release, monkeypatch)
    rows, listed = digests(current), _transfers_of_tokens(current)
    assert any(listed.values())
    open_store(path).close()
    assert digests(path) == rows
    assert _transfers_of_tokens(path) == listed
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        for index in ("erc721_in", "log_of", "log_with_topic"):
            columns = [name for _, _, name in connection.execute(f"pragma index_info({index})")]
            assert "log_at" not in columns, "the position is in every index by itself"
            assert columns
    assert await indexed(path, NEW_HEAD) == await indexed(current, NEW_HEAD)


def _transfers_of_tokens(path: Path) -> dict[bytes, list[Row]]:
    """And the raw logs of each."""
    span = {"low": 0, "high": 1 << 60, "inside": 0, "limit": 100}
    with closing(sqlite3.connect(path)) as connection:
        found = {}
        for token in tokens(CHAIN):
            params = {**span, "address": token}
            found[token] = connection.execute(TRANSFERS.in_token, params).fetchall()
            found[token] += connection.execute(RAW.logs_of, params).fetchall()
        return found
