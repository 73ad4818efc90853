"""Bytes of what P-Chain transactions are made of: outputs, inputs, owners, validators, credentials.

The shapes of the secp256k1 Fx are those of the asset chain, so their bytes are written and read there.
"""

from collections.abc import Callable
from typing import TypeVar

from icefall.wire.avm.parts import PARTS, pack_owners, pack_part, unpack_owners
from icefall.wire.avm.types import Credential, Owners, TransferInput, TransferOutput
from icefall.wire.errors import WireError
from icefall.wire.packer import Layout, Unpacker, checked_count, pack_arrays, pack_blob, pack_u32s, u32, u64
from icefall.wire.pvm.types import (
    BlsSigner,
    Committee,
    ConvertedValidator,
    Input,
    Output,
    PlatformInput,
    PlatformOutput,
    StakeableInput,
    StakeableOutput,
    Validator,
)

_T = TypeVar("_T")

_AUTHORIZATION, _OWNERS, _NO_SIGNER, _PROOF_OF_POSSESSION = 10, 11, 27, 28

_ASSET_TYPE = Layout(32, "type")
_INPUT_TYPE = Layout(32, "uint32", 32, "type")
_TYPE_COUNT = Layout("type", "count")
_LOCKTIME_TYPE = Layout("uint64", "type")
_VALIDATOR = Layout(20, "uint64", "uint64", "uint64")
_KEY_PROOF = Layout(48, 96)
_THRESHOLD_COUNT = Layout("uint32", "count")
_AMOUNTS_KEY_PROOF = Layout("uint64", "uint64", 48, 96)

_unpack_transfer_output = PARTS[TransferOutput.type_id].unpack
_unpack_transfer_input = PARTS[TransferInput.type_id].unpack
_unpack_signatures = PARTS[Credential.type_id].unpack


class UnexpectedType(WireError):
    """A type ID may not stand where it was met."""

    def __init__(self, type_id: int, place: str) -> None:
        super().__init__(f"P-Chain: unknown {place} type {type_id}")
        self.type_id = type_id
        self.place = place


def unexpected(type_id: int, place: str) -> WireError:
    """The error for a type ID that may not stand where it was met."""
    return UnexpectedType(type_id, place)


def unpack_list(source: Unpacker, unpack: Callable[[Unpacker], _T]) -> tuple[_T, ...]:
    """Read a counted list."""
    return tuple([unpack(source) for _ in range(source.count())])


def unpack_output(source: Unpacker, type_id: int) -> Output:
    """Read an output behind its type ID, of which a locked one holds another."""
    if type_id == TransferOutput.type_id:
        plain: TransferOutput = _unpack_transfer_output(source)
        return plain
    if type_id != StakeableOutput.type_id:
        raise unexpected(type_id, "output")
    locktime, inner_type = source.take(_LOCKTIME_TYPE)
    if inner_type != TransferOutput.type_id:
        raise unexpected(inner_type, "locked output")
    return StakeableOutput(locktime, _unpack_transfer_output(source))


def pack_output(output: Output) -> bytes:
    """Write an output behind its type ID."""
    if isinstance(output, StakeableOutput):
        return _TYPE_LOCKTIME.pack(output.type_id, output.locktime) + pack_part(output.output)
    return pack_part(output)


_TYPE_LOCKTIME = Layout("type", "uint64")


def unpack_transferable_output(source: Unpacker) -> PlatformOutput:
    asset_id, type_id = source.take(_ASSET_TYPE)
    return PlatformOutput(asset_id, unpack_output(source, type_id))


def pack_transferable_output(value: PlatformOutput) -> bytes:
    return value.asset_id + pack_output(value.output)


def unpack_transferable_input(source: Unpacker) -> PlatformInput:
    txid, output_index, asset_id, type_id = source.take(_INPUT_TYPE)
    return PlatformInput(txid, output_index, asset_id, _unpack_input(source, type_id))


