"""What a file is by its content: a PNG, JPEG, GIF or WebP picture of a size that a browser can show. Pure.

SVG is refused: opened by its own address it runs scripts, and to make it harmless takes a parser of all it may contain.
"""

import struct
from collections.abc import Callable

SIDE_MAX = 8192  # pixels
PIXELS_MAX = 32 << 20
_JPEG_WITHOUT_SIZE = frozenset((0xC4, 0xC8, 0xCC))  # among the markers 0xC0 to 0xCF, those that begin no frame


class NotAPicture(Exception):
    """The content is not a picture that is shown."""


def picture_type(body: bytes) -> str:
    """Return the media type of a picture; NotAPicture for anything else."""
    for media, is_of, size_of in _KINDS:
        if is_of(body):
            try:
                width, height = size_of(body)
            except (struct.error, IndexError):
                raise NotAPicture(f"{media} that ends before its size") from None
            if not (0 < width <= SIDE_MAX and 0 < height <= SIDE_MAX and width * height <= PIXELS_MAX):
                raise NotAPicture(f"{media} of {width} by {height} pixels")
            return media
    raise NotAPicture("neither PNG, JPEG, GIF nor WebP")


def _png_size(body: bytes) -> tuple[int, int]:
    if body[12:16] != b"IHDR":
        raise NotAPicture("PNG without a header")
    return struct.unpack_from(">II", body, 16)


def _gif_size(body: bytes) -> tuple[int, int]:
    return struct.unpack_from("<HH", body, 6)


def _webp_size(body: bytes) -> tuple[int, int]:
    kind = body[12:16]
    if kind == b"VP8X":
        width, width_high, height, height_high = struct.unpack_from("<HBHB", body, 24)
        return 1 + width + (width_high << 16), 1 + height + (height_high << 16)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", body, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", body, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise NotAPicture("WebP of an unknown kind")


def _jpeg_size(body: bytes) -> tuple[int, int]:
    """The size is in the segment that begins the frame; each segment before it says how long it is."""
    at = 2
    while True:
        if body[at] != 0xFF:
            raise NotAPicture("JPEG with a damaged segment")
        marker = body[at + 1]
        if marker == 0xFF:  # fills up
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in _JPEG_WITHOUT_SIZE:
            height, width = struct.unpack_from(">HH", body, at + 5)
            return width, height
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # without a length
            at += 2
        else:
            at += 2 + max(2, struct.unpack_from(">H", body, at + 2)[0])


_KINDS: tuple[tuple[str, Callable[[bytes], bool], Callable[[bytes], tuple[int, int]]], ...] = (
    ("image/png", lambda body: body.startswith(b"\x89PNG\r\n\x1a\n"), _png_size),
    ("image/jpeg", lambda body: body.startswith(b"\xff\xd8\xff"), _jpeg_size),
    ("image/gif", lambda body: body[:6] in (b"GIF87a", b"GIF89a"), _gif_size),
    ("image/webp", lambda body: body[:4] == b"RIFF" and body[8:12] == b"WEBP", _webp_size),
)
