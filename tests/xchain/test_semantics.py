"""Every text of semantic verification, and what ownership looks at first."""

import pytest
from tests.xchain.craft import (
    ADDRESSES,
    ALICE,
    BOB,
    BOTH,
    C_CHAIN,
    FEE,
    KEYS,
    LATER,
    NO_OWNERS,
    NOW_S,
    World,
    base,
    export,
    fresh_id,
    import_,
    out,
    refusal_of,
    signed,
    spend,
    unsigned_with,
)
from tests.xchain.memory_state import RULES

from icefall.wire.avm.types import (
    Credential,
    MintOperation,
    MintOutput,
    NftCredential,
    NftMintOutput,
    NftTransferOutput,
    Owners,
    PropertyBurnOperation,
    PropertyCredential,
    PropertyOwnedOutput,
    TransferInput,
    TransferOutput,
    Tx,
    Verifiable,
)
from icefall.wire.ids import PLATFORM_CHAIN, hash256, id_text, input_id, short_id_text
from icefall.wire.keys import CURVE_ORDER, sign
from icefall.xchain.mempool import verify_tx

TRANSFER = "failed to verify transfer: "


@pytest.fixture
def world() -> World:
    return World()


def refused(tx: Tx, world: World, now_s: int = NOW_S) -> str | None:
    return refusal_of(verify_tx, tx, RULES, world, now_s)


def pays(world: World, owners: Owners = ALICE) -> Tx:
    """A plain transaction, unsigned."""
    return unsigned_with(base([out(owners=BOB)], [spend(world.fund(TransferOutput(10 * FEE, owners)))]))


# -- inputs ---------------------------------------------------------------------------------------------------


def test_a_missing_utxo_is_named_by_its_id(world: World) -> None:
    utxo = world.fund()
    del world.utxos[input_id(utxo.txid, 0)]
    missing = id_text(input_id(utxo.txid, 0))
    assert refused(signed(base([], [spend(utxo)])), world) == f"{TRANSFER}failed to get utxo {missing}: not found"


def test_the_first_bad_input_is_the_one_refused(world: World) -> None:
    first, second = sorted([world.fund(), world.fund()], key=lambda utxo: utxo.txid)
    del world.utxos[input_id(second.txid, 0)]
    tx = signed(base([], [spend(first, amount=FEE), spend(second)]))
    assert refused(tx, world) == f"{TRANSFER}utxo amount and input amount are not equal: {10 * FEE} != {FEE}"


def test_the_asset_must_be_the_utxos(world: World) -> None:
    other = world.fund(asset_id=world.asset(0))
    pretended = spend(world.fund(txid=other.txid))
    world.utxos[input_id(other.txid, 0)] = other
    assert refused(signed(base([], [pretended])), world) == f"{TRANSFER}asset IDs in the input don't match the utxo"


@pytest.mark.parametrize(
    ("fxs", "credential", "text"),
    [
        ((0,), NftCredential(()), "incompatible feature extension"),
        ((0,), PropertyCredential(()), "incompatible feature extension"),
        ((0, 1, 2), NftCredential(()), "cant transfer with this fx"),
        ((0, 1, 2), PropertyCredential(()), "cant transfer with this fx"),
        ((1,), Credential(()), "incompatible feature extension"),
        # Not credentials at all:
        ((0,), TransferInput(1, ()), "wrong credential type"),
        ((0,), MintOutput(ALICE), "wrong credential type"),
        ((0,), TransferOutput(1, ALICE), "wrong credential type"),
        ((0,), MintOperation((), MintOutput(ALICE), TransferOutput(1, ALICE)), "wrong credential type"),
        ((0,), NftMintOutput(0, ALICE), "incompatible feature extension"),
        ((0,), PropertyBurnOperation(()), "incompatible feature extension"),
        ((0, 1), NftMintOutput(0, ALICE), "cant transfer with this fx"),
        ((0, 2), PropertyOwnedOutput(ALICE), "cant transfer with this fx"),
    ],
)
def test_the_credential_decides_the_fx(world: World, fxs: tuple[int, ...], credential: Verifiable, text: str) -> None:
    fee, held = world.fund(txid=b"\0" * 31 + b"\1"), world.fund(asset_id=world.asset(*fxs))
    unsigned = base([], [spend(fee), spend(held)])
    paid = Credential((sign(KEYS[0], hash256(unsigned_with(unsigned).unsigned_raw)),))
    assert refused(unsigned_with(unsigned, paid, credential), world) == TRANSFER + text


