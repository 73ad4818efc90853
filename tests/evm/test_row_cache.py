"""Addresses and blocks that a worker caches are those of the rows it shows, whatever is rolled back meanwhile."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.api.made_chain import ANN, BEN, block, erc20, put, roll_back, store_at
from tests.evm.indexed import open_store
from tests.evm.reading_scene import now
from tests.metrics.synthetic import address

from icefall.db.engine import Reader, Row, StatementParams, StoreBusy
from icefall.db.migrate import load_schema
from icefall.db.sqlite import SqliteReader
from icefall.evm.model import ERC20
from icefall.evm.reading.directory import ChainInfo, EvmChain, LazyChainReader, TokenInfo
from icefall.evm.reading.lists import cached
from icefall.evm.reading.lists.cached import SQL, CachedLists
from icefall.evm.reading.model import PageRange, TransferRead, TxRead
from icefall.evm.reading.one_history import in_one_history
from icefall.evm.storing.store import PACKAGE

INFO = ChainInfo("7", "Seven", TokenInfo("Coin", "C", 18))
NEW = [address(500 + number) for number in range(6)]


class Lists:
    """What one worker shows of ANN."""

    def __init__(self, reader: Reader) -> None:
        self._chain = EvmChain(INFO, reader)

    def transfers_of_ann(self) -> list[TransferRead]:
        return now(in_one_history(lambda: self._chain.lists.transfers_of(ERC20, ANN, PageRange(), 10)))

    def txs_of_ann(self) -> list[TxRead]:
        return now(in_one_history(lambda: self._chain.lists.touched_txs(ANN, PageRange(), 10)))

    def all(self) -> tuple[Any, ...]:
        return self.transfers_of_ann(), self.txs_of_ann()


@pytest.fixture
def reader(tmp_path: Path) -> SqliteReader:
    put(tmp_path, [block(0), erc20(1, ANN, BEN, 5), erc20(2, NEW[0], ANN, 4), erc20(3, NEW[1], ANN, 3)])
    return SqliteReader(store_at(tmp_path))


def replace_two_blocks(folder: Path) -> None:
    """The IDs of NEW[0] and NEW[1] then belong to NEW[2] and NEW[3]."""
    roll_back(folder, 1)
    put(folder, [erc20(2, NEW[2], ANN, 9), erc20(3, NEW[3], ANN, 8)])


def test_ids_and_numbers_that_are_given_again(reader: SqliteReader, tmp_path: Path) -> None:
    lists = Lists(reader)
    assert {row.sender for row in lists.transfers_of_ann()} == {ANN, NEW[0], NEW[1]}
    before = lists.all()
    replace_two_blocks(tmp_path)
    assert {row.sender for row in lists.transfers_of_ann()} == {ANN, NEW[2], NEW[3]}
    assert lists.all() == Lists(SqliteReader(store_at(tmp_path))).all() != before
    reader.close()


def test_nothing_is_read_twice(reader: SqliteReader, monkeypatch: pytest.MonkeyPatch) -> None:
    lists, statements = Lists(reader), []
    shown = lists.all()
    read = SqliteReader.read

    def counted(self: SqliteReader, statement: str, params: StatementParams = ()) -> list[Row]:
        statements.append(statement)
        return read(self, statement, params)

    monkeypatch.setattr(SqliteReader, "read", counted)
    assert lists.all() == shown
    assert statements == [SQL.erc20_of, SQL.touched]
    reader.close()


@pytest.mark.parametrize("at", range(1, 4))
def test_a_rollback_between_two_statements(
    at: int, reader: SqliteReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each list is read by a worker that has kept nothing, and blocks are replaced after its first, second or third
    statement. It is then shown as it was before or as it is after, and never mixed."""
    before, lists, count = Lists(reader).all(), Lists(reader), 0
    read = SqliteReader.read

    def interrupted(self: SqliteReader, statement: str, params: StatementParams = ()) -> list[Row]:
        nonlocal count
        rows = read(self, statement, params)
        count += 1
        if count == at and self is reader:
            replace_two_blocks(tmp_path)
        return rows

    monkeypatch.setattr(SqliteReader, "read", interrupted)
    found = lists.transfers_of_ann()
    monkeypatch.setattr(SqliteReader, "read", read)
    assert count >= at
    assert found in (before[0], Lists(SqliteReader(store_at(tmp_path))).transfers_of_ann())
    assert lists.all() == Lists(SqliteReader(store_at(tmp_path))).all()
    reader.close()


def test_the_cache_is_bounded(reader: SqliteReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [address(600 + number) for number in range(40)]
    put(tmp_path, [erc20(4 + number, one, BEN, 1) for number, one in enumerate(others)])
    for name in ("ADDRESSES_MAX", "BLOCKS_MAX"):
        monkeypatch.setattr(cached, name, 20)
    lists = CachedLists(reader)
    expected = Lists(SqliteReader(reader._path)).transfers_of_ann()
    for _ in range(3):
        for one in others:
            assert [row.sender for row in now(lists.transfers_of(ERC20, one, PageRange(), 10))] == [one]
        assert now(lists.transfers_of(ERC20, ANN, PageRange(), 10)) == expected
    names = lists._cache._names.of((reader.generation, None))
    assert 10 <= len(names.addresses) <= 20 + 5  # those of one page come on top
    assert 10 <= len(names.blocks) <= 20 + 3
    reader.close()


def test_a_store_that_starts_anew(reader: SqliteReader, tmp_path: Path) -> None:
    lists = Lists(reader)
    assert len(lists.transfers_of_ann()) == 3

    async def start_anew() -> None:
        store = open_store(store_at(tmp_path))
        await store.start_anew({})
        store.close()

    asyncio.run(start_anew())
    put(tmp_path, [block(0), erc20(1, NEW[4], ANN, 2)])
    assert lists.all() == Lists(SqliteReader(store_at(tmp_path))).all()
    assert [row.sender for row in lists.transfers_of_ann()] == [NEW[4]]
    reader.close()


def test_another_file_in_its_place(tmp_path: Path) -> None:
    """As after a damaged file was restored: neither has seen a rollback."""
    folders = [tmp_path / "one", tmp_path / "other"]
    put(folders[0], [block(0), erc20(1, NEW[0], ANN, 5)])
    put(folders[1], [block(0), erc20(1, NEW[1], ANN, 5)])
    paths = iter([store_at(folder) for folder in folders])
    reader = LazyChainReader(lambda: SqliteReader(next(paths)), "chain 7", load_schema(PACKAGE, "sqlite").number)
    lists = Lists(reader)
    versions = []
    for sender in NEW[:2]:
        for _ in range(3):  # opens it, reads it with a cache, and then from the cache
            assert [row.sender for row in lists.transfers_of_ann()] == [sender]
        versions.append(reader.version())
        reader.close()
    assert versions[0] != versions[1]


def test_rollbacks_without_end_are_an_error(reader: SqliteReader, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter(range(100))

    async def rows(statement: str, params: StatementParams = ()) -> list[Row]:
        found = reader.read(statement, params)
        return [(*row[:-1], str(next(counts))) for row in found] if "rollbacks" in statement else found

    monkeypatch.setattr(reader, "rows", rows)
    with pytest.raises(StoreBusy, match="rolled back while"):
        Lists(reader).transfers_of_ann()
    reader.close()
