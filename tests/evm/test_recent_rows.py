"""Tables in two parts hold the same rows as one table would, wherever their rows are."""

import asyncio
import shutil
from pathlib import Path

import pytest
from bench.evm_rows import Rows
from tests.awaited import awaited
from tests.evm.digest import digests
from tests.evm.indexed import open_store
from tests.evm.reading_scene import index
from tests.evm.test_reading_reorgs import roll_back, same
from tests.store.opened import tables_of
from tests.upstream.evm_replay import EvmReplay

from icefall.db.copying import compare_table, copy_table
from icefall.db.copying import tables_of as stored_tables
from icefall.db.engine import Row
from icefall.db.sqlite import SqliteReader, SqliteStore
from icefall.evm.encoding import pack_uint
from icefall.evm.model import NativeRow
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing import recent
from icefall.evm.storing.recent import SPLIT_TABLES
from icefall.evm.storing.store import PACKAGE

CHAIN = "geth-1"


def _keep_few(patched: pytest.MonkeyPatch) -> None:
    """So that rows of a short chain are moved, and what was moved gets new neighbours."""
    patched.setattr(recent, "RECENT_ROWS", 40)
    patched.setattr(recent, "STEP_ROWS", 7)


@pytest.fixture(autouse=True)
def _few_recent_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    _keep_few(monkeypatch)


def parts(path: Path) -> dict[str, tuple[set[Row], set[Row]]]:
    with tables_of(path) as tables:
        return {
            table.name: (
                set(tables.rows(f"{table.name}_recent", ", ".join(table.key))[1]),
                set(tables.rows(f"{table.name}_merged", ", ".join(table.key))[1]),
            )
            for table in SPLIT_TABLES
        }


def index_to(path: Path, *heads: int) -> None:
    """In runs that end at these blocks."""
    for head in heads:
        asyncio.run(index(path, EvmReplay(CHAIN), head))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain that is stored in runs, between which rows are moved."""
    path, last = tmp_path_factory.mktemp("whole") / "chain.sqlite", EvmReplay(CHAIN).head
    with pytest.MonkeyPatch.context() as patched:
        _keep_few(patched)
        index_to(path, last // 4, last // 2, last - 1, last)
    return path


def test_a_chain_is_stored_the_same(whole: Path) -> None:
    same(whole, CHAIN)
    for name, (few, many) in parts(whole).items():
        assert not few & many, name
        assert len(few) < 40 + 7, name
    assert all(many for few, many in parts(whole).values() if len(few) >= 40)
    assert any(many for _, many in parts(whole).values())


def test_what_was_moved_is_rolled_back_too(whole: Path, tmp_path: Path) -> None:
    path, clean, last = tmp_path / "chain.sqlite", tmp_path / "clean.sqlite", EvmReplay(CHAIN).head
    shutil.copy(whole, path)
    asyncio.run(roll_back(path, last - 90))
    assert any(many - parts(path)[name][1] for name, (_, many) in parts(whole).items())
    index_to(path, last - 90)  # an audit of what is left
    index_to(clean, last - 90)
    assert digests(path) == digests(clean)
    index_to(path, last)
    same(path, CHAIN)


def test_a_store_that_starts_anew_is_empty(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "chain.sqlite"
    shutil.copy(whole, path)
    store = open_store(path)
    asyncio.run(store.start_anew({}))
    store.close()
    assert not any(few or many for few, many in parts(path).values())


def test_a_copy_has_all_rows(whole: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    source, target = SqliteReader(whole), SqliteStore(copy, PACKAGE)
    for table in stored_tables(PACKAGE):
        copy_table(source, target, table, lambda _, __: None)
        compare_table(source, target, table)
    target.close()
    source.close()
    assert digests(copy) == digests(whole)
    assert all(not few for few, _ in parts(copy).values()), "copied in the order of keys, into the large part"


@awaited
async def test_a_balance_found_in_state_replaces_the_stored_one(tmp_path: Path) -> None:
    """It may be of a block whose row is in either part, or in none."""
    path = tmp_path / "chain.sqlite"
    *blocks, last = Rows(addresses=30, per_block=5, busy_every=5).blocks(41)
    store = open_store(path)
    for first in range(0, 40, 10):
        await store.commit(blocks[first : first + 10])
    before, (few, many) = native_balances(path), parts(path)["native_balance"]
    changed = [min(few), min(many)]
    new = next((address, block) for address, block in before if (address, block + 1) not in before)
    new = new[0], new[1] + 1
    with tables_of(path) as tables:
        addresses: dict[int, bytes] = dict(tables.rows("address", "id, address")[1])
    found = tuple(NativeRow(addresses[address], block, 77, None) for address, block in (*changed, new))
    await store.commit([ResolvedBlock(last.rows, (*found, *last.native), ())])
    store.close()
    after = native_balances(path)
    expected = before | {key: (pack_uint(77), before[key][1]) for key in changed} | {new: (pack_uint(77), None)}
    assert {key: row for key, row in after.items() if key[1] < 40} == expected


def native_balances(path: Path) -> dict[tuple[int, int], Row]:
    """By address and block: the balance, and that before the first row."""
    with tables_of(path) as tables:
        rows = tables.rows("native_balance", "address, block, balance, before")[1]
    assert len({row[:2] for row in rows}) == len(rows), "a row is in one part"
    return {row[:2]: row[2:] for row in rows}