@pytest.mark.parametrize(
    "output", [MintOutput(ALICE), NftMintOutput(0, ALICE), PropertyOwnedOutput(ALICE), NftTransferOutput(0, b"", ALICE)]
)
def test_only_transfer_outputs_are_spent_by_inputs(world: World, output: MintOutput) -> None:
    fee, held = world.fund(txid=b"\0" * 31 + b"\1"), world.fund(output, world.asset(0, 1, 2))
    assert refused(signed(base([], [spend(fee), spend(held)])), world) == f"{TRANSFER}wrong utxo type"


# -- ownership ------------------------------------------------------------------------------------------------


def test_a_lock_opens_with_its_second(world: World) -> None:
    tx = signed(pays(world, Owners(NOW_S, 1, ADDRESSES[:1])).unsigned)
    assert refused(tx, world, NOW_S - 1) == f"{TRANSFER}output is time locked"
    assert refused(tx, world, NOW_S) is None


@pytest.mark.parametrize(
    ("owners", "indices", "signers", "text"),
    [
        (LATER, (0, 1), 0, "output is time locked"),  # whatever else is wrong
        (ALICE, (0, 1), 2, "input has more signers than expected"),
        (BOTH, (0,), 1, "input has less signers than expected"),
        (BOTH, (), 0, "input has less signers than expected"),
        (NO_OWNERS, (0,), 1, "input has more signers than expected"),
        (BOTH, (0, 1), 1, "input expected a different number of signers than provided in the credential"),
        (ALICE, (0,), 2, "input expected a different number of signers than provided in the credential"),
        (NO_OWNERS, (), 1, "input expected a different number of signers than provided in the credential"),
        (BOTH, (0, 2), 2, "input referenced a nonexistent address in the output"),
        (ALICE, (2**32 - 1,), 1, "input referenced a nonexistent address in the output"),
        (BOTH, (0, 1), 2, None),
        (NO_OWNERS, (), 0, None),
        (Owners(0, 1, ADDRESSES[:3]), (0,), 1, None),
    ],
)
def test_signers_are_counted(
    world: World, owners: Owners, indices: tuple[int, ...], signers: int, text: str | None
) -> None:
    utxo = world.fund(TransferOutput(10 * FEE, owners))
    tx = signed(base([], [spend(utxo, indices=indices)]), KEYS[:signers])
    assert refused(tx, world) == (text and TRANSFER + text)


def test_the_wrong_signer_is_named(world: World) -> None:
    expected, got = short_id_text(ADDRESSES[0]), short_id_text(ADDRESSES[1])
    tx = signed(pays(world).unsigned, KEYS[1:2])
    assert refused(tx, world) == f"{TRANSFER}wrong signature: expected signature from {expected} but got from {got}"


def test_signatures_are_in_the_order_of_the_addresses(world: World) -> None:
    tx = signed(pays(world, BOTH).unsigned, [KEYS[1], KEYS[0]])
    assert (refused(tx, world) or "").startswith(f"{TRANSFER}wrong signature: expected signature from ")


def test_a_bad_first_signature_wins_over_a_bad_second_index(world: World) -> None:
    utxo = world.fund(TransferOutput(10 * FEE, BOTH))
    tx = signed(base([], [spend(utxo, indices=(0, 7))]), [KEYS[2], KEYS[1]])
    assert (refused(tx, world) or "").startswith(f"{TRANSFER}wrong signature: ")


@pytest.mark.parametrize(
    ("forge", "text"),
    [
        (
            lambda r, s, v: r + (CURVE_ORDER - s).to_bytes(32, "big") + v,
            "signature was mutated from its original format",
        ),
        (lambda r, s, v: r + s.to_bytes(32, "big") + bytes([v[0] + 4]), "wasn't expecting a compressed key"),
        (lambda r, s, v: r + s.to_bytes(32, "big") + b"\x1b", "invalid signature"),
        (lambda r, s, v: bytes(65), "invalid signature"),
        (lambda r, s, v: b"\xff" * 65, "invalid signature"),
    ],
)
def test_unreadable_signatures(world: World, forge: object, text: str) -> None:
    plain = pays(world)
    raw = sign(KEYS[0], hash256(plain.unsigned_raw))
    forged = forge(raw[:32], int.from_bytes(raw[32:64], "big"), raw[64:])  # type: ignore[operator]
    assert refused(unsigned_with(plain.unsigned, Credential((forged,))), world) == TRANSFER + text


