"""Messages signed by validators of an L1, as far as the P-Chain acts on them, and the IDs that it derives from them.

A message carries a payload with its sender (an addressed call), which carries what an L1's contract tells the P-Chain.
"""

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.ids import hash256
from icefall.wire.packer import VERSION_BYTES, Layout, pack_arrays, pack_blob, reader, u32, u64
from icefall.wire.pvm.parts import pack_committee, unexpected, unpack_committee
from icefall.wire.pvm.types import Committee, ConvertSubnetToL1Tx

_BIT_SET_SIGNATURE, _ADDRESSED_CALL, _REGISTER_L1_VALIDATOR, _L1_VALIDATOR_WEIGHT = 0, 1, 1, 3

_MESSAGE_HEAD = Layout("uint32", 32)
_KEY_EXPIRY = Layout(48, "uint64")
_WEIGHT = Layout(32, "uint64", "uint64")


class WarpMessage(msgspec.Struct, frozen=True, gc=False):
    """A signed message. Each bit of `signers` (big endian) is a validator in the order of their public keys."""

    network_id: int
    source_chain_id: bytes
    payload: bytes
    signers: bytes
    signature: bytes

    @property
    def signers_count(self) -> int:
        return int.from_bytes(self.signers, "big").bit_count()


class AddressedCall(msgspec.Struct, frozen=True, gc=False):
    source_address: bytes
    payload: bytes


class RegisterL1Validator(msgspec.Struct, frozen=True, gc=False):
    """What a registration says. `validation_id` is the hash of its bytes, under which the validator is known."""

    subnet_id: bytes
    node_id: bytes
    public_key: bytes
    expiry: int
    remaining_balance_owner: Committee
    deactivation_owner: Committee
    weight: int
    validation_id: bytes


class L1ValidatorWeight(msgspec.Struct, frozen=True, gc=False):
    validation_id: bytes
    nonce: int
    weight: int


def unpack_message(raw: bytes) -> WarpMessage:
    """Read a message with its signature."""
    source = reader(raw)
    network_id, source_chain_id = source.take(_MESSAGE_HEAD)
    payload = source.blob()
    type_id = source.type_id()
    if type_id != _BIT_SET_SIGNATURE:
        raise unexpected(type_id, "warp signature")
    message = WarpMessage(network_id, source_chain_id, payload, source.blob(), source.fixed(96))
    source.finish()
    return message


def pack_message(message: WarpMessage) -> bytes:
    head = VERSION_BYTES + _MESSAGE_HEAD.pack(message.network_id, message.source_chain_id)
    signature = u32(_BIT_SET_SIGNATURE) + pack_blob(message.signers) + message.signature
    return head + pack_blob(message.payload) + signature


def unpack_addressed_call(raw: bytes) -> AddressedCall:
    """Read the payload of a message that a contract sent."""
    source = reader(raw)
    type_id = source.type_id()
    if type_id != _ADDRESSED_CALL:
        raise unexpected(type_id, "warp payload")
    call = AddressedCall(source.blob(), source.blob())
    source.finish()
    return call


def pack_addressed_call(call: AddressedCall) -> bytes:
    return VERSION_BYTES + u32(_ADDRESSED_CALL) + pack_blob(call.source_address) + pack_blob(call.payload)


def unpack_l1_payload(raw: bytes) -> RegisterL1Validator | L1ValidatorWeight:
    """Read what a contract tells the P-Chain: a new validator or another weight."""
    source = reader(raw)
    type_id = source.type_id()
    content: RegisterL1Validator | L1ValidatorWeight
    if type_id == _REGISTER_L1_VALIDATOR:
        subnet_id, node_id = source.fixed(32), source.blob()
        public_key, expiry = source.take(_KEY_EXPIRY)
        owners = unpack_committee(source), unpack_committee(source)
        content = RegisterL1Validator(subnet_id, node_id, public_key, expiry, *owners, source.u64(), hash256(raw))
    elif type_id == _L1_VALIDATOR_WEIGHT:
        content = L1ValidatorWeight(*source.take(_WEIGHT))
    else:
        raise unexpected(type_id, "L1 message")
    source.finish()
    return content


def pack_registration(
    subnet_id: bytes,
    node_id: bytes,
    public_key: bytes,
    expiry: int,
    owners: tuple[Committee, Committee],
    weight: int,
) -> bytes:
    """Write a registration; `owners` are those of the remaining balance and of the right to deactivate."""
    return b"".join(
        (
            VERSION_BYTES + u32(_REGISTER_L1_VALIDATOR) + subnet_id + pack_blob(node_id),
            _KEY_EXPIRY.pack(public_key, expiry),
            pack_committee(owners[0]) + pack_committee(owners[1]) + u64(weight),
        )
    )


def pack_weight(change: L1ValidatorWeight) -> bytes:
    return VERSION_BYTES + u32(_L1_VALIDATOR_WEIGHT) + _WEIGHT.pack(change.validation_id, change.nonce, change.weight)


def registration_in(message: bytes) -> RegisterL1Validator:
    """The registration inside the message of a RegisterL1ValidatorTx."""
    content = unpack_l1_payload(unpack_addressed_call(unpack_message(message).payload).payload)
    if not isinstance(content, RegisterL1Validator):
        raise WireError("P-Chain: the message of a registration sets a weight")
    return content


def weight_in(message: bytes) -> L1ValidatorWeight:
    """The weight inside the message of a SetL1ValidatorWeightTx."""
    content = unpack_l1_payload(unpack_addressed_call(unpack_message(message).payload).payload)
    if not isinstance(content, L1ValidatorWeight):
        raise WireError("P-Chain: the message of a change of weight registers a validator")
    return content


def first_validation_id(subnet_id: bytes, position: int) -> bytes:
    """The ID of a validator that came with the conversion of its subnet, by its place in that transaction."""
    return hash256(subnet_id + u32(position))


def conversion_id(tx: ConvertSubnetToL1Tx) -> bytes:
    """The ID of what a conversion sets up, which validators sign for the L1's contract."""
    validators = tuple(
        pack_blob(validator.node_id) + validator.signer.public_key + u64(validator.weight)
        for validator in tx.validators
    )
    managed_by = tx.subnet_id + tx.chain_id + pack_blob(tx.address)
    return hash256(VERSION_BYTES + managed_by + pack_arrays(validators))
