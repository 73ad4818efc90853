"""A chain waits for an upstream that serves it, and says what it waits for: no wrong answer ends it."""

from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.indexed import Log, indexing, open_store
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import slept, upstream_of
from tests.upstream.replay import FOREVER

from icefall.compose import indexed_chain
from icefall.config.load import load
from icefall.db.disk import DiskLow
from icefall.db.engine import StoreError
from icefall.evm.indexing.binding import Binding, bind
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.storing.store import ChainStore

BINDING = Binding("1337", b"", 0)
AGAIN_S = 60.0  # the longest time between two attempts


async def _bound(path: Path, replay: EvmReplay, heal: str) -> list[str]:
    """What is reported until the upstream serves the chain, which it does from the fifth report on."""
    reported: list[str] = []

    def report(problem: str) -> None:
        reported.append(problem)
        if len(reported) == 5:
            replay.chain_id, replay.evm_faults = 1337, []

    store = open_store(path)
    try:
        async with upstream_of(replay, chain_id=1337) as upstream:
            await bind(store, upstream, BINDING, Log(), report)  # type: ignore[arg-type]
            assert max(slept(upstream)) <= AGAIN_S
        assert store.meta("chain_id") == "1337"
    finally:
        store.close()
    assert heal in reported[0]
    assert reported[-1] == ""
    return reported


@awaited
async def test_a_wrong_chain_id_is_reported_at_once_and_heals(tmp_path: Path) -> None:
    replay = EvmReplay()
    replay.chain_id = 99
    await _bound(tmp_path / "chain.sqlite", replay, "serves chain 99, not 1337")


@awaited
async def test_an_upstream_that_is_down_heals(tmp_path: Path) -> None:
    replay = EvmReplay()
    replay.evm_faults = [EvmFault(status=500, times=FOREVER)]
    await _bound(tmp_path / "chain.sqlite", replay, "answered 500")


@awaited
async def test_a_genesis_with_a_wrong_hash_is_not_stored(tmp_path: Path) -> None:
    replay = EvmReplay()
    wrong = replay.blocks[0].without_txs.replace(replay.blocks[0].hash.encode(), b"0x" + b"66" * 32)
    replay.evm_faults = [EvmFault("eth_getBlockByNumber", number=0, times=FOREVER, result=wrong)]
    await _bound(tmp_path / "chain.sqlite", replay, "a hash that is not that of its header")


@awaited
async def test_incomplete_traces_are_waited_for(tmp_path: Path) -> None:
    """An index is not begun without traces for good because an upstream sent some of them at first."""
    replay = EvmReplay()
    replay.evm_faults = [EvmFault("debug_", times=FOREVER, result=b"[]")]
    await _bound(tmp_path / "chain.sqlite", replay, "no upstream sends whole traces")


@awaited
async def test_too_little_disk_space_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    store = open_store(tmp_path / "chain.sqlite")
    put_meta = ChainStore.put_meta

    async def full(self: ChainStore, meta: dict[str, str]) -> None:
        if len(reported) < 3:
            raise DiskLow("2 % of the disk is free")
        await put_meta(self, meta)

    monkeypatch.setattr(ChainStore, "put_meta", full)
    try:
        async with upstream_of(EvmReplay()) as upstream:
            await bind(store, upstream, BINDING, Log(), reported.append)  # type: ignore[arg-type]
    finally:
        store.close()
    assert reported == ["2 % of the disk is free"] * 3 + [""]
    assert issubclass(DiskLow, StoreError)


@awaited
async def test_upstreams_are_probed_with_the_newest_stored_block_that_has_transactions(tmp_path: Path) -> None:
    (tmp_path / "icefall.toml").write_text('[[chain]]\nid = "1337"\nrpc = ["http://127.0.0.1:1"]\n')
    (chain,) = load("index", [f"--data-dir={tmp_path}"], {}, tmp_path).config.chain
    replay = EvmReplay()
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange(last=35), audited=False) as found:
        upstream = indexed_chain.upstream_of(chain, found.store, Log())  # type: ignore[arg-type]
        assert upstream._busy_block() is None
        await found.follower.run()
        assert (replay.blocks[34].txids != (), upstream._busy_block()) == (True, 34)
        await upstream.close()