# -- outputs, imports, exports --------------------------------------------------------------------------------


def test_an_import_may_pay_for_outputs_that_no_input_vouches_for(world: World) -> None:
    """The one road to these texts: outputs are looked at before what is imported."""
    cases = [
        (fresh_id(), "not found"),
        (world.some_tx(), "not an asset"),
        (world.asset(1), "incompatible feature extension"),
    ]
    for asset_id, text in cases:
        fee, foreign = world.fund(), world.export(C_CHAIN, TransferOutput(5, ALICE), asset_id)
        unsigned = import_(spend(foreign), inputs=[spend(fee)], outputs=[out(5, asset_id=asset_id)])
        assert refused(signed(unsigned, KEYS[:1], KEYS[:1]), world) == f"failed to verify fx usage: {text}"


def test_imports(world: World) -> None:
    utxo = world.export(C_CHAIN)
    good = import_(spend(utxo), outputs=[out(9 * FEE)])
    assert refused(signed(good, KEYS[:1]), world) is None
    assert refused(signed(import_(spend(utxo), source=PLATFORM_CHAIN), KEYS[:1]), world) == "not found"
    assert refused(signed(import_(spend(utxo), source=RULES.chain_id), KEYS[:1]), world) == "same chainID"
    assert (refused(signed(good, KEYS[1:2]), world) or "").startswith("wrong signature: ")
    assert refused(signed(good, KEYS[:1], fxs=[NftCredential]), world) == "incompatible feature extension"
    wrong_amount = import_(spend(utxo, amount=5 * FEE))
    text = f"utxo amount and input amount are not equal: {10 * FEE} != {5 * FEE}"
    assert refused(signed(wrong_amount, KEYS[:1]), world) == text
    locked = import_(spend(world.export(C_CHAIN, TransferOutput(10 * FEE, LATER))))
    assert refused(signed(locked, KEYS[:1]), world) == "output is time locked"


def test_all_imports_must_be_there_before_any_is_looked_at(world: World) -> None:
    first, second = sorted([world.export(C_CHAIN), world.export(C_CHAIN)], key=lambda utxo: utxo.txid)
    del world.atomic[C_CHAIN, input_id(second.txid, 0)]
    tx = signed(import_(spend(first), spend(second)), KEYS[1:2], KEYS[1:2])
    assert refused(tx, world) == "not found"


@pytest.mark.parametrize("way", ["import", "export"])
def test_only_chains_of_the_primary_network_are_peers(world: World, way: str) -> None:
    subnet, chain, unknown, other_tx = (fresh_id() for _ in range(4))
    world.subnets[chain] = subnet
    world.platform_txids.add(other_tx)
    named = id_text(unknown)
    texts = {
        RULES.chain_id: "same chainID",
        chain: f'mismatched subnetIDs; expected "{id_text(PLATFORM_CHAIN)}" got "{id_text(subnet)}"',
        unknown: f'failed to get subnet of "{named}": problem retrieving blockchain "{named}": not found',
        other_tx: f'failed to get subnet of "{id_text(other_tx)}": "{id_text(other_tx)}" is not a blockchain',
    }
    for peer, text in texts.items():
        if way == "import":
            tx = signed(import_(spend(world.export(peer)), source=peer), KEYS[:1])
        else:
            tx = signed(export(out(), destination=peer, inputs=[spend(world.fund())]))
        assert refused(tx, world) == text


def test_base_inputs_come_before_the_peer(world: World) -> None:
    unsigned = export(out(), destination=RULES.chain_id, inputs=[spend(world.fund())])
    assert (refused(signed(unsigned, KEYS[1:2]), world) or "").startswith(f"{TRANSFER}wrong signature")


def test_exports_of_any_asset(world: World) -> None:
    custom = world.fund(TransferOutput(5, ALICE), world.asset(0))
    inputs = sorted([spend(world.fund()), spend(custom)], key=lambda row: row.txid)
    tx = signed(export(out(5, asset_id=custom.asset_id), destination=PLATFORM_CHAIN, inputs=inputs))
    assert refused(tx, world) is None
