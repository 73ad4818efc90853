"""What a run of blocks changed in the last activity of addresses, as table `activity` holds it: the way back."""

import zlib
from typing import Any

import msgspec

_COMPRESSED_FROM = 200  # bytes: less does not get shorter
_COMPRESSED = b"\x78"  # how zlib begins; MessagePack's lists do not
_fresh = msgspec.msgpack.Decoder(list[int])
_earlier = msgspec.msgpack.Decoder(list[tuple[int, int, int]])


def pack_changes(changes: list[Any]) -> bytes:
    """Of `fresh`, the addresses never seen before, or `earlier`, (address, active, sent) as they were."""
    packed = msgspec.msgpack.encode(changes)
    return zlib.compress(packed, 1) if len(packed) >= _COMPRESSED_FROM else packed


def unpack_fresh(packed: bytes) -> list[int]:
    return _fresh.decode(_plain(packed))


def unpack_earlier(packed: bytes) -> list[tuple[int, int, int]]:
    return _earlier.decode(_plain(packed))


def _plain(packed: bytes) -> bytes:
    """Short lists are not compressed."""
    return zlib.decompress(packed) if packed.startswith(_COMPRESSED) else packed
