"""What makes a block fit to follow its parent."""

import msgspec
import pytest
from tests.xchain.craft import (
    ALICE,
    C_CHAIN,
    FEE,
    KEYS,
    NOW_S,
    World,
    base,
    export,
    import_,
    out,
    refusal_of,
    signed,
    spend,
)
from tests.xchain.memory_state import BLOCK_0, RULES

from icefall.wire.avm.codec import pack_block
from icefall.wire.avm.types import Block, TransferOutput, Tx, Utxo
from icefall.wire.ids import PLATFORM_CHAIN, id_text, input_id
from icefall.xchain.execute import EmptyState, Overlay, effects_of, verify_block
from icefall.xchain.model import TxRefused

PARENT = pack_block(BLOCK_0.block_id, 7, NOW_S - 5, ())


@pytest.fixture
def world() -> World:
    return World()


def block_of(*txs: Tx, height: int = 8, time: int = NOW_S, parent_id: bytes = PARENT.block_id) -> Block:
    return pack_block(parent_id, height, time, txs)


def refused(block: Block, world: World, now_s: int = NOW_S) -> str | None:
    return refusal_of(verify_block, block, PARENT, RULES, world, now_s)


def payment(world: World) -> Tx:
    return signed(base([out(9 * FEE)], [spend(world.fund())]))


def test_a_good_block(world: World) -> None:
    txs = [payment(world), payment(world)]
    effects = verify_block(block_of(*txs), PARENT, RULES, world, NOW_S)
    assert [row.tx for row in effects] == txs
    assert refused(block_of(*txs, time=PARENT.time), world) is None
    assert refused(block_of(*txs, time=NOW_S + 10), world) is None


def test_heads(world: World) -> None:
    tx = payment(world)
    root = b"\1" * 32
    marked = pack_block(PARENT.block_id, 8, NOW_S + 99, (), root)
    assert refused(marked, world) == f"unexpected merkle root: {id_text(root)}"
    future = "proposed timestamp is too far in the future relative to local time"
    assert refused(block_of(time=NOW_S + 11), world) == future
    assert refused(block_of(height=1), world) == "block contains no transactions"
    assert refused(block_of(signed(base([], [])), height=1), world) == "insufficient funds"
    ids = f"{id_text(PARENT.block_id)}, got {id_text(BLOCK_0.block_id)}"
    assert refused(block_of(tx, height=1, parent_id=BLOCK_0.block_id), world) == f"parent must be {ids}"
    for height in (7, 9):
        text = f"block has incorrect height: expected height 8, got {height}"
        assert refused(block_of(tx, height=height, time=1), world) == text
    past = "proposed timestamp before current chain time"
    assert refused(block_of(tx, time=PARENT.time - 1), world) == past


def test_later_transactions_see_earlier_ones(world: World) -> None:
    first = payment(world)
    made = Utxo(first.txid, 0, RULES.fee_asset_id, TransferOutput(9 * FEE, ALICE))
    second = signed(base([out(8 * FEE)], [spend(made)]))
    assert refused(block_of(first, second), world) is None
    missing = id_text(input_id(first.txid, 0))
    text = f"failed to verify transfer: failed to get utxo {missing}: not found"
    assert refused(block_of(second, first), world) == text


def test_no_output_is_spent_twice_in_a_block(world: World) -> None:
    utxo = world.fund()
    rivals = [signed(base([out(amount)], [spend(utxo)])) for amount in (1, 2)]
    text = f"failed to verify transfer: failed to get utxo {id_text(input_id(utxo.txid, 0))}: not found"
    assert refused(block_of(*rivals), world) == text


def test_nothing_is_imported_twice_in_a_block(world: World) -> None:
    utxo = world.export(C_CHAIN)
    rivals = [signed(import_(spend(utxo), outputs=[out(amount)]), KEYS[:1]) for amount in (1, 2)]
    assert refused(block_of(rivals[0]), world) is None
    assert refused(block_of(*rivals), world) == "block contains conflicting transactions"


def test_effects_of_a_pair_of_chains(world: World) -> None:
    """Numbering runs on into the exports; what was imported is listed with what was spent."""
    held, foreign = world.fund(), world.export(C_CHAIN)
    sent = signed(export(out(2), out(3), outputs=[out(1)], inputs=[spend(held)]))
    effects = effects_of(sent, world)
    assert [(new.utxo.output_index, new.utxo.output) for new in effects.created] == [(0, out(1).output)]
    away = [(new.utxo.output_index, new.utxo.output) for new in effects.exported]
    assert away == [(1, out(2).output), (2, out(3).output)]
    assert (effects.peer_chain_id, effects.spent, effects.imported) == (C_CHAIN, (input_id(held.txid, 0),), ())
    assert effects.exported[0].addresses == ALICE.addresses
    came = effects_of(signed(import_(spend(foreign), inputs=[spend(held)]), KEYS[:1], KEYS[:1]), world)
    assert came.spent_utxos == (held, foreign)
    assert (came.spent, came.imported) == ((input_id(held.txid, 0),), (input_id(foreign.txid, 0),))


def test_an_overlay_changes_nothing_beneath(world: World) -> None:
    before = dict(world.utxos)
    tx = payment(world)
    overlay = Overlay(world)
    overlay.add(effects_of(tx, overlay))
    assert overlay.tx(tx.txid) is tx
    assert overlay.utxo(input_id(tx.txid, 0)) is not None
    assert overlay.utxo(input_id(tx.unsigned.inputs[0].txid, 0)) is None
    assert world.tx(tx.txid) is None
    assert set(world.utxos) - set(before) == {input_id(tx.unsigned.inputs[0].txid, 0)}
    assert overlay.subnet_of(C_CHAIN) == PLATFORM_CHAIN
    assert overlay.tx(RULES.fee_asset_id) is world.tx(RULES.fee_asset_id)


def test_there_is_nothing_before_the_genesis() -> None:
    nothing = EmptyState()
    assert (nothing.utxo(b""), nothing.tx(b""), nothing.atomic_utxo(b"", b"")) == (None, None, None)
    with pytest.raises(TxRefused):
        nothing.subnet_of(C_CHAIN)


def test_effects_need_what_they_spend(world: World) -> None:
    tx = payment(world)
    world.utxos.clear()
    assert refusal_of(effects_of, tx, world) == "not found"


def test_a_changed_signature_is_another_transaction(world: World) -> None:
    tx = payment(world)
    forged = msgspec.structs.replace(tx, credentials=signed(tx.unsigned, KEYS[1:2]).credentials)
    assert (refused(block_of(forged), world) or "").startswith("failed to verify transfer: wrong signature")
