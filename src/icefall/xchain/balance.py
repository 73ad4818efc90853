"""Balances from raw UTXOs. Only transfer outputs count; without `partial` only those one address can spend now."""

import struct
from collections.abc import Iterable, Iterator

from icefall.wire.avm.types import TransferOutput

UINT64_MAX = (1 << 64) - 1
_HEAD = struct.Struct(">H32sI32sI")  # version, txID, output index, asset ID, type
_TRANSFER = struct.Struct(">QQII")  # amount, locktime, threshold, number of addresses


def spendable(utxos: Iterable[bytes], now_s: int, *, partial: bool) -> Iterator[tuple[bytes, int, bytes, int]]:
    """(asset ID, amount, txid, output index) of each UTXO that counts."""
    for raw in utxos:
        _, txid, output_index, asset_id, type_id = _HEAD.unpack_from(raw)
        if type_id != TransferOutput.type_id:
            continue
        amount, locktime, _, addresses = _TRANSFER.unpack_from(raw, _HEAD.size)
        if partial or (addresses == 1 and locktime <= now_s):
            yield asset_id, amount, txid, output_index
