"""Messages that validators sign for the P-Chain, with real signatures."""

from collections.abc import Collection

from tests.bls import signed_together

from icefall.wire.packer import VERSION_BYTES, pack_blob, u32
from icefall.wire.pvm.warp import AddressedCall, WarpMessage, pack_addressed_call, pack_message

Manager = tuple[bytes, bytes]  # a chain, and the address of a contract there


def signed_message(network_id: int, manager: Manager, content: bytes, secrets: Collection[int]) -> bytes:
    """What the manager of an L1 says, signed by the first validators of its chain: those that have the secrets."""
    chain_id, address = manager
    payload = pack_addressed_call(AddressedCall(address, content))
    unsigned = VERSION_BYTES + u32(network_id) + chain_id + pack_blob(payload)
    bits = (1 << len(secrets)) - 1
    signers = bits.to_bytes(-(-len(secrets) // 8), "big")
    return pack_message(WarpMessage(network_id, chain_id, payload, signers, signed_together(secrets, unsigned)))
