"""Every text of semantic verification, and what ownership looks at first."""

import pytest
from craft import (
    ADDRESSES,
    ALICE,
    AVAX,
    BOB,
    BOTH,
    C_CHAIN,
    FEE,
    KEYS,
    LATER,
    NOBODY,
    NOW_S,
    World,
    base,
    export,
    fresh_id,
    import_,
    on,
    operate,
    out,
    refusal_of,
    signed,
    spend,
    unsigned_with,
)
from memory_state import RULES

from icefall.wire.avm_types import (
    Credential,
    MintOperation,
    MintOutput,
    NftCredential,
    NftMintOperation,
    NftMintOutput,
    NftTransferOperation,
    NftTransferOutput,
    Operation,
    Owners,
    PropertyBurnOperation,
    PropertyCredential,
    PropertyMintOperation,
    PropertyMintOutput,
    PropertyOwnedOutput,
    TransferInput,
    TransferOutput,
    Tx,
    UtxoId,
    Verifiable,
)
from icefall.wire.ids import PLATFORM_CHAIN, hash256, id_text, input_id, short_id_text
from icefall.wire.keys import CURVE_ORDER, sign
from icefall.xchain.issue import verify_tx
from icefall.xchain.semantics import verify_semantics
from icefall.xchain.syntax import verify_syntax

TRANSFER = "failed to verify transfer: "


@pytest.fixture
def world() -> World:
    return World()


def refused(tx: Tx, world: World, now_s: int = NOW_S) -> str | None:
    return refusal_of(verify_tx, tx, RULES, world, now_s)


def pays(world: World, owners: Owners = ALICE) -> Tx:
    """A plain transaction, unsigned."""
    return unsigned_with(base([out(owners=BOB)], [spend(world.fund(TransferOutput(10 * FEE, owners)))]))


# -- inputs ------------------------------------------------------------------------------------------------------------


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


# -- ownership ---------------------------------------------------------------------------------------------------------


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
        (NOBODY, (0,), 1, "input has more signers than expected"),
        (BOTH, (0, 1), 1, "input expected a different number of signers than provided in the credential"),
        (ALICE, (0,), 2, "input expected a different number of signers than provided in the credential"),
        (NOBODY, (), 1, "input expected a different number of signers than provided in the credential"),
        (BOTH, (0, 2), 2, "input referenced a nonexistent address in the output"),
        (ALICE, (2**32 - 1,), 1, "input referenced a nonexistent address in the output"),
        (BOTH, (0, 1), 2, None),
        (NOBODY, (), 0, None),
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


