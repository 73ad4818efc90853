"""Stored blocks are dropped only for a proven replacement, and not while as many upstreams have the stored ones."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.awaited import awaited
from tests.evm.digest import digests
from tests.evm.indexed import DEPTH_MAX, RULES, Indexing, indexing
from tests.evm.test_follow_chain import CHAIN, LAST, shown, until
from tests.store.opened import tables_of
from tests.upstream.evm_recording import recorded_blocks
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.replay import FOREVER

from icefall.demo.recording import Blocks
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.indexing.reorgs import LAG_S, ReorgRefused, ReorgRules, RollBack, roll_back

LIE = EvmFault("eth_blockNumber", times=FOREVER, result=b'"0x0"')
COMMAND = "icefall index --accept-reorg=1"
DEPTH = 6  # of the first recorded reorganisation
LOW = 60  # blocks of a chain that are enough where its head falls
DEVELOPMENT = ReorgRules("1", DEPTH_MAX, development=True)


def other_hash(raw: bytes) -> bytes:
    return re.sub(rb'"hash":"0x..', b'"hash":"0x77', raw, count=1)


WRONG_HASHES = EvmFault("eth_getBlockByNumber", times=FOREVER, change=other_hash)


@cache
def branch(when: str) -> Blocks:
    """The chain before or after the first recorded reorganisation, which replaced its last blocks by as many."""
    newest = recorded_blocks("anvil-1", f"reorg1_{when}_blocks")
    first = min(newest)
    return {number: block for number, block in recorded_blocks("anvil-1").items() if number < first} | newest


FORK = BlockRange(first=max(branch("before")) - 40)


def tip_hash(blocks: Blocks) -> bytes:
    return bytes.fromhex(blocks[max(blocks)].hash[2:])


async def wait_longer_than_lag(it: Indexing) -> None:
    """More rounds than a lower head may stay without being reported."""
    began = it.upstream.clock.now()
    await until(it.follower, lambda: it.upstream.clock.now() > began + 4 * LAG_S)


async def until_synced(it: Indexing, tip: int) -> None:
    await until(it.follower, lambda: it.follower.status.tip == tip and it.follower.status.synced)


# -- upstreams that lie or lag -----------------------------------------------------------------------------------------


@awaited
async def test_a_first_upstream_with_a_head_of_zero_erases_nothing_and_the_second_is_followed(tmp_path: Path) -> None:
    liar, honest = shown(EvmReplay(CHAIN), LAST), shown(EvmReplay(CHAIN), LAST)
    async with indexing(tmp_path / "chain.sqlite", liar, honest, blocks=BlockRange()) as it:
        await until_synced(it, LAST)
        liar.evm_faults = [LIE]
        honest.shown = LAST + 5
        await until_synced(it, LAST + 5)
        await wait_longer_than_lag(it)
        assert (it.follower.status.reorgs, it.follower.status.problem) == (0, "")


@awaited
async def test_a_head_that_stays_lower_is_reported_and_erases_nothing(tmp_path: Path) -> None:
    replay = shown(EvmReplay(CHAIN), LAST)
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange(), rules=RULES) as it:
        await until_synced(it, LAST)
        replay.evm_faults = [LIE]
        await until(it.follower, lambda: bool(it.follower.status.problem))
        assert COMMAND in it.follower.status.problem
        assert "end with block 0" in it.follower.status.problem
        assert (it.follower.status.tip, it.follower.status.reorgs) == (LAST, 0)
        replay.evm_faults, replay.shown = [], LAST + 1
        await until_synced(it, LAST + 1)


@pytest.mark.parametrize("with_honest", [True, False])
@awaited
async def test_wrong_hashes_erase_nothing(with_honest: bool, tmp_path: Path) -> None:
    liar, honest = shown(EvmReplay(CHAIN), LAST), shown(EvmReplay(CHAIN), LAST)
    replays = [liar, honest] if with_honest else [liar]
    async with indexing(tmp_path / "chain.sqlite", *replays, blocks=BlockRange(first=100)) as it:
        await until_synced(it, LAST)
        liar.evm_faults = [WRONG_HASHES]
        honest.shown = LAST + 5
        if with_honest:
            await until_synced(it, LAST + 5)
        else:
            await until(it.follower, lambda: bool(it.follower.status.problem))
            await wait_longer_than_lag(it)
        assert (it.store.lowest(), it.follower.status.reorgs) == (100, 0)
        liar.evm_faults, liar.shown = [], LAST + 5
        await until_synced(it, LAST + 5)


@awaited
async def test_headers_that_do_not_hash_to_what_they_claim_prove_nothing(tmp_path: Path) -> None:
    """The hash at the tip is another one, and all earlier ones are right: a replacement within the limit."""
    replay = shown(EvmReplay(CHAIN), LAST)
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange()) as it:
        await until_synced(it, LAST)
        replay.evm_faults = [WRONG_HASHES._replace(number=LAST)]
        await until(it.follower, lambda: "not that of its header" in it.follower.status.problem)
        assert (it.follower.status.tip, it.follower.status.reorgs) == (LAST, 0)
        replay.evm_faults = []
        await until_synced(it, LAST)


@awaited
async def test_another_chain_is_no_end(tmp_path: Path) -> None:
    replay = shown(EvmReplay("anvil-1"), 50)
    own = replay.blocks
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange(), rules=RULES) as it:
        await until_synced(it, 50)
        kept = digests(tmp_path / "chain.sqlite")
        replay.blocks = recorded_blocks("berlin-1")
        await until(it.follower, lambda: "another chain" in it.follower.status.problem)
        assert COMMAND in it.follower.status.problem
        assert not it.follower.status.stopped
        assert digests(tmp_path / "chain.sqlite") == kept
        replay.blocks, replay.shown = own, 60
        await until_synced(it, 60)


@pytest.mark.parametrize("stuck_at", [0, LAST // 2])
@awaited
async def test_a_higher_upstream_is_used_when_the_first_one_is_stuck(stuck_at: int, tmp_path: Path) -> None:
    """Before and after there are blocks. One that only says that it is higher is not used."""
    stuck, honest, boasting = (shown(EvmReplay(CHAIN), stuck_at) for _ in range(3))
    honest.shown = LAST
    boasting.evm_faults = [EvmFault("eth_blockNumber", times=FOREVER, result=hex(LAST + 50).encode().join([b'"'] * 2))]
    first = stuck_at + 1 if stuck_at else 0
    async with indexing(tmp_path / "chain.sqlite", stuck, boasting, honest, blocks=BlockRange(first=first)) as it:
        await until_synced(it, LAST)
        honest.shown = LAST + 1
        await until_synced(it, LAST + 1)


# -- real reorganisations ----------------------------------------------------------------------------------------------


@awaited
async def test_a_reorganisation_is_followed_when_the_others_have_it_too(tmp_path: Path) -> None:
    first, second = (EvmReplay("anvil-1", branch("before")) for _ in range(2))
    async with indexing(tmp_path / "chain.sqlite", first, second, blocks=FORK) as it:
        await until_synced(it, first.head)
        first.blocks = branch("after")
        await wait_longer_than_lag(it)
        assert it.follower.status.reorgs == 0, "the second has the stored blocks"
        second.blocks = branch("after")
        await until(it.follower, lambda: it.store.block_hash(first.head) == tip_hash(first.blocks))
        assert (it.follower.status.reorgs, it.follower.status.reorged_blocks) == (1, DEPTH)


@pytest.mark.parametrize("in_use", [0, 1])
@awaited
async def test_one_against_one_is_reported_with_both_names_and_erases_nothing(in_use: int, tmp_path: Path) -> None:
    """Whichever of them is in use; one that grows on the stored branch is followed meanwhile."""
    stuck, moved = (EvmReplay("anvil-1", branch("before")) for _ in range(2))
    replays = [stuck, moved] if in_use == 0 else [moved, stuck]
    async with indexing(tmp_path / "chain.sqlite", *replays, blocks=FORK) as it:
        await until_synced(it, stuck.head)
        moved.blocks = branch("after")
        await until(it.follower, lambda: bool(it.follower.status.problem))
        assert all(one.url in it.follower.status.problem for one in (stuck, moved))
        assert (it.follower.status.reorgs, it.follower.status.synced) == (0, False)
        assert it.store.block_hash(stuck.head) == tip_hash(stuck.blocks)
        moved.blocks = branch("before")
        await until_synced(it, stuck.head)


@awaited
async def test_an_upstream_that_changes_its_mind_while_it_is_compared_ends_nothing(tmp_path: Path) -> None:
    """Another block at first, and the stored one when it is to be proven: no upstream is for or against anything."""
    replay = EvmReplay("anvil-1", branch("before"))
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=FORK) as it:
        await until_synced(it, replay.head)
        tip, seen = it.store.tip(), replay.head
        assert tip is not None
        replay.blocks = branch("after")

        def change_back(method: str, params: list[Any]) -> None:
            if method == "eth_chainId":  # of the comparison: its answer for the block is the third call from here
                replay.calls.clear()
            if method == "eth_getBlockByNumber" and params[0] == hex(seen) and replay.asked(method) == 2:
                replay.blocks = branch("before")

        replay.on_call = change_back
        with pytest.raises(ReorgRefused, match="changed its chain while it was compared"):
            await it.follower._reorgs.compare(tip)
        replay.on_call = lambda method, params: None
        await until_synced(it, seen)
        assert it.follower.status.reorgs == 0


@awaited
async def test_most_upstreams_decide(tmp_path: Path) -> None:
    """One that has stopped on the old branch does not hold the index there."""
    replays = [EvmReplay("anvil-1", branch("before")) for _ in range(3)]
    async with indexing(tmp_path / "chain.sqlite", *replays, blocks=FORK) as it:
        await until_synced(it, replays[0].head)
        for replay in replays[:2]:
            replay.blocks = branch("after")
        await until(it.follower, lambda: it.store.block_hash(replays[0].head) == tip_hash(replays[0].blocks))


@awaited
async def test_a_shorter_branch_is_followed_once_it_is_as_high(tmp_path: Path) -> None:
    common = recorded_blocks("anvil-1")
    before = recorded_blocks("anvil-1", "reorg2_before_blocks")
    replay = EvmReplay("anvil-1", {n: one for n, one in common.items() if n < min(before)} | before)
    blocks = BlockRange(first=min(before) - 20)
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=blocks) as it:
        await until_synced(it, max(before))
        replay.blocks, replay.shown = common, max(before) - 1
        await wait_longer_than_lag(it)
        assert (it.follower.status.tip, it.follower.status.reorgs) == (max(before), 0)
        replay.shown = max(before)
        await until(
            it.follower, lambda: it.store.block_hash(max(before)) == bytes.fromhex(common[max(before)].hash[2:])
        )
        assert it.follower.status.reorgs == 1


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (ReorgRules("1", depth_max=DEPTH - 1), f"{DEPTH} blocks, more than --reorg-depth-max={DEPTH - 1}"),
        (ReorgRules("1", DEPTH_MAX, is_final=lambda: True), "blocks of this chain are final"),
    ],
)
@awaited
async def test_what_is_not_rolled_back_by_itself_is_accepted_by_command(
    rules: ReorgRules, reason: str, tmp_path: Path
) -> None:
    replay = EvmReplay("anvil-1", branch("before"))
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=FORK, rules=rules) as it:
        await until_synced(it, replay.head)
        replay.blocks = branch("after")
        await until(it.follower, lambda: reason in it.follower.status.problem)
        assert COMMAND in it.follower.status.problem
        assert (it.follower.status.reorgs, it.follower.status.stopped) == (0, False)
        await _accept(it)
        await until_synced(it, replay.head)
        assert it.store.block_hash(replay.head) == tip_hash(replay.blocks)


async def _accept(it: Indexing) -> None:
    tip = it.store.tip()
    assert tip is not None
    accepted = await it.follower._reorgs.accept(tip)
    assert accepted == RollBack(tip.number - DEPTH)
    await roll_back(it.store, it.upstream, accepted)


@awaited
async def test_upstreams_that_differ_are_not_accepted(tmp_path: Path) -> None:
    replays = [EvmReplay("anvil-1", branch(when)) for when in ("before", "after")]
    async with indexing(tmp_path / "chain.sqlite", *replays, blocks=FORK) as it:
        await until_synced(it, replays[0].head)
        tip = it.store.tip()
        assert tip is not None
        with pytest.raises(ReorgRefused, match="have different blocks at height"):
            await it.follower._reorgs.accept(tip)


# -- development chains ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 5, LOW])
@awaited
async def test_a_development_chain_follows_a_lower_head_at_once(depth: int, tmp_path: Path) -> None:
    replay = shown(EvmReplay(CHAIN), LOW)
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange(), rules=DEVELOPMENT) as it:
        await until_synced(it, LOW)
        began = it.upstream.clock.now()
        replay.shown = LOW - depth
        await until(it.follower, lambda: it.follower.status.reorgs == 1)
        assert it.upstream.clock.now() - began < LAG_S
        await until_synced(it, LOW - depth)
        # What audits found at blocks that are gone was taken back with them, and is found again.
        await until(it.follower, lambda: (tip := it.store.tip()) is not None and it.follower.auditor.is_done(tip))
        assert it.follower.status.reorged_blocks == depth
        got = digests(tmp_path / "chain.sqlite")
    async with indexing(tmp_path / "clean.sqlite", shown(EvmReplay(CHAIN), LOW - depth)) as it:
        await it.follower.run()
    assert got == digests(tmp_path / "clean.sqlite")


@awaited
async def test_a_new_genesis_of_a_development_chain_begins_anew(tmp_path: Path) -> None:
    async with indexing(tmp_path / "chain.sqlite", shown(EvmReplay(CHAIN), LOW)) as it:
        await it.follower.run()
    new = shown(EvmReplay("berlin-1"), LOW)
    async with indexing(tmp_path / "chain.sqlite", new, rules=DEVELOPMENT, genesis=None) as it:
        await it.follower.run()
        assert it.store.meta("genesis_hash") == new.blocks[0].hash
        await it.store.put_meta({"genesis_hash": ""})
    async with indexing(tmp_path / "clean.sqlite", shown(EvmReplay("berlin-1"), LOW)) as it:
        await it.follower.run()
        await it.store.put_meta({"genesis_hash": ""})
    assert digests(tmp_path / "chain.sqlite") == digests(tmp_path / "clean.sqlite")


@awaited
async def test_starting_anew_leaves_only_what_is_not_from_blocks(tmp_path: Path) -> None:
    path = tmp_path / "chain.sqlite"
    async with indexing(path, shown(EvmReplay(CHAIN), LOW)) as it:
        await it.follower.run()
        assert len(_filled(path)) > 10
        await it.store.start_anew({"genesis_hash": "0x00"})
        assert _filled(path) <= {"meta", "price", "reputation", "listed_token"}
        assert it.store.tip() is None


def _filled(path: Path) -> set[str]:
    with tables_of(path) as tables:
        return {name for name in tables.names() if tables.rows(name)[1]}
