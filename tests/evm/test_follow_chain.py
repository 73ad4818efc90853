"""The follower on replayed chains: upstream failures, reorganisations, and when the index counts as synced."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.awaited import awaited
from tests.evm.digest import digests, logical_rows
from tests.evm.indexed import DEPTH_MAX, indexing
from tests.evm.recordings import CHAINS, each_once, tokens
from tests.upstream.evm_recording import recorded_blocks
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import slept
from tests.waiting import LIMIT_S

from icefall.demo.recording import Blocks
from icefall.evm.indexing.follower import POLL_S, BlockRange, EvmFollower
from icefall.evm.indexing.reorgs import ReorgRules
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.folding import BalanceFolding
from icefall.evm.storing.store import ChainStore
from icefall.upstream.client import Limits

Digests = dict[str, str]
CHAIN = "geth-1"
WHEN = ("before", "after")
LAST = 120  # blocks of it are enough where every fault means another run
FAULTY = 80  # and fewer where each of many faults means one: the last faults are at block 70


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Digests:
    """The first blocks, indexed without failures."""
    return asyncio.run(_indexed(tmp_path_factory.mktemp("clean") / "chain.sqlite", shown(EvmReplay(CHAIN), LAST)))


def shown(replay: EvmReplay, head: int) -> EvmReplay:
    replay.shown = head
    return replay


async def _indexed(path: Path, *replays: EvmReplay, **options: Any) -> Digests:
    async with indexing(path, *replays, **options) as it:
        await it.follower.run()
        assert it.follower.status.synced
        return digests(path)


FAILURES: dict[str, list[EvmFault]] = {
    "a 429 now and then": [EvmFault("eth_getBlock", times=3, status=429, headers={"Retry-After": "0"})],
    "a 500": [EvmFault("debug_", times=2, status=500)],
    "a 502 that is a page": [EvmFault("eth_getBlockReceipts", status=502, body=b"<html>bad gateway</html>")],
    "no answer": [EvmFault("eth_getBlockByNumber", hang=True)],
    "a connection that ends in the middle": [EvmFault("debug_", hang_up=True)],
    "JSON that ends in the middle": [EvmFault("debug_", times=2, keep=0.6)],
    "receipts that are null": [EvmFault("eth_getBlockReceipts", number=70, times=2, result=b"null")],
    "receipts that are missing": [EvmFault("eth_getBlockReceipts", number=70, times=2, result=b"[]")],
    "traces that are missing": [EvmFault("debug_traceBlockByNumber", number=70, times=2, result=b"[]")],
    "a block that is null": [EvmFault("eth_getBlockByNumber", number=70, times=2, result=b"null")],
    "a batch with one answer less": [EvmFault("eth_getBlockReceipts", number=33, times=2, left_out=True)],
    "a balance that is refused": [EvmFault("eth_getBalance", times=2, error=(-32000, "try again later"))],
    "a call that is refused": [EvmFault("eth_call", times=2, error=(-32005, "limit exceeded"))],
    "a head that is refused": [EvmFault("eth_blockNumber", times=2, error=(-32603, "internal error"))],
}


@pytest.fixture(scope="module")
def clean_beginning(tmp_path_factory: pytest.TempPathFactory) -> Digests:
    return asyncio.run(_indexed(tmp_path_factory.mktemp("begun") / "chain.sqlite", shown(EvmReplay(CHAIN), FAULTY)))


@pytest.mark.parametrize("name", FAILURES)
@awaited
async def test_an_upstream_failure_changes_nothing(name: str, clean_beginning: Digests, tmp_path: Path) -> None:
    replay = shown(EvmReplay(CHAIN), FAULTY)
    replay.evm_faults = list(FAILURES[name])
    got = await _indexed(
        tmp_path / "chain.sqlite",
        replay,
        limits=Limits(total_s=1.0 if any(one.hang for one in replay.evm_faults) else 60.0, calls_at_once=4),
    )
    assert got == clean_beginning
    assert replay.evm_faults == [], "the failure never happened"


@awaited
async def test_errors_instead_of_null_beyond_the_head(tmp_path: Path) -> None:
    """coreth's way; the head is read from two nodes, of which one lags."""
    ahead, behind = (shown(EvmReplay("cchain-1"), head) for head in (LAST, LAST - 20))
    got = await _indexed(tmp_path / "two.sqlite", ahead, behind)
    assert got == await _indexed(tmp_path / "one.sqlite", shown(EvmReplay("cchain-1"), LAST))


