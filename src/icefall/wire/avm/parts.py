"""Bytes of what transactions are made of: the values of the three Fxs, and the outputs, inputs, operations around them.

`PARTS` is the codec's type table. A slot (an output, an input, ...) admits some of its rows; any other type ID is
refused with the error text of the node.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
    TransferableInput,
    TransferableOutput,
    TransferInput,
    TransferOutput,
    UtxoId,
)
from icefall.wire.errors import WireError
from icefall.wire.keys import SIGNATURE_SIZE
from icefall.wire.packer import Layout, Unpacker, checked_count, pack_arrays, pack_blob, pack_u32s, u32

_OWNERS = Layout("uint64", "uint32", "count")
_AMOUNT_OWNERS = Layout("uint64", "uint64", "uint32", "count")
_AMOUNT_INDICES = Layout("uint64", "count")
_GROUP_OWNERS = Layout("uint32", "uint64", "uint32", "count")
_GROUP_PAYLOAD = Layout("uint32", "count")
_ASSET_TYPE = Layout(32, "type")
_INPUT_TYPE = Layout(32, "uint32", 32, "type")
_UTXO_ID = Layout(32, "uint32")
_ASSET_COUNT = Layout(32, "count")


def unpack_owners(reader: Unpacker) -> Owners:
    locktime, threshold, count = reader.take(_OWNERS)
    return Owners(locktime, threshold, reader.arrays(checked_count(count), 20))


def pack_owners(owners: Owners) -> bytes:
    head = _OWNERS.pack(owners.locktime, owners.threshold, len(owners.addresses))
    return head + b"".join(owners.addresses)


def _unpack_transfer_input(reader: Unpacker) -> TransferInput:
    amount, count = reader.take(_AMOUNT_INDICES)
    return TransferInput(amount, reader.u32s(checked_count(count)))


def _pack_transfer_input(value: TransferInput) -> bytes:
    head = _AMOUNT_INDICES.pack(value.amount, len(value.signature_indices))
    return head + b"".join(map(u32, value.signature_indices))


def _unpack_transfer_output(reader: Unpacker) -> TransferOutput:
    amount, locktime, threshold, count = reader.take(_AMOUNT_OWNERS)
    return TransferOutput(amount, Owners(locktime, threshold, reader.arrays(checked_count(count), 20)))


def _pack_transfer_output(value: TransferOutput) -> bytes:
    owners = value.owners
    head = _AMOUNT_OWNERS.pack(value.amount, owners.locktime, owners.threshold, len(owners.addresses))
    return head + b"".join(owners.addresses)


def _unpack_nft_mint_output(reader: Unpacker) -> NftMintOutput:
    group_id, locktime, threshold, count = reader.take(_GROUP_OWNERS)
    return NftMintOutput(group_id, Owners(locktime, threshold, reader.arrays(checked_count(count), 20)))


def _unpack_nft_transfer_output(reader: Unpacker) -> NftTransferOutput:
    group_id, count = reader.take(_GROUP_PAYLOAD)
    payload = reader.fixed(checked_count(count))
    return NftTransferOutput(group_id, payload, unpack_owners(reader))


def _pack_nft_transfer_output(value: NftTransferOutput) -> bytes:
    return u32(value.group_id) + pack_blob(value.payload) + pack_owners(value.owners)


def _indices(reader: Unpacker) -> tuple[int, ...]:
    return reader.u32s(reader.count())


def _unpack_mint_operation(reader: Unpacker) -> MintOperation:
    return MintOperation(_indices(reader), MintOutput(unpack_owners(reader)), _unpack_transfer_output(reader))


def _pack_mint_operation(value: MintOperation) -> bytes:
    outputs = pack_owners(value.mint_output.owners) + _pack_transfer_output(value.transfer_output)
    return pack_u32s(value.signature_indices) + outputs


def _unpack_nft_mint_operation(reader: Unpacker) -> NftMintOperation:
    indices = _indices(reader)
    group_id, count = reader.take(_GROUP_PAYLOAD)
    payload = reader.fixed(checked_count(count))
    return NftMintOperation(indices, group_id, payload, tuple([unpack_owners(reader) for _ in range(reader.count())]))


def _pack_nft_mint_operation(value: NftMintOperation) -> bytes:
    owners = pack_arrays(tuple(map(pack_owners, value.outputs)))
    return pack_u32s(value.signature_indices) + u32(value.group_id) + pack_blob(value.payload) + owners


def _unpack_property_mint_operation(reader: Unpacker) -> PropertyMintOperation:
    return PropertyMintOperation(
        _indices(reader), PropertyMintOutput(unpack_owners(reader)), PropertyOwnedOutput(unpack_owners(reader))
    )


def _pack_property_mint_operation(value: PropertyMintOperation) -> bytes:
    outputs = pack_owners(value.mint_output.owners) + pack_owners(value.owned_output.owners)
    return pack_u32s(value.signature_indices) + outputs


def _signatures(reader: Unpacker) -> tuple[bytes, ...]:
    return reader.arrays(reader.count(), SIGNATURE_SIZE)


def _pack_signatures(value: Any) -> bytes:
    return pack_arrays(value.signatures)


def _pack_owned(value: Any) -> bytes:
    return pack_owners(value.owners)


class Part(NamedTuple):
    """A row of the type table."""

    go_name: str
    unpack: Callable[[Unpacker], Any]
    pack: Callable[[Any], bytes]


PARTS: dict[int, Part] = {
    5: Part("secp256k1fx.TransferInput", _unpack_transfer_input, _pack_transfer_input),
    6: Part("secp256k1fx.MintOutput", lambda r: MintOutput(unpack_owners(r)), _pack_owned),
    7: Part("secp256k1fx.TransferOutput", _unpack_transfer_output, _pack_transfer_output),
    8: Part("secp256k1fx.MintOperation", _unpack_mint_operation, _pack_mint_operation),
    9: Part("secp256k1fx.Credential", lambda r: Credential(_signatures(r)), _pack_signatures),
    10: Part("nftfx.MintOutput", _unpack_nft_mint_output, lambda v: u32(v.group_id) + pack_owners(v.owners)),
    11: Part("nftfx.TransferOutput", _unpack_nft_transfer_output, _pack_nft_transfer_output),
    12: Part("nftfx.MintOperation", _unpack_nft_mint_operation, _pack_nft_mint_operation),
    13: Part(
        "nftfx.TransferOperation",
        lambda r: NftTransferOperation(_indices(r), _unpack_nft_transfer_output(r)),
        lambda v: pack_u32s(v.signature_indices) + _pack_nft_transfer_output(v.output),
    ),
    14: Part("nftfx.Credential", lambda r: NftCredential(_signatures(r)), _pack_signatures),
    15: Part("propertyfx.MintOutput", lambda r: PropertyMintOutput(unpack_owners(r)), _pack_owned),
    16: Part("propertyfx.OwnedOutput", lambda r: PropertyOwnedOutput(unpack_owners(r)), _pack_owned),
    17: Part("propertyfx.MintOperation", _unpack_property_mint_operation, _pack_property_mint_operation),
    18: Part(
        "propertyfx.BurnOperation",
        lambda r: PropertyBurnOperation(_indices(r)),
        lambda v: pack_u32s(v.signature_indices),
    ),
    19: Part("propertyfx.Credential", lambda r: PropertyCredential(_signatures(r)), _pack_signatures),
}

# Registered in the codec too, but never inside another value: needed for error texts only.
_OTHER_NAMES = {
    0: "txs.BaseTx",
    1: "txs.CreateAssetTx",
    2: "txs.OperationTx",
    3: "txs.ImportTx",
    4: "txs.ExportTx",
    20: "block.StandardBlock",
}


class Slot(NamedTuple):
    """A field that holds one of several types: the node's name of the interface and an unpack function per type ID."""

    interface: str
    unpack: dict[int, Callable[[Unpacker], Any]]


