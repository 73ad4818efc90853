"""Balances from raw UTXOs. Only transfer outputs count; without `partial` only those one address can spend now."""

import struct
from collections.abc import Iterable

from icefall.wire.avm.types import TransferOutput

UINT64_MAX = (1 << 64) - 1
_TYPE = slice(70, 74)
_TRANSFER = TransferOutput.type_id.to_bytes(4, "big")
# version, txID, output index, asset ID, type, amount, locktime, threshold, number of addresses
_unpack = struct.Struct(">2x32sI32s4xQQ4xI").unpack_from


def spendable(utxos: Iterable[bytes], now_s: int, *, partial: bool) -> list[tuple[bytes, int, bytes, int]]:
    """(asset ID, amount, txid, output index) of each UTXO that counts."""
    found = []
    for raw in utxos:
        if raw[_TYPE] == _TRANSFER:
            txid, output_index, asset_id, amount, locktime, addresses = _unpack(raw)
            if partial or (addresses == 1 and locktime <= now_s):
                found.append((asset_id, amount, txid, output_index))
    return found