@awaited
async def test_audits_never_delay_blocks(tmp_path: Path) -> None:
    replay = shown(EvmReplay(CHAIN), LAST - 1)
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange()) as it:
        status, auditor = it.follower.status, it.follower.auditor
        assert not status.synced
        await until(it.follower, lambda: status.synced and auditor.audited_to() == LAST - 1)
        replay.shown = LAST
        replay.evm_faults = [EvmFault("eth_call", times=10**6, status=500)]  # no audit can run
        await until(it.follower, lambda: status.tip == LAST and status.synced)
        assert auditor.audited_to() < LAST
        replay.evm_faults = []
        await until(it.follower, lambda: auditor.audited_to() == LAST)


@awaited
async def test_a_synced_chain_asks_for_its_head_at_the_interval_that_is_set(tmp_path: Path) -> None:
    async with indexing(tmp_path / "chain.sqlite", shown(EvmReplay(CHAIN), 3), blocks=BlockRange(), poll_s=0.125) as it:
        await until(it.follower, lambda: slept(it.upstream).count(0.125) > 2)
        assert it.follower.status.synced
        assert POLL_S not in slept(it.upstream)


@awaited
async def test_state_that_stays_missing_is_a_problem(tmp_path: Path) -> None:
    """A node that lags lacks state for a moment; for longer it is reported, and retries wait."""
    replay = shown(EvmReplay(CHAIN), LAST)
    replay.evm_faults = [EvmFault("eth_getCode", times=10**6, error=(-32000, "header not found"))]
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange()) as it:
        await until(it.follower, lambda: bool(it.follower.status.problem))
        assert "header not found" in it.follower.status.problem
        asked = replay.asked("eth_getCode")
        assert asked < 50, "each round waits"
        replay.evm_faults = []
        await until(it.follower, lambda: it.follower.status.synced)


