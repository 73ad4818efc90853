"""How the calls of a transaction are stored: MessagePack, compressed. Most of it is zeros and repeated addresses."""

import zlib

import msgspec

from icefall.wire.evm.types import Calls, TreeCall

_LEVEL = 6
_WIDE = 1 << 63


class _StoredCall(msgspec.Struct, array_like=True, gc=False):
    """A TreeCall; numbers of more than 63 bits are bytes."""

    depth: int
    opcode: str
    sender: bytes
    to: bytes
    value: int | bytes
    gas: int
    gas_used: int
    input: bytes
    output: bytes
    error: str
    is_reverted: bool


_decoder = msgspec.msgpack.Decoder(tuple[_StoredCall, ...])


def pack_calls(calls: Calls) -> bytes:
    stored = [msgspec.structs.astuple(call) for call in calls]
    narrow = [(*row[:4], row[4] if row[4] < _WIDE else row[4].to_bytes(32, "big"), *row[5:]) for row in stored]
    return zlib.compress(msgspec.msgpack.encode(narrow), _LEVEL)


def unpack_calls(packed: bytes) -> Calls:
    rows = _decoder.decode(zlib.decompress(packed))
    return tuple(
        TreeCall(
            row.depth,
            row.opcode,
            row.sender,
            row.to,
            int.from_bytes(row.value, "big") if isinstance(row.value, bytes) else row.value,
            row.gas,
            row.gas_used,
            row.input,
            row.output,
            row.error,
            row.is_reverted,
        )
        for row in rows
    )
