"""The mempool: which transactions enter, the error of the others, and how long errors are kept."""

from collections.abc import Callable

import pytest
from tests.xchain.craft import (
    ALICE,
    AVAX,
    C_CHAIN,
    FEE,
    KEYS,
    LATER,
    NO_OWNERS,
    NOW_S,
    World,
    base,
    import_,
    on,
    operate,
    out,
    refusal_of,
    signed,
    spend,
)
from tests.xchain.memory_state import RULES

from icefall.wire.avm.codec import pack_tx
from icefall.wire.avm.types import (
    Credential,
    PropertyBurnOperation,
    PropertyCredential,
    PropertyOwnedOutput,
    TransferOutput,
    Tx,
    Utxo,
)
from icefall.wire.ids import id_text, input_id
from icefall.xchain.mempool import SIZE_MAX, TX_SIZE_MAX, Mempool, Refusal, issue, verify_tx
from icefall.xchain.model import TxRefused


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def mempool() -> Mempool:
    return Mempool()


def issued(tx: Tx, mempool: Mempool, world: World, now_s: int = NOW_S) -> str | None:
    return refusal_of(issue, tx, mempool, RULES, world, now_s)


def payment(world: World, amount: int = 9 * FEE) -> Tx:
    return signed(base([out(amount)], [spend(world.fund())]))


def sized(world: World, size: int) -> Tx:
    """A transaction of exactly so many bytes. An output without owners has 60, a memo up to 256."""
    held = world.fund(TransferOutput(10**15, ALICE))
    empty = len(signed(base([], [spend(held)])).raw)
    count = (size - empty - 128) // 60
    memo = bytes(size - empty - 60 * count)
    tx = signed(base([out(1, NO_OWNERS)] * count, [spend(held)], memo))
    assert len(tx.raw) == size
    return tx


def accept_all(_: Tx) -> None:
    """A verification that finds no fault."""


def test_first_in_first_out(mempool: Mempool, world: World) -> None:
    txs = [payment(world) for _ in range(20)]
    for tx in txs:
        assert issued(tx, mempool, world) is None
    assert list(mempool) == txs
    assert len(mempool) == 20
    assert mempool.size == sum(len(tx.raw) for tx in txs)
    mempool.accepted(txs[3:5])
    assert list(mempool) == txs[:3] + txs[5:]
    assert mempool.size == sum(len(tx.raw) for tx in mempool)
    assert txs[3].txid not in mempool
    assert txs[5].txid in mempool


def test_one_that_waits_is_taken_again_without_a_look(mempool: Mempool, world: World) -> None:
    tx = payment(world)
    assert issued(tx, mempool, world) is None
    world.utxos.clear()
    assert issued(tx, mempool, world) is None
    assert len(mempool) == 1


def test_a_conflict_names_the_refused_transaction(mempool: Mempool, world: World) -> None:
    utxo = world.fund()
    first, second = (signed(base([out(amount)], [spend(utxo)])) for amount in (1, 2))
    assert issued(first, mempool, world) is None
    text = f"tx conflicts with other tx: {id_text(second.txid)}"
    assert issued(second, mempool, world) == text
    assert mempool.refusal(second.txid) is None, "the first may still be dropped"
    assert mempool.accepted([first]) == [Refusal(second.txid, text, is_final=True)]
    assert issued(second, mempool, world) == text  # remembered


def test_a_conflict_ends_with_the_transaction_that_was_first(mempool: Mempool, world: World) -> None:
    utxo = world.fund()
    first, second, other = (signed(base([out(amount)], [spend(utxo)])) for amount in (1, 2, 3))
    for tx in (first, second, other):
        issued(tx, mempool, world)
    mempool.drop(Refusal(first.txid, "why", is_final=True))
    assert issued(second, mempool, world) is None
    assert mempool.accepted([second]) == [
        Refusal(other.txid, f"tx conflicts with other tx: {id_text(other.txid)}", is_final=True)
    ]


