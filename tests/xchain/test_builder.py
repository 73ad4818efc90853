"""Blocks made of what waits."""

import pytest
from tests.xchain.craft import (
    ALICE,
    C_CHAIN,
    FEE,
    KEYS,
    NO_OWNERS,
    NOW_S,
    World,
    base,
    import_,
    out,
    refusal_of,
    signed,
    spend,
)
from tests.xchain.memory_state import BLOCK_0, RULES

from icefall.wire.avm.codec import pack_block, unpack_block
from icefall.wire.avm.types import Owners, TransferOutput, Tx
from icefall.wire.ids import id_text, input_id
from icefall.xchain.chain import BLOCK_SIZE_TARGET, BuiltBlock, build
from icefall.xchain.execute import verify_block
from icefall.xchain.mempool import Mempool, issue
from icefall.xchain.ownership import Signers

PARENT = pack_block(BLOCK_0.block_id, 7, NOW_S, ())


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def mempool() -> Mempool:
    return Mempool()


def payment(world: World, outputs: int = 1) -> Tx:
    held = world.fund(TransferOutput(10**15, ALICE))
    return signed(base([out(1, NO_OWNERS)] * outputs, [spend(held)]))


def built(mempool: Mempool, world: World, now_s: int = NOW_S, txs_max: int = 0) -> BuiltBlock:
    return build(mempool, PARENT, RULES, world, now_s, txs_max)


def test_oldest_first(mempool: Mempool, world: World) -> None:
    txs = [payment(world) for _ in range(5)]
    for tx in txs:
        mempool.put(tx)
    block, effects, dropped = built(mempool, world)
    assert block is not None
    assert (block.txs, block.height, block.parent_id) == (tuple(txs), 8, PARENT.block_id)
    assert [row.tx for row in effects] == txs
    assert not dropped
    assert unpack_block(block.raw) == block
    assert verify_block(block, PARENT, RULES, world, NOW_S) == effects
    assert len(mempool) == 5  # until the block is accepted


@pytest.mark.parametrize(("now_s", "time"), [(NOW_S - 9, NOW_S), (NOW_S, NOW_S), (NOW_S + 3, NOW_S + 3)])
def test_time_never_runs_back(mempool: Mempool, world: World, now_s: int, time: int) -> None:
    mempool.put(payment(world))
    block = built(mempool, world, now_s).block
    assert block is not None
    assert block.time == time


def test_nothing_waits(mempool: Mempool, world: World) -> None:
    assert built(mempool, world) == BuiltBlock(None, (), ())


def test_the_first_that_does_not_fit_ends_the_block(mempool: Mempool, world: World) -> None:
    """Smaller ones behind it do not overtake."""
    txs = [payment(world, 600) for _ in range(5)] + [payment(world) for _ in range(3)]
    for tx in txs:
        mempool.put(tx)
    assert 3 * len(txs[0].raw) < BLOCK_SIZE_TARGET < 4 * len(txs[0].raw)
    first = built(mempool, world)
    assert first.block is not None
    assert first.block.txs == tuple(txs[:3])
    for effects in first.effects:  # what was put there by hand has no bytes
        world.raw.update(dict.fromkeys(effects.spent, b""))
    world.accept(first.effects)
    mempool.accepted(first.block.txs)
    second = built(mempool, world)
    assert second.block is not None
    assert second.block.txs == tuple(txs[3:])


