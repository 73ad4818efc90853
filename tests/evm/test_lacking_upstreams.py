"""Upstreams that lack traces or old state: what can be indexed is indexed, and what is missing is said."""

from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.digest import digests
from tests.evm.indexed import Log, indexing, open_store
from tests.evm.reading_scene import expected
from tests.evm.test_follow_chain import until
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.evm_scene import upstream_of

from icefall.errors import StartRefused
from icefall.evm.indexing.binding import Binding, bind
from icefall.evm.indexing.follower import BlockRange
from icefall.upstream.evm.upstream import NO_TRACES

CHAIN = "geth-1"
BY_LOGS = ("erc20", "erc20_of", "erc721", "erc1155", "log", "erc20_holding", "nft_owner", "nft_held")
DEBUG = {"debug_traceBlockByNumber", "debug_traceTransaction"}


def pruned() -> EvmReplay:
    """A full node: the state of its newest blocks is there, and nothing older."""
    replay = EvmReplay(CHAIN)
    replay.pruned_below = replay.head - 20
    replay.off = {"blockHash"}  # so that it counts for calls by hash too
    return replay


@awaited
async def test_where_old_state_is_pruned_the_problem_names_the_setting(tmp_path: Path) -> None:
    async with indexing(tmp_path / "chain.sqlite", pruned(), blocks=BlockRange()) as it:
        await until(it.follower, lambda: bool(it.follower.status.problem))
        problem = it.follower.status.problem
        assert all(text in problem for text in ("missing trie node", "archive node in the rpc", "traces = false"))
        assert any("traces = false" in line for line in it.upstream.degraded())


@pytest.mark.parametrize("has_tracers", [True, False])
@awaited
async def test_blocks_and_logs_are_indexed_without_archive(has_tracers: bool, tmp_path: Path) -> None:
    """A node with tracers needs the setting; one without them is indexed so by itself."""
    path, replay = tmp_path / "chain.sqlite", pruned()
    replay.off |= set() if has_tracers else DEBUG
    async with indexing(path, replay, traces=not has_tracers) as it:
        await it.follower.run()
        assert (it.follower.status.tip, it.follower.status.problem) == (replay.head, "")
        limits = "\n".join(it.upstream.degraded())
        assert all(text in limits for text in ("cumulativeContracts", "native balances are read", "no archive"))
        assert not has_tracers or replay.asked("debug_traceBlockByNumber") <= 8, "only probed"
    found, whole = digests(path), expected(CHAIN)
    assert {table: found[table] for table in BY_LOGS} == {table: whole[table] for table in BY_LOGS}
    assert found["internal"].startswith("0 rows")


@awaited
async def test_an_index_begun_without_traces_says_so_with_any_upstream() -> None:
    async with upstream_of(EvmReplay(CHAIN), required=NO_TRACES) as upstream:
        await upstream.probe_all()
        assert [line.split(":")[0] for line in upstream.degraded()] == ["no call traces", "no state diffs"]
    async with upstream_of(EvmReplay(CHAIN)) as upstream:
        await upstream.probe_all()
        assert upstream.degraded() == []


@awaited
async def test_an_index_with_traces_is_not_continued_without(tmp_path: Path) -> None:
    store = open_store(tmp_path / "chain.sqlite")
    try:
        await store.put_meta({"has_calls": "1", "has_diffs": "0"})
        async with upstream_of(EvmReplay(CHAIN)) as upstream:
            with pytest.raises(StartRefused, match="Remove traces = false"):
                await bind(store, upstream, Binding("1337", b"", 0, traces=False), Log(), print)  # type: ignore[arg-type]
    finally:
        store.close()
