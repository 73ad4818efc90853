"""Bytes of the P-Chain's transactions without their credentials: a row per type says what follows the type ID."""

from collections.abc import Callable
from typing import Any, NamedTuple

from icefall.wire.packer import Layout, Unpacker, checked_count, pack_arrays, pack_blob, pack_string, u32, u64
from icefall.wire.pvm import types as t
from icefall.wire.pvm.parts import (
    pack_authorization,
    pack_converted_validator,
    pack_inputs,
    pack_outputs,
    pack_owner,
    pack_signer,
    pack_validator,
    unexpected,
    unpack_authorization,
    unpack_converted_validator,
    unpack_inputs,
    unpack_list,
    unpack_outputs,
    unpack_owner,
    unpack_signer,
    unpack_transferable_output,
    unpack_validator,
)

_BASE_HEAD = Layout("uint32", 32, "count")


class Field(NamedTuple):
    """How one value of a transaction is read and written."""

    unpack: Callable[[Unpacker], Any]
    pack: Callable[[Any], bytes]


def _unpack_arrays(source: Unpacker) -> tuple[bytes, ...]:
    return source.arrays(source.count(), 32)


def _bytes(size: int) -> Field:
    return Field(lambda source: source.fixed(size), bytes)


_ID = _bytes(32)
_NODE_ID = _bytes(20)
_PROOF = _bytes(96)
_U8 = Field(Unpacker.u8, lambda value: bytes([value]))
_U32 = Field(Unpacker.u32, u32)
_U64 = Field(Unpacker.u64, u64)
_BLOB = Field(Unpacker.blob, pack_blob)
_STRING = Field(Unpacker.string, pack_string)
_IDS = Field(_unpack_arrays, pack_arrays)
_OUTPUTS = Field(unpack_outputs, pack_outputs)
_INPUTS = Field(unpack_inputs, pack_inputs)
_OWNER = Field(unpack_owner, pack_owner)
_AUTHORIZATION = Field(unpack_authorization, pack_authorization)
_VALIDATOR = Field(unpack_validator, pack_validator)
_SIGNER = Field(unpack_signer, pack_signer)
_CONVERTED = Field(
    lambda source: unpack_list(source, unpack_converted_validator),
    lambda validators: pack_arrays(tuple(map(pack_converted_validator, validators))),
)

# type of transaction -> its fields behind the base, in the order of the struct
_WITH_BASE: dict[type[t.PlatformBaseTx], tuple[Field, ...]] = {
    t.PlatformBaseTx: (),
    t.AddValidatorTx: (_VALIDATOR, _OUTPUTS, _OWNER, _U32),
    t.AddSubnetValidatorTx: (_VALIDATOR, _ID, _AUTHORIZATION),
    t.AddDelegatorTx: (_VALIDATOR, _OUTPUTS, _OWNER),
    t.CreateChainTx: (_ID, _STRING, _ID, _IDS, _BLOB, _AUTHORIZATION),
    t.CreateSubnetTx: (_OWNER,),
    t.PlatformImportTx: (_ID, _INPUTS),
    t.PlatformExportTx: (_ID, _OUTPUTS),
    t.RemoveSubnetValidatorTx: (_NODE_ID, _ID, _AUTHORIZATION),
    t.TransformSubnetTx: (_ID, _ID, *[_U64] * 6, *[_U32] * 3, _U64, _U8, _U32, _AUTHORIZATION),
    t.AddPermissionlessValidatorTx: (_VALIDATOR, _ID, _SIGNER, _OUTPUTS, _OWNER, _OWNER, _U32),
    t.AddPermissionlessDelegatorTx: (_VALIDATOR, _ID, _OUTPUTS, _OWNER),
    t.TransferSubnetOwnershipTx: (_ID, _AUTHORIZATION, _OWNER),
    t.ConvertSubnetToL1Tx: (_ID, _ID, _BLOB, _CONVERTED, _AUTHORIZATION),
    t.RegisterL1ValidatorTx: (_U64, _PROOF, _BLOB),
    t.SetL1ValidatorWeightTx: (_BLOB,),
    t.IncreaseL1ValidatorBalanceTx: (_ID, _U64),
    t.DisableL1ValidatorTx: (_ID, _AUTHORIZATION),
}
_WITHOUT_BASE: dict[type[t.AdvanceTimeTx | t.RewardValidatorTx], Field] = {
    t.AdvanceTimeTx: _U64,
    t.RewardValidatorTx: _ID,
}

_BASE_FIELDS = t.PlatformBaseTx.__struct_fields__
_with_base = {
    tx_type.type_id: (tx_type, tuple([field.unpack for field in fields])) for tx_type, fields in _WITH_BASE.items()
}
_without_base = {tx_type.type_id: (tx_type, field.unpack) for tx_type, field in _WITHOUT_BASE.items()}
TX_NAMES = {
    tx_type.type_id: "txs." + tx_type.__name__.removeprefix("Platform") for tx_type in (*_WITH_BASE, *_WITHOUT_BASE)
}


def unpack_unsigned(source: Unpacker) -> t.UnsignedTx:
    """Read a transaction from its type ID to where its credentials begin."""
    type_id = source.type_id()
    row = _with_base.get(type_id)
    if row is not None:
        tx_type, unpacks = row
        network_id, blockchain_id, count = source.take(_BASE_HEAD)
        outputs = tuple([unpack_transferable_output(source) for _ in range(checked_count(count))])
        base = (network_id, blockchain_id, outputs, unpack_inputs(source), source.blob())
        return tx_type(*base, *[unpack(source) for unpack in unpacks])
    bare = _without_base.get(type_id)
    if bare is None:
        raise unexpected(type_id, "transaction")
    return bare[0](bare[1](source))


def pack_unsigned(tx: t.UnsignedTx) -> bytes:
    """Write a transaction from its type ID to where its credentials begin."""
    if isinstance(tx, t.AdvanceTimeTx):
        return u32(tx.type_id) + u64(tx.time)
    if isinstance(tx, t.RewardValidatorTx):
        return u32(tx.type_id) + tx.staking_txid
    names = tx.__struct_fields__[len(_BASE_FIELDS) :]
    special = zip(_WITH_BASE[type(tx)], names, strict=True)
    return b"".join(
        (
            u32(tx.type_id) + u32(tx.network_id) + tx.blockchain_id,
            pack_outputs(tx.outputs) + pack_inputs(tx.inputs) + pack_blob(tx.memo),
            *[field.pack(getattr(tx, name)) for field, name in special],
        )
    )