@awaited
async def test_a_batch_that_fails_while_many_chunks_are_ahead_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue of chunks is full, and nothing takes from it any more."""
    monkeypatch.setattr("icefall.evm.indexing.batches.CHUNK_BYTES", 20_000)
    replay = EvmReplay(CHAIN)
    replay.evm_faults = [EvmFault("eth_getCode", times=2, error=(-32000, "header not found"))]
    async with indexing(tmp_path / "chain.sqlite", replay) as it:
        await asyncio.wait_for(it.follower.run(), LIMIT_S)
        assert it.follower.status.synced
        assert replay.evm_faults == []


@awaited
async def test_a_token_whose_calls_time_out_is_untrusted_and_delays_nothing(tmp_path: Path) -> None:
    replay = shown(EvmReplay(CHAIN), LAST)
    token = next(one for one, token in tokens(CHAIN).items() if token["kind"] == "erc20")

    def abort(method: str, params: list[Any]) -> None:
        if (
            method == "eth_call"
            and params[0]["to"] == "0x" + token.hex()
            and params[0]["data"].startswith("0x70a08231")
        ):
            replay.evm_faults = [EvmFault("eth_call", error=(-32000, "execution aborted (timeout = 5s)"))]

    replay.on_call = abort
    async with indexing(tmp_path / "chain.sqlite", replay) as it:
        await it.follower.run()
        assert it.follower.status.synced
        number = it.store.id_of(token)
        assert it.store.read("select untrusted_since is not null from token where token = ?", (number,)) == [(1,)]


# -- chains that change ------------------------------------------------------------------------------------------


async def until(follower: EvmFollower, done: Callable[[], bool]) -> None:
    running = asyncio.create_task(follower.run())
    try:
        for _ in range(100_000):
            if done():
                return
            await asyncio.sleep(0.001)
        raise AssertionError(f"not reached: {follower.status}")
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _forked(common: Blocks, branch: Blocks) -> Blocks:
    """The chain whose newest blocks are those of `branch`."""
    return {height: block for height, block in common.items() if height < min(branch)} | branch


@pytest.mark.parametrize("number", [1, 2])
@awaited
async def test_a_recorded_reorganisation_ends_in_the_recorded_chain(number: int, tmp_path: Path) -> None:
    start = min(recorded_blocks("anvil-1", f"reorg{number}_before_blocks")) - 40
    common = recorded_blocks("anvil-1")
    before, after = (_forked(common, recorded_blocks("anvil-1", f"reorg{number}_{when}_blocks")) for when in WHEN)
    replay = EvmReplay("anvil-1", before)
    rules = ReorgRules("1", DEPTH_MAX, development=max(after) < max(before))  # otherwise a lower head is not followed
    async with indexing(tmp_path / "turned.sqlite", replay, blocks=BlockRange(first=start), rules=rules) as it:
        await until(it.follower, lambda: it.follower.status.synced)
        assert it.follower.status.tip == max(before)
        replay.blocks = after
        last = bytes.fromhex(after[max(after)].hash[2:])
        await until(it.follower, lambda: it.store.block_hash(max(after)) == last and it.follower.status.synced)
        assert it.follower.status.reorgs == 1
    straight = EvmReplay("anvil-1", after)
    async with indexing(tmp_path / "straight.sqlite", straight, blocks=BlockRange(first=start)) as it:
        await until(it.follower, lambda: it.follower.status.synced)
    turned, expected = (logical_rows(tmp_path / f"{name}.sqlite") for name in ("turned", "straight"))
    # The state of dropped blocks was not recorded, so a token may have become untrusted there, and stays so.
    assert set(turned.pop("erc20_balance")) <= set(expected.pop("erc20_balance"))
    assert [row[:4] for row in turned.pop("token")] == [row[:4] for row in expected.pop("token")]
    assert turned == expected


@awaited
async def test_a_node_that_lags_for_a_moment_is_no_rollback(tmp_path: Path) -> None:
    replay = shown(EvmReplay(CHAIN), LAST)
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange()) as it:
        await until(it.follower, lambda: it.follower.status.synced)
        replay.shown = LAST - 3
        polls = len(it.upstream.clock.slept)  # type: ignore[attr-defined]
        await until(it.follower, lambda: len(it.upstream.clock.slept) > polls + 5)  # type: ignore[attr-defined]
        assert it.follower.status.tip == LAST
        assert it.follower.status.reorgs == 0


@awaited
async def test_confirmations_stay_behind_the_head(tmp_path: Path) -> None:
    replay = shown(EvmReplay(CHAIN), LAST)
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange(confirmations=7)) as it:
        await until(it.follower, lambda: it.follower.status.synced)
        assert it.follower.status.tip == LAST - 7


SMALL_BATCHES: dict[str, dict[str, float]] = {
    "a block": {"BATCH_BLOCKS": 1},
    "no time": {"BATCH_S": 0.0, "CHUNK_S": 0.0},
    "a byte": {"BATCH_BYTES": 1},
}


@pytest.mark.parametrize(("chain", "limits"), each_once(CHAINS, list(SMALL_BATCHES)))
@awaited
async def test_batches_of_any_size_store_the_same(
    chain: str, limits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = 100
    whole = await _indexed(tmp_path / "whole.sqlite", shown(EvmReplay(chain), last))
    for name, limit in SMALL_BATCHES[limits].items():
        monkeypatch.setattr(f"icefall.evm.indexing.batches.{name}", limit)
    assert await _indexed(tmp_path / "small.sqlite", shown(EvmReplay(chain), last)) == whole


@awaited
async def test_batches_grow_with_the_store(clean: Digests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefall.evm.indexing.batches.CHUNK_BYTES", 1)  # one block in each
    monkeypatch.setattr("icefall.evm.indexing.batches.BATCH_TXS", (2, 30))
    batches: list[list[int]] = []
    commit = ChainStore.commit

    async def counted(store: ChainStore, batch: Sequence[ResolvedBlock], *others: Any) -> None:
        batches.append([block.rows.block.tx_count for block in batch])
        await commit(store, batch, *others)

    monkeypatch.setattr(ChainStore, "commit", counted)
    assert await _indexed(tmp_path / "chain.sqlite", shown(EvmReplay(CHAIN), LAST)) == clean
    stored = 0
    for blocks in batches[:-1]:
        limit = min(max(stored // 5, 2), 30)
        assert sum(blocks[:-1]) < limit <= sum(blocks)
        stored += sum(blocks)
    assert stored > 150, "the largest batches were among them"


@awaited
async def test_a_batch_whose_commit_is_cancelled_is_not_stored(clean: Digests, tmp_path: Path) -> None:
    path = tmp_path / "chain.sqlite"
    async with indexing(path, shown(EvmReplay(CHAIN), LAST)) as it:
        load = BalanceFolding.load

        def cancelling(*args: Any) -> None:
            load(*args)
            running.cancel()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BalanceFolding, "load", cancelling)
            running = asyncio.ensure_future(it.follower.run())
            await asyncio.wait([running])
        assert running.cancelled()
        assert it.store.tip() is None
        await it.follower.run()
    assert digests(path) == clean


@awaited
async def test_an_index_goes_on_where_it_stopped(clean: Digests, tmp_path: Path) -> None:
    for head in (0, 1, 17, 90, LAST):
        async with indexing(tmp_path / "chain.sqlite", shown(EvmReplay(CHAIN), head)) as it:
            await it.follower.run()
    assert digests(tmp_path / "chain.sqlite") == clean
