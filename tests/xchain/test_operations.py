"""Operations: every text, on each of the five kinds."""

from typing import Any

import msgspec
import pytest
from tests.xchain.craft import (
    ALICE,
    AVAX,
    BOB,
    KEYS,
    LATER,
    NOW_S,
    World,
    fresh_id,
    on,
    operate,
    refusal_of,
    signed,
    spend,
)
from tests.xchain.memory_state import RULES

from icefall.wire.avm.types import (
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
    TransferOutput,
    UtxoId,
)
from icefall.xchain.mempool import verify_tx
from icefall.xchain.semantics import _OPERATIONS_UNCHECKED, verify_semantics
from icefall.xchain.syntax import verify_syntax


@pytest.fixture
def world() -> World:
    return World()


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
    tx = signed(unsigned, KEYS[:1], keys, fxs=[Credential, fx])
    return refusal_of(verify_tx, tx, RULES, world, NOW_S)


@pytest.mark.parametrize(("output", "operation", "fx"), KINDS)
def test_operations(world: World, output: Any, operation: Any, fx: type) -> None:
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
def test_operations_consume_exactly_one(world: World, output: Any, operation: Any, fx: type) -> None:
    asset = world.asset(0, 1, 2)
    text = f"wrong number of {'utxos' if fx is Credential else 'UTXOs'} for the operation"
    assert operated(world, Operation(asset, (), operation), KEYS[0], fx=fx) == text
    two = sorted([world.fund(output, asset), world.fund(output, asset)], key=lambda utxo: utxo.txid)
    both = tuple(UtxoId(utxo.txid, 0) for utxo in two)
    assert operated(world, Operation(asset, both, operation), KEYS[0], fx=fx) == text


@pytest.mark.parametrize(("output", "operation", "fx"), KINDS)
def test_operations_need_an_asset_with_their_fx(world: World, output: Any, operation: Any, fx: type) -> None:
    index = operation.type_id // 5 - 1
    lacking = world.asset(*({0, 1, 2} - {index}))
    held = world.fund(output, lacking)
    assert operated(world, on(held, operation), KEYS[0], fx=fx) == "incompatible feature extension"
    assert operated(world, Operation(world.some_tx(), (), operation), KEYS[0], fx=fx) == "not an asset"
    assert operated(world, Operation(fresh_id(), (), operation), KEYS[0], fx=fx) == "not found"


@pytest.mark.parametrize(("output", "operation", "fx"), KINDS)
def test_operations_wait_for_locks(world: World, output: Any, operation: Any, fx: type) -> None:
    locked = type(output)(*[LATER if field == ALICE else field for field in _fields(output)])
    adapted = type(operation)(*[_relocked(field) for field in _fields(operation)])
    utxo = world.fund(locked, world.asset(0, 1, 2))
    assert operated(world, on(utxo, adapted), KEYS[0], fx=fx) == "output is time locked"


def _fields(part: Any) -> list[Any]:
    return [getattr(part, name) for name in part.__struct_fields__]


def _relocked(field: Any) -> Any:
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
def test_operations_keep_what_they_must(world: World, output: Any, operation: Any, fx: type, text: str) -> None:
    utxo = world.fund(output, world.asset(0, 1, 2))
    assert operated(world, on(utxo, operation), KEYS[3], fx=fx) == text  # before the signature


def test_the_first_fx_counts_after_the_credential_and_the_others_before(world: World) -> None:
    asset = world.asset(0, 1, 2)
    assert operated(world, Operation(asset, (), MINT), KEYS[0], fx=NftCredential) == "wrong credential type"
    text = "wrong number of UTXOs for the operation"
    assert operated(world, Operation(asset, (), BURN), KEYS[0], fx=Credential) == text


def test_one_old_transaction_is_let_through(world: World) -> None:
    """Its operations are not looked at; its inputs are."""
    (txid,) = _OPERATIONS_UNCHECKED
    tx = signed(operate(Operation(AVAX, (), BURN), inputs=[spend(world.fund())]), KEYS[:1], ())
    verify_syntax(tx, RULES)
    assert refusal_of(verify_semantics, tx, RULES, world, NOW_S) == "incompatible feature extension"
    assert refusal_of(verify_semantics, msgspec.structs.replace(tx, txid=txid), RULES, world, NOW_S) is None