def test_rivals_over_operations_and_imports(mempool: Mempool, world: World) -> None:
    token = world.fund(PropertyOwnedOutput(ALICE), world.asset(2))
    burns = [
        signed(
            operate(on(token, PropertyBurnOperation((0,))), inputs=[spend(world.fund())]),
            KEYS[:1],
            KEYS[:1],
            fxs=[Credential, PropertyCredential],
        )
        for _ in range(2)
    ]
    foreign = world.export(C_CHAIN)
    imports = [signed(import_(spend(foreign), outputs=[out(amount)]), KEYS[:1]) for amount in (1, 2)]
    for first, second in (burns, imports):
        assert issued(first, mempool, world) is None
        assert issued(second, mempool, world) == f"tx conflicts with other tx: {id_text(second.txid)}"


def test_size_of_one(mempool: Mempool, world: World) -> None:
    assert issued(sized(world, TX_SIZE_MAX), mempool, world) is None
    for size in (TX_SIZE_MAX + 1, 200_000):
        tx = sized(world, size)
        text = f"tx too large: {id_text(tx.txid)} size ({size}) > max size (65536)"
        assert issued(tx, mempool, world) == text
        assert mempool.refusal(tx.txid) == text


def test_size_is_looked_at_after_everything_else(mempool: Mempool, world: World) -> None:
    tx = sized(world, TX_SIZE_MAX + 1)
    world.utxos.clear()
    assert (issued(tx, mempool, world) or "").startswith("failed to verify transfer: failed to get utxo ")


def test_size_of_all(world: World) -> None:
    """A full mempool says so, and forgets that it did."""
    first, second = payment(world), payment(world)
    size = len(first.raw)
    assert len(second.raw) == size
    mempool = Mempool(size_max=2 * size - 1)
    assert issued(first, mempool, world) is None
    text = f"mempool is full: {id_text(second.txid)} size ({size}) > available space ({size - 1})"
    assert issued(second, mempool, world) == text
    assert mempool.refusal(second.txid) is None
    mempool.accepted([first])
    assert issued(second, mempool, world) is None


def test_the_real_size_of_all(mempool: Mempool) -> None:
    txs = [pack_tx(base([], [], bytes(TX_SIZE_MAX - 62) + index.to_bytes(4, "big"))) for index in range(1025)]
    assert {len(tx.raw) for tx in txs} == {TX_SIZE_MAX}
    for tx in txs[:-1]:
        mempool.put(tx)
    assert mempool.size == SIZE_MAX
    text = f"mempool is full: {id_text(txs[-1].txid)} size (65536) > available space (0)"
    assert refusal_of(mempool.put, txs[-1]) == text


def test_full_comes_before_conflict_and_too_large_before_full(world: World) -> None:
    utxo = world.fund()
    first, second = (signed(base([out(amount)], [spend(utxo)])) for amount in (1, 2))
    mempool = Mempool(size_max=len(first.raw))
    assert issued(first, mempool, world) is None
    assert (issued(second, mempool, world) or "").startswith("mempool is full: ")
    assert (issued(sized(world, TX_SIZE_MAX + 1), mempool, world) or "").startswith("tx too large: ")


def test_what_the_live_dialect_has_refused_is_not_verified_again(world: World) -> None:
    mempool = Mempool(remembers_all=True)
    tx = payment(world)
    held = dict(world.utxos)
    world.utxos.clear()
    text = issued(tx, mempool, world)
    world.utxos.update(held)
    assert issued(tx, mempool, world) == text
    assert mempool.refusal(tx.txid) == text
    assert refusal_of(verify_tx, tx, RULES, world, NOW_S) is None


def _missing_input(world: World) -> Tx:
    tx = payment(world)
    world.utxos.clear()
    return tx


def _spent_input(world: World) -> Tx:
    spent = payment(world)
    tx = signed(base([out(1)], [spend(world.fund(txid=spent.txid))]))
    world.txs[spent.txid] = spent
    del world.utxos[input_id(spent.txid, 0)]
    return tx


def _missing_operand(world: World) -> Tx:
    token = world.fund(PropertyOwnedOutput(ALICE), world.asset(2))
    del world.utxos[input_id(token.txid, token.output_index)]
    burn = operate(on(token, PropertyBurnOperation((0,))), inputs=[spend(world.fund())])
    return signed(burn, KEYS[:1], KEYS[:1], fxs=[Credential, PropertyCredential])


def _unknown_asset(world: World) -> Tx:
    inputs = [spend(world.fund(asset_id=b"\x07" * 32)), spend(world.fund())]
    return signed(base([out(1)], sorted(inputs, key=lambda row: row.txid)))