def _unpack_input(source: Unpacker, type_id: int) -> Input:
    if type_id == TransferInput.type_id:
        plain: TransferInput = _unpack_transfer_input(source)
        return plain
    if type_id != StakeableInput.type_id:
        raise unexpected(type_id, "input")
    locktime, inner_type = source.take(_LOCKTIME_TYPE)
    if inner_type != TransferInput.type_id:
        raise unexpected(inner_type, "locked input")
    return StakeableInput(locktime, _unpack_transfer_input(source))


def pack_transferable_input(value: PlatformInput) -> bytes:
    spent = value.txid + u32(value.output_index) + value.asset_id
    if isinstance(value.input, StakeableInput):
        locked = value.input
        return spent + _TYPE_LOCKTIME.pack(locked.type_id, locked.locktime) + pack_part(locked.input)
    return spent + pack_part(value.input)


def unpack_outputs(source: Unpacker) -> tuple[PlatformOutput, ...]:
    return unpack_list(source, unpack_transferable_output)


def pack_outputs(outputs: tuple[PlatformOutput, ...]) -> bytes:
    return pack_arrays(tuple(map(pack_transferable_output, outputs)))


def unpack_inputs(source: Unpacker) -> tuple[PlatformInput, ...]:
    return unpack_list(source, unpack_transferable_input)


def pack_inputs(inputs: tuple[PlatformInput, ...]) -> bytes:
    return pack_arrays(tuple(map(pack_transferable_input, inputs)))


def unpack_owner(source: Unpacker) -> Owners:
    """Read owners behind the one type ID they can have."""
    type_id = source.type_id()
    if type_id != _OWNERS:
        raise unexpected(type_id, "owner")
    return unpack_owners(source)


def pack_owner(owners: Owners) -> bytes:
    return u32(_OWNERS) + pack_owners(owners)


def unpack_authorization(source: Unpacker) -> tuple[int, ...]:
    """Read which signatures of a subnet's owner authorise a transaction."""
    type_id, count = source.take(_TYPE_COUNT)
    if type_id != _AUTHORIZATION:
        raise unexpected(type_id, "authorization")
    return source.u32s(checked_count(count))


def pack_authorization(indices: tuple[int, ...]) -> bytes:
    return u32(_AUTHORIZATION) + pack_u32s(indices)


def unpack_validator(source: Unpacker) -> Validator:
    return Validator(*source.take(_VALIDATOR))


def pack_validator(value: Validator) -> bytes:
    return _VALIDATOR.pack(value.node_id, value.start, value.end, value.weight)


def unpack_signer(source: Unpacker) -> BlsSigner | None:
    type_id = source.type_id()
    if type_id == _NO_SIGNER:
        return None
    if type_id != _PROOF_OF_POSSESSION:
        raise unexpected(type_id, "signer")
    return BlsSigner(*source.take(_KEY_PROOF))


def pack_signer(signer: BlsSigner | None) -> bytes:
    if signer is None:
        return u32(_NO_SIGNER)
    return u32(_PROOF_OF_POSSESSION) + _KEY_PROOF.pack(signer.public_key, signer.proof_of_possession)


def unpack_credential(source: Unpacker) -> Credential:
    type_id = source.type_id()
    if type_id != Credential.type_id:
        raise unexpected(type_id, "credential")
    credential: Credential = _unpack_signatures(source)
    return credential


def unpack_committee(source: Unpacker) -> Committee:
    threshold, count = source.take(_THRESHOLD_COUNT)
    return Committee(threshold, source.arrays(checked_count(count), 20))


def pack_committee(committee: Committee) -> bytes:
    return u32(committee.threshold) + pack_arrays(committee.addresses)


def unpack_converted_validator(source: Unpacker) -> ConvertedValidator:
    node_id = source.blob()
    weight, balance, public_key, proof = source.take(_AMOUNTS_KEY_PROOF)
    signer = BlsSigner(public_key, proof)
    return ConvertedValidator(node_id, weight, balance, signer, unpack_committee(source), unpack_committee(source))


def pack_converted_validator(value: ConvertedValidator) -> bytes:
    return b"".join(
        (
            pack_blob(value.node_id),
            u64(value.weight) + u64(value.balance),
            value.signer.public_key + value.signer.proof_of_possession,
            pack_committee(value.remaining_balance_owner),
            pack_committee(value.deactivation_owner),
        )
    )