def _slot(interface: str, type_ids: Sequence[int]) -> Slot:
    return Slot(interface, {type_id: PARTS[type_id].unpack for type_id in type_ids})


OUTPUT = _slot("avax.TransferableOut", (7,))
INPUT = _slot("avax.TransferableIn", (5,))
OPERATION = _slot("fxs.FxOperation", (8, 12, 13, 17, 18))
STATE = _slot("verify.State", (6, 7, 10, 11, 15, 16))
CREDENTIAL = _slot("verify.Verifiable", range(5, 20))


def unpack_in(slot: Slot, reader: Unpacker) -> Any:
    """A value behind its type ID."""
    return admitted(slot, reader.type_id())(reader)


def admitted(slot: Slot, type_id: int) -> Callable[[Unpacker], Any]:
    """The reader for a type ID met in a slot."""
    unpack = slot.unpack.get(type_id)
    if unpack is None:
        raise misplaced(type_id, slot.interface)
    return unpack


def misplaced(type_id: int, interface: str) -> WireError:
    """The error for a type ID that is unknown, or known but not allowed in this field."""
    part = PARTS.get(type_id)
    name = part.go_name if part else _OTHER_NAMES.get(type_id)
    if name is None:
        return WireError(f"couldn't unmarshal interface: unknown type ID {type_id}")
    return WireError(f"couldn't unmarshal interface: *{name} does not implement interface {interface}")


def pack_part(value: Any) -> bytes:
    """A value behind its type ID."""
    return u32(value.type_id) + PARTS[value.type_id].pack(value)


def unpack_transferable_output(reader: Unpacker) -> TransferableOutput:
    asset_id, type_id = reader.take(_ASSET_TYPE)
    return TransferableOutput(asset_id, admitted(OUTPUT, type_id)(reader))


def pack_transferable_output(value: TransferableOutput) -> bytes:
    return value.asset_id + pack_part(value.output)


def unpack_transferable_input(reader: Unpacker) -> TransferableInput:
    txid, output_index, asset_id, type_id = reader.take(_INPUT_TYPE)
    return TransferableInput(txid, output_index, asset_id, admitted(INPUT, type_id)(reader))


def pack_transferable_input(value: TransferableInput) -> bytes:
    return value.txid + u32(value.output_index) + value.asset_id + pack_part(value.input)


def unpack_operation(reader: Unpacker) -> Operation:
    asset_id, count = reader.take(_ASSET_COUNT)
    utxo_ids = tuple([UtxoId(*reader.take(_UTXO_ID)) for _ in range(checked_count(count))])
    return Operation(asset_id, utxo_ids, unpack_in(OPERATION, reader))


def pack_operation(value: Operation) -> bytes:
    utxo_ids = tuple(utxo_id.txid + u32(utxo_id.output_index) for utxo_id in value.utxo_ids)
    return value.asset_id + pack_arrays(utxo_ids) + pack_part(value.operation)