def test_a_block_is_filled_to_the_last_byte(mempool: Mempool, world: World) -> None:
    sizes = len(payment(world, 1).raw), len(payment(world, 2).raw)
    per_output, head = sizes[1] - sizes[0], 2 * sizes[0] - sizes[1]
    half = (BLOCK_SIZE_TARGET // 2 - head) // per_output
    spare = BLOCK_SIZE_TARGET - 2 * (head + half * per_output)
    assert 0 < spare < 2 * 256
    held = [world.fund(TransferOutput(10**15, ALICE)) for _ in range(2)]
    memos = [bytes(spare // 2), bytes(spare - spare // 2)]
    txs = [
        signed(base([out(1, NO_OWNERS)] * half, [spend(utxo)], memo)) for utxo, memo in zip(held, memos, strict=True)
    ]
    assert sum(len(tx.raw) for tx in txs) == BLOCK_SIZE_TARGET
    for tx in txs:
        mempool.put(tx)
    block = built(mempool, world).block
    assert block is not None
    assert len(block.txs) == 2
    last = payment(world)
    mempool.put(last)
    block = built(mempool, world).block
    assert block is not None
    assert last not in block.txs


def test_at_most_so_many(mempool: Mempool, world: World) -> None:
    txs = [payment(world) for _ in range(5)]
    for tx in txs:
        mempool.put(tx)
    block = built(mempool, world, txs_max=2).block
    assert block is not None
    assert block.txs == tuple(txs[:2])


def test_invalid_ones_are_dropped(mempool: Mempool, world: World) -> None:
    good, gone, malformed, last = payment(world), payment(world), signed(base([], [])), payment(world)
    for tx in (good, gone, malformed, last):
        mempool.put(tx)
    spent = input_id(gone.unsigned.inputs[0].txid, 0)
    del world.utxos[spent]
    block, _, dropped = built(mempool, world)
    assert block is not None
    assert block.txs == (good, last)
    missing = f"failed to verify transfer: failed to get utxo {id_text(spent)}: not found"
    assert dropped == ((gone.txid, missing, False), (malformed.txid, "insufficient funds", True))
    assert list(mempool) == [good, last]
    assert mempool.refusal(gone.txid) is None
    assert mempool.refusal(malformed.txid) == "insufficient funds"
    assert refusal_of(issue, gone, mempool, RULES, world, NOW_S) == missing


def test_all_of_them_invalid(mempool: Mempool, world: World) -> None:
    tx = payment(world)
    mempool.put(tx)
    world.utxos.clear()
    block, effects, dropped = built(mempool, world)
    assert (block, effects, len(dropped), len(mempool)) == (None, (), 1, 0)


def test_dropped_ones_take_no_room(mempool: Mempool, world: World) -> None:
    large = [payment(world, 900) for _ in range(3)]
    for tx in large:
        mempool.put(tx)
    del world.utxos[input_id(large[0].unsigned.inputs[0].txid, 0)]
    block = built(mempool, world).block
    assert block is not None
    assert block.txs == tuple(large[1:])


def test_a_lock_is_held_against_the_clock_again(mempool: Mempool, world: World) -> None:
    locked = world.fund(TransferOutput(10 * FEE, Owners(NOW_S, 1, ALICE.addresses)))
    tx = signed(base([], [spend(locked)]))
    mempool.put(tx)
    text = "failed to verify transfer: output is time locked"
    assert built(mempool, world, NOW_S - 1).dropped == ((tx.txid, text, False),)


def test_imports_are_built_too(mempool: Mempool, world: World) -> None:
    foreign = world.export(C_CHAIN)
    tx = signed(import_(spend(foreign), outputs=[out(1)]), KEYS[:1])
    mempool.put(tx)
    block, effects, _ = built(mempool, world)
    assert block is not None
    assert effects[0].imported == (input_id(foreign.txid, 0),)


def test_signatures_are_recovered_once(mempool: Mempool, world: World) -> None:
    """Issuing and building share what they found out; so do the inputs that one key unlocks."""
    calls: list[bytes] = []

    class Counting(Signers):
        def __call__(self, signature: bytes, digest: bytes) -> bytes:
            calls.append(signature)
            return super().__call__(signature, digest)

    signers = Counting()
    inputs = sorted((spend(world.fund()) for _ in range(3)), key=lambda row: row.txid)
    tx = signed(base([], inputs))
    issue(tx, mempool, RULES, world, NOW_S, signers)
    assert build(mempool, PARENT, RULES, world, NOW_S, recover=signers).block is not None
    assert (len(calls), len(signers)) == (6, 1)


def test_the_oldest_signers_are_forgotten(world: World) -> None:
    signers = Signers(size_max=3)
    txs = [payment(world) for _ in range(5)]
    for tx in txs:
        issue(tx, Mempool(), RULES, world, NOW_S, signers)
    assert len(signers) == 3
