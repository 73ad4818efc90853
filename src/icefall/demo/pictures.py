"""Pictures of the demo's NFTs, drawn from their numbers: nothing is fetched for them."""

import hashlib
import re
import struct
import zlib

# What the metadata of the recorded contracts, and the token list, name.
_URI = re.compile(r"https://img\.example/([0-9]{1,9})\.png|ipfs://QmImg/([0-9]{1,9})")
CELLS, SCALE = 12, 16  # squares on a side, and pixels of each
_SIDE = CELLS * SCALE
_COLOURS = bytes.fromhex("f4efe61f3a5f2f80c2e2725bf2b84b5a9e6f8a5fa8c9d6df")


def demo_picture(uri: str) -> bytes | None:
    """Return the picture at an address that the demo's contracts name; None for all others."""
    found = _URI.fullmatch(uri)
    return None if found is None else _drawn(int(found[1] or found[2]))


def _drawn(number: int) -> bytes:
    """Draw a pattern whose right half mirrors the left one, as PNG with a palette.

    It has a margin of one square, and two colours besides that of the ground.
    """
    seed = hashlib.sha256(b"demo picture %d" % number).digest() * 3
    paints = (0, 1 + seed[0] % 7, 1 + seed[1] % 7)
    lines = []
    for row in range(CELLS):
        half = [paints[(seed[2 + row * (CELLS // 2) + at] >> 2) % 3] for at in range(CELLS // 2)]
        if row in (0, CELLS - 1):
            half = [0] * len(half)
        half[0] = 0
        line = b"\0" + b"".join(bytes([paint]) * SCALE for paint in [*half, *half[::-1]])
        lines.append(line * SCALE)
    head = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", _COLOURS), (b"IDAT", zlib.compress(b"".join(lines), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
