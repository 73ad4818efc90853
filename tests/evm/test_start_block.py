"""Indexes that begin inside a chain: balances from before it, and reorganisations that reach below it."""

from pathlib import Path

import pytest
from tests.awaited import awaited
from tests.evm.digest import digests
from tests.evm.indexed import DEPTH_MAX, RULES, indexing
from tests.evm.test_follow_chain import CHAIN, shown, until
from tests.evm.test_reorgs import COMMAND, DEPTH, branch, tip_hash, until_synced
from tests.upstream.evm_replay import EvmReplay

from icefall.evm.auditing.audit import finish_audits
from icefall.evm.encoding import unpack_uint
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.indexing.reorgs import ReorgRules

FIRST, LAST = 200, 260
LATER = range(LAST, 320, 4)
TRUSTED_HOLDINGS = """select a.address, h.token_address, h.baseline from erc20_holding h
    join address a on a.id = h.holder join token_trust t on t.token = h.token where not t.is_untrusted"""
INSIDE = DEPTH - 2  # blocks of an index whose first one is in the middle of what is reorganised


@awaited
async def test_balances_from_before_the_index_need_no_archive(tmp_path: Path) -> None:
    """Those of tokens that the audits trust: only these are in the digest."""
    archive, pruned = shown(EvmReplay(CHAIN), LATER[-1]), shown(EvmReplay(CHAIN), LAST)
    blocks = BlockRange(first=FIRST, last=LATER[-1])
    async with indexing(tmp_path / "archive.sqlite", archive, blocks=blocks) as it:
        await it.follower.run()
    async with indexing(tmp_path / "pruned.sqlite", pruned, blocks=BlockRange(first=FIRST)) as it:
        for head in LATER:
            pruned.shown = head
            await until_synced(it, head)
            pruned.pruned_below = head - 8
        await finish_audits(it.follower.auditor, it.store)
    found, expected = (digests(tmp_path / f"{name}.sqlite") for name in ("pruned", "archive"))
    for one in (found, expected):
        one.pop("erc20_holding")  # what untrusted tokens had before the index is in it as well
    assert found == expected


@awaited
async def test_balances_from_before_the_index_are_those_of_a_whole_index(tmp_path: Path) -> None:
    """Tokens whose holders had a balance before stay trusted, so that their balances need no upstream."""
    async with indexing(tmp_path / "whole.sqlite", EvmReplay(CHAIN), blocks=BlockRange(last=LAST)) as it:
        await it.follower.run()
        balance_at = """select b.balance from erc20_balance b join address h on h.id = b.holder
            join address t on t.id = b.token where h.address = ? and t.address = ? and b.block < ?
            order by b.block desc limit 1"""
        async with indexing(
            tmp_path / "part.sqlite", EvmReplay(CHAIN), blocks=BlockRange(first=FIRST, last=LAST)
        ) as part:
            await part.follower.run()
            opened = part.store.read(TRUSTED_HOLDINGS)
            for holder, token, before in opened:
                known = it.store.read(balance_at, (holder, token, FIRST))
                assert unpack_uint(before) == (unpack_uint(known[0][0]) if known else 0), (holder.hex(), token.hex())
    assert len(opened) > 50
    assert sum(unpack_uint(before) > 0 for _, _, before in opened) > 30


@awaited
async def test_a_holder_that_is_stored_is_not_asked_for_again(tmp_path: Path) -> None:
    """Each pair of token and holder at most once, in batches of one block."""
    replay = shown(EvmReplay(CHAIN), FIRST)
    asked: list[str] = []

    def on_call(method: str, params: list[object]) -> None:
        if method == "eth_call" and params[1] == hex(FIRST - 1):
            asked.append(repr(params[0]))

    async with indexing(tmp_path / "chain.sqlite", replay, blocks=BlockRange(first=FIRST), audited=False) as it:
        replay.on_call = on_call
        for head in range(FIRST, LAST):
            replay.shown = head
            await until_synced(it, head)
    assert len(asked) == len(set(asked)) > 20


@awaited
async def test_a_reorganisation_that_reaches_below_the_first_block_begins_the_index_again(tmp_path: Path) -> None:
    replay = EvmReplay("anvil-1", branch("before"))
    blocks = BlockRange(first=replay.head - INSIDE + 1)
    async with indexing(tmp_path / "turned.sqlite", replay, blocks=blocks, rules=RULES) as it:
        await until_synced(it, replay.head)
        await it.store.put_meta({"genesis_hash": replay.blocks[0].hash})
        replay.blocks = branch("after")
        await until(it.follower, lambda: it.store.block_hash(replay.head) == tip_hash(replay.blocks))
        assert (it.follower.status.reorgs, it.follower.status.reorged_blocks) == (1, INSIDE)
        assert it.store.lowest() == blocks.first


@pytest.mark.parametrize(
    ("genesis", "rules", "reason"),
    [
        ("0x" + "77" * 32, RULES, "this is another chain"),
        ("", RULES, "this is another chain"),
        (None, ReorgRules("1", depth_max=INSIDE - 1), f"{INSIDE} blocks, more than --reorg-depth-max={INSIDE - 1}"),
        (None, ReorgRules("1", DEPTH_MAX, is_final=lambda: True), "blocks of this chain are final"),
    ],
)
@awaited
async def test_such_a_reorganisation_is_refused_like_any_other(
    genesis: str | None, rules: ReorgRules, reason: str, tmp_path: Path
) -> None:
    """`genesis`: as it is stored; None for the true one, empty for none."""
    replay = EvmReplay("anvil-1", branch("before"))
    blocks = BlockRange(first=replay.head - INSIDE + 1)
    async with indexing(tmp_path / "chain.sqlite", replay, blocks=blocks, rules=rules) as it:
        await until_synced(it, replay.head)
        if genesis != "":
            await it.store.put_meta({"genesis_hash": genesis or replay.blocks[0].hash})
        replay.blocks = branch("after")
        await until(it.follower, lambda: reason in it.follower.status.problem)
        assert COMMAND in it.follower.status.problem
        assert (it.follower.status.tip, it.follower.status.reorgs) == (replay.head, 0)