FINALITY: list[tuple[Callable[[World], Tx], bool]] = [
    (_missing_input, False),
    (_spent_input, True),
    (_missing_operand, False),
    (lambda world: signed(base([out(1)], [spend(world.fund(TransferOutput(10 * FEE, LATER)))])), False),
    (lambda world: signed(base([out(1)], [spend(world.fund())]), KEYS[1:2]), True),  # another's signature
    (lambda world: signed(base([], [])), True),  # malformed
    (_unknown_asset, False),
    (
        lambda world: signed(import_(spend(Utxo(b"\x08" * 32, 0, AVAX, TransferOutput(10 * FEE, ALICE)))), KEYS[:1]),
        False,
    ),
    (lambda world: sized(world, TX_SIZE_MAX + 1), True),
]


@pytest.mark.parametrize(("tx_of", "is_final"), FINALITY)
def test_only_final_refusals_are_remembered(
    tx_of: Callable[[World], Tx], is_final: bool, mempool: Mempool, world: World
) -> None:
    tx = tx_of(world)
    text = issued(tx, mempool, world)
    assert text
    assert mempool.refusal(tx.txid) == (text if is_final else None)


def test_one_that_was_refused_for_a_missing_input_is_taken_once_it_is_there(mempool: Mempool, world: World) -> None:
    tx = payment(world)
    held = dict(world.utxos)
    world.utxos.clear()
    assert issued(tx, mempool, world)
    world.utxos.update(held)
    assert issued(tx, mempool, world) is None


def test_64_refusals_are_remembered(mempool: Mempool, world: World) -> None:
    txs = [signed(base([], [], bytes([number]))) for number in range(65)]
    for tx in txs[:-1]:
        assert issued(tx, mempool, world) == "insufficient funds"
    asked_again = txs[0]
    assert issued(asked_again, mempool, world) == "insufficient funds"  # which makes it the freshest
    issued(txs[-1], mempool, world)
    assert mempool.refusal(txs[1].txid) is None
    assert all(mempool.refusal(tx.txid) for tx in (asked_again, *txs[2:]))
    looked_at: list[Tx] = []
    mempool.add(txs[1], looked_at.append)
    with pytest.raises(TxRefused):
        mempool.add(txs[2], looked_at.append)
    assert looked_at == [txs[1]]


def test_asking_for_a_refusal_does_not_keep_it(mempool: Mempool) -> None:
    for number in range(64):
        mempool.drop(Refusal(bytes([number]), "why", is_final=True))
    assert mempool.refusal(b"\0") == "why"
    mempool.drop(Refusal(b"new", "why", is_final=True))
    assert mempool.refusal(b"\0") is None


def test_put_overrules_a_refusal(mempool: Mempool, world: World) -> None:
    """The wallet's way in: without a look, and without regard to what was said before."""
    tx = payment(world)
    mempool.drop(Refusal(tx.txid, "why", is_final=True))
    mempool.put(tx)
    mempool.put(tx)
    assert list(mempool) == [tx]
    assert mempool.refusal(tx.txid) is None


def test_dropping_makes_room(mempool: Mempool, world: World) -> None:
    utxo = world.fund()
    first, second = (signed(base([out(amount)], [spend(utxo)])) for amount in (1, 2))
    mempool.add(first, accept_all)
    mempool.drop(Refusal(first.txid, "why", is_final=True))
    assert (len(mempool), mempool.size) == (0, 0)
    mempool.add(second, accept_all)
    assert list(mempool) == [second]


def test_rivals_of_what_was_accepted_leave(mempool: Mempool, world: World) -> None:
    """A block from elsewhere spends what one here wants to spend. Nothing is held against the loser."""
    one, two = sorted([world.fund(), world.fund()], key=lambda utxo: utxo.txid)
    loser = signed(base([out(1)], [spend(one), spend(two)]))
    bystander = payment(world)
    winner = signed(base([out(2)], [spend(two)]))
    for tx in (loser, bystander):
        assert issued(tx, mempool, world) is None
    mempool.accepted([winner])
    assert list(mempool) == [bystander]
    assert mempool.refusal(loser.txid) is None
    mempool.put(signed(base([out(3)], [spend(one)])))
    assert len(mempool) == 2
