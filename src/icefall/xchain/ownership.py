"""The right to spend: whether signatures give it, and what one address may spend of a set of UTXOs."""

import struct
from collections.abc import Callable, Iterable, Iterator

from icefall.wire import keys
from icefall.wire.avm.types import Owners, TransferOutput
from icefall.wire.errors import WireError
from icefall.wire.ids import short_id_text
from icefall.xchain.model import TxRefused

SIGNERS_MAX = 65_536

Recover = Callable[[bytes, bytes], bytes]  # (signature, digest) -> the 20-byte address that signed


class Signers:
    """A cache of recovered signers, so that no signature is recovered twice: neither in a transaction that one key
    signs many times, nor when a block is built from verified transactions. The oldest entries are dropped."""

    __slots__ = ("_addresses", "_size_max")

    def __init__(self, size_max: int = SIGNERS_MAX) -> None:
        self._addresses: dict[bytes, bytes] = {}
        self._size_max = size_max

    def __call__(self, signature: bytes, digest: bytes) -> bytes:
        """`keys.recover`, cached."""
        known = self._addresses
        signed = signature + digest
        address = known.get(signed)
        if address is None:
            address = keys.recover(signature, digest)
            if len(known) >= self._size_max:
                del known[next(iter(known))]
            known[signed] = address
        return address

    def __len__(self) -> int:
        return len(self._addresses)


def verify_ownership(
    owners: Owners,
    indices: tuple[int, ...],
    signatures: tuple[bytes, ...],
    digest: bytes,
    now_s: int,
    recover: Recover,
) -> None:
    """Each signature must be of the address its index names, and there must be exactly `threshold` of them."""
    if owners.locktime > now_s:
        raise TxRefused("output is time locked", is_final=False)
    if owners.threshold < len(indices):
        raise TxRefused("input has more signers than expected")
    if owners.threshold > len(indices):
        raise TxRefused("input has less signers than expected")
    if len(signatures) != len(indices):
        raise TxRefused("input expected a different number of signers than provided in the credential")
    addresses = owners.addresses
    for index, signature in zip(indices, signatures, strict=True):
        if index >= len(addresses):
            raise TxRefused("input referenced a nonexistent address in the output")
        try:
            signer = recover(signature, digest)
        except WireError as error:
            raise TxRefused(str(error)) from error
        if signer != addresses[index]:
            expected, got = short_id_text(addresses[index]), short_id_text(signer)
            raise TxRefused(f"wrong signature: expected signature from {expected} but got from {got}")


UINT64_MAX = (1 << 64) - 1
_TYPE = slice(70, 74)
_TRANSFER = TransferOutput.type_id.to_bytes(4, "big")
# version, txID, output index, asset ID, type, amount, locktime, threshold, number of addresses
_unpack = struct.Struct(">2x32sI32s4xQQ4xI").unpack_from


def owned_amounts(utxos: Iterable[bytes], *, partial: bool) -> Iterator[tuple[bytes, int, bytes, int, int]]:
    """Yield asset ID, amount, txid, output index and locktime of each UTXO that its owner may spend alone from then on.
    With `partial` other owners and locks do not matter: each of those amounts counts, with no locktime."""
    for raw in utxos:
        if raw[_TYPE] == _TRANSFER:
            txid, output_index, asset_id, amount, locktime, addresses = _unpack(raw)
            if partial:
                yield asset_id, amount, txid, output_index, 0
            elif addresses == 1:
                yield asset_id, amount, txid, output_index, locktime
