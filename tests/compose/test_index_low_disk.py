"""`icefall index` started with too little disk space: it says so, stores nothing, and goes on when there is room."""

import asyncio
from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.digest import digests
from tests.evm.indexed import InlineBlockDecoder
from tests.upstream.evm_replay import EvmReplay

from icefall.compose import indexer
from icefall.compose.indexer import _Indexing, indexer_logs
from icefall.config.load import load
from icefall.db import disk
from icefall.db.disk import FreeSpace
from icefall.evm.storing.store import store_path

REASON = "1 % of the disk of"


async def _index(directory: Path, replay: EvmReplay, last: int) -> tuple[_Indexing, "asyncio.Task[None]"]:
    arguments = [f"--config-file={directory / 'icefall.toml'}", f"--data-dir={directory}", f"--to={last}"]
    (directory / "icefall.toml").write_text(f'[[chain]]\nid = "{replay.chain_id}"\nrpc = "{replay.url}"\n')
    config = load("index", [*arguments, "--log-level=off"], {}, directory).config
    indexing = _Indexing(config, indexer_logs(config), InlineBlockDecoder(), retries=False)
    return indexing, asyncio.create_task(indexing.run_chain(config.chain[0]))


@pytest.mark.parametrize("is_indexed", [True, False])
@awaited
async def test_it_waits_and_goes_on(is_indexed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "_STANDBY_S", 0.01)
    async with EvmReplay() as replay:
        name, path = str(replay.chain_id), store_path(tmp_path, str(replay.chain_id))
        if is_indexed:
            earlier, running = await _index(tmp_path, replay, 5)
            await running
            await earlier.close()
            before = digests(path)
        free = FreeSpace(4096, 1)
        monkeypatch.setattr(disk, "free_space", lambda _: free)
        indexing, running = await _index(tmp_path, replay, 10)
        while REASON not in getattr(indexing.statuses.get(name), "problem", ""):
            assert not running.done()
            await asyncio.sleep(0.01)
        assert not indexing.statuses[name].stopped
        assert path.exists() == is_indexed
        assert not is_indexed or digests(path) == before
        free = FreeSpace(1 << 40, 50)
        await running
        assert (indexing.statuses[name].tip, indexing.statuses[name].problem) == (10, "")
        await indexing.close()


@awaited
async def test_a_disk_that_gets_low_between_two_batches_stops_the_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are written in steps, unlike everything that is written before the first of them."""
    monkeypatch.setattr(indexer, "_STANDBY_S", 0.01)
    monkeypatch.setattr(disk, "_CHECK_EVERY_S", 0.0)
    free = FreeSpace(1 << 40, 50)
    monkeypatch.setattr(disk, "free_space", lambda _: free)
    async with EvmReplay() as replay:
        replay.shown = 5
        indexing, running = await _index(tmp_path, replay, 10)
        name = str(replay.chain_id)
        while getattr(indexing.statuses.get(name), "tip", -1) != 5:
            assert not running.done()
            await asyncio.sleep(0.01)
        free = FreeSpace(4096, 1)
        replay.shown = 10
        while REASON not in indexing.statuses[name].problem:
            assert not running.done(), "the blocks were stored on a disk that is nearly full"
            await asyncio.sleep(0.01)
        free = FreeSpace(1 << 40, 50)
        await running
        assert (indexing.statuses[name].tip, indexing.statuses[name].problem) == (10, "")
        await indexing.close()