# -- outputs, imports, exports -------------------------------------------------------------------------------------------


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
    texts = {
        RULES.chain_id: "same chainID",
        chain: f'mismatched subnetIDs; expected "{id_text(PLATFORM_CHAIN)}" got "{id_text(subnet)}"',
        unknown: f'failed to get subnet of "{id_text(unknown)}": problem retrieving blockchain "{id_text(unknown)}": not found',
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


# -- operations ----------------------------------------------------------------------------------------------------------

NFT = NftTransferOutput(1, b"payload", ALICE)
MINT = MintOperation((0,), MintOutput(ALICE), TransferOutput(5, BOB))
NFT_MINT = NftMintOperation((0,), 1, b"payload", (BOB,))
NFT_MOVE = NftTransferOperation((0,), NftTransferOutput(1, b"payload", BOB))
PROPERTY_MINT = PropertyMintOperation((0,), PropertyMintOutput(ALICE), PropertyOwnedOutput(BOB))
BURN = PropertyBurnOperation((0,))
KINDS = [
    (MintOutput(ALICE), MINT, Credential),
    (NftMintOutput(1, ALICE), NFT_MINT, NftCredential),
    (NFT, NFT_MOVE, NftCredential),
    (PropertyMintOutput(ALICE), PROPERTY_MINT, PropertyCredential),
    (PropertyOwnedOutput(ALICE), BURN, PropertyCredential),
]


def operated(world: World, operation: Operation, *keys: bytes, fx: type) -> str | None:
    unsigned = operate(operation, inputs=[spend(world.fund())])
    return refused(signed(unsigned, KEYS[:1], keys, fxs=[Credential, fx]), world)


@pytest.mark.parametrize(("output", "operation", "fx"), KINDS)
def test_operations(world: World, output: MintOutput, operation: MintOperation, fx: type) -> None:
    asset = world.asset(0, 1, 2)
    utxo = world.fund(output, asset)
    done = on(utxo, operation)
    assert operated(world, done, KEYS[0], fx=fx) is None
    assert (operated(world, done, KEYS[1], fx=fx) or "").startswith("wrong signature: ")
    count = "input expected a different number of signers than provided in the credential"
    assert operated(world, done, fx=fx) == count
    wrong = NftCredential if fx is not NftCredential else Credential
    assert operated(world, done, KEYS[0], fx=wrong) == "wrong credential type"
    other = world.fund(PropertyOwnedOutput(ALICE) if operation is not BURN else MintOutput(ALICE), asset)
    assert operated(world, on(other, operation), KEYS[0], fx=fx) == "wrong utxo type"
    elsewhere = Operation(world.asset(0, 1, 2), done.utxo_ids, operation)
    assert operated(world, elsewhere, KEYS[0], fx=fx) == "asset IDs in the input don't match the utxo"
    missing = Operation(asset, (UtxoId(fresh_id(), 0),), operation)
    assert operated(world, missing, KEYS[0], fx=fx) == "not found"


@pytest.mark.parametrize(("output", "operation", "fx"), KINDS)
def test_operations_consume_exactly_one(world: World, output: MintOutput, operation: MintOperation, fx: type) -> None:
    asset = world.asset(0, 1, 2)
    text = f"wrong number of {'utxos' if fx is Credential else 'UTXOs'} for the operation"
    assert operated(world, Operation(asset, (), operation), KEYS[0], fx=fx) == text
    two = sorted([world.fund(output, asset), world.fund(output, asset)], key=lambda utxo: utxo.txid)
    both = tuple(UtxoId(utxo.txid, 0) for utxo in two)
    assert operated(world, Operation(asset, both, operation), KEYS[0], fx=fx) == text


@pytest.mark.parametrize(("output", "operation", "fx"), KINDS)
def test_operations_need_an_asset_with_their_fx(
    world: World, output: MintOutput, operation: MintOperation, fx: type
) -> None:
    index = operation.type_id // 5 - 1
    lacking = world.asset(*({0, 1, 2} - {index}))
    held = world.fund(output, lacking)
    assert operated(world, on(held, operation), KEYS[0], fx=fx) == "incompatible feature extension"
    assert operated(world, Operation(world.some_tx(), (), operation), KEYS[0], fx=fx) == "not an asset"
    assert operated(world, Operation(fresh_id(), (), operation), KEYS[0], fx=fx) == "not found"


@pytest.mark.parametrize(("output", "operation", "fx"), KINDS)
def test_operations_wait_for_locks(world: World, output: MintOutput, operation: MintOperation, fx: type) -> None:
    locked = type(output)(*[LATER if field == ALICE else field for field in _fields(output)])
    adapted = type(operation)(*[_relocked(field) for field in _fields(operation)])
    utxo = world.fund(locked, world.asset(0, 1, 2))
    assert operated(world, on(utxo, adapted), KEYS[0], fx=fx) == "output is time locked"


def _fields(part: object) -> list[object]:
    return [getattr(part, name) for name in part.__struct_fields__]  # type: ignore[attr-defined]


def _relocked(field: object) -> object:
    """Mint outputs must keep their owners."""
    return type(field)(LATER) if isinstance(field, MintOutput | PropertyMintOutput) else field


@pytest.mark.parametrize(
    ("output", "operation", "fx", "text"),
    [
        (MintOutput(BOB), MINT, Credential, "wrong mint output created from the operation"),
        (MintOutput(Owners(1, 1, ALICE.addresses)), MINT, Credential, "wrong mint output created from the operation"),
        (NftMintOutput(2, ALICE), NFT_MINT, NftCredential, "wrong unique ID provided"),
        (NftTransferOutput(2, b"other", ALICE), NFT_MOVE, NftCredential, "wrong unique ID provided"),
        (NftTransferOutput(1, b"other", ALICE), NFT_MOVE, NftCredential, "wrong bytes provided"),
        (PropertyMintOutput(BOB), PROPERTY_MINT, PropertyCredential, "wrong mint output provided"),
    ],
)
def test_operations_keep_what_they_must(
    world: World, output: MintOutput, operation: MintOperation, fx: type, text: str
) -> None:
    utxo = world.fund(output, world.asset(0, 1, 2))
    assert operated(world, on(utxo, operation), KEYS[3], fx=fx) == text  # before the signature


def test_the_first_fx_counts_after_the_credential_and_the_others_before(world: World) -> None:
    asset = world.asset(0, 1, 2)
    assert operated(world, Operation(asset, (), MINT), KEYS[0], fx=NftCredential) == "wrong credential type"
    text = "wrong number of UTXOs for the operation"
    assert operated(world, Operation(asset, (), BURN), KEYS[0], fx=Credential) == text


def test_one_old_transaction_is_let_through(world: World) -> None:
    """Its operations are not looked at; its inputs are."""
    import msgspec

    from icefall.xchain.semantics import _OPERATIONS_UNCHECKED

    (txid,) = _OPERATIONS_UNCHECKED
    tx = signed(operate(Operation(AVAX, (), BURN), inputs=[spend(world.fund())]), KEYS[:1], ())
    verify_syntax(tx, RULES)
    assert refusal_of(verify_semantics, tx, RULES, world, NOW_S) == "incompatible feature extension"
    assert refusal_of(verify_semantics, msgspec.structs.replace(tx, txid=txid), RULES, world, NOW_S) is None
