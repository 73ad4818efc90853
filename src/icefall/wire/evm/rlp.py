"""RLP, Ethereum's nested byte strings. An item is bytes or a list of items; numbers carry no leading zeros."""

from collections.abc import Sequence
from typing import TypeAlias

from icefall.wire.errors import WireError

Item: TypeAlias = "bytes | Sequence[Item]"
Decoded: TypeAlias = "bytes | list[Decoded]"

EMPTY_STRING = b"\x80"
_TABLE_SIZE = 2048  # lengths whose headers are kept
_DEPTH_MAX = 64  # nothing in Ethereum nests deeper than five; this only keeps hostile input off the Python stack


def encode(item: Item) -> bytes:
    """The RLP bytes of an item."""
    if isinstance(item, bytes):
        size = len(item)
        if size == 1 and item[0] < 0x80:
            return item
        return (_STRINGS[size] if size < _TABLE_SIZE else _header(0x80, size)) + item
    return encode_list(list(map(encode, item)))


def encode_list(encoded: Sequence[bytes]) -> bytes:
    """A list whose items are RLP already."""
    return joined_list(b"".join(encoded))


def joined_list(body: bytes) -> bytes:
    """A list whose items are RLP already, one after another."""
    size = len(body)
    return (_LISTS[size] if size < _TABLE_SIZE else _header(0xC0, size)) + body


def number(value: int) -> bytes:
    """A number as the byte string RLP wants it in."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def decode(raw: bytes) -> Decoded:
    """The item `raw` encodes, which must end where the item ends."""
    item, end = _decode(raw, 0, len(raw), 0)
    if end != len(raw):
        raise WireError(f"RLP: {len(raw) - end} bytes after the item")
    return item


def slices(raw: bytes) -> list[bytes]:
    """The still encoded items of the list that `raw` is, for hashing a part exactly as it was sent."""
    is_list, start, end = _span(raw, 0, len(raw))
    if not is_list or end != len(raw):
        raise WireError("RLP: expected exactly one list")
    items = []
    while start < end:
        _, _, item_end = _span(raw, start, end)
        items.append(raw[start:item_end])
        start = item_end
    return items


def string(encoded: bytes) -> bytes:
    """The byte string that `encoded` is."""
    is_list, start, end = _span(encoded, 0, len(encoded))
    if is_list or end != len(encoded):
        raise WireError("RLP: expected exactly one byte string")
    return encoded[start:]


def to_number(raw: bytes) -> int:
    """The number in a byte string."""
    if raw[:1] == b"\0":
        raise WireError("RLP: number with leading zeros")
    return int.from_bytes(raw, "big")


def _header(base: int, length: int) -> bytes:
    if length < 56:
        return bytes([base + length])
    digits = number(length)
    return bytes([base + 55 + len(digits)]) + digits


# The headers of most items: computing one costs more than the rest of encoding an item.
_STRINGS = tuple([_header(0x80, size) for size in range(_TABLE_SIZE)])
_LISTS = tuple([_header(0xC0, size) for size in range(_TABLE_SIZE)])


def _decode(raw: bytes, start: int, limit: int, depth: int) -> tuple[Decoded, int]:
    if depth > _DEPTH_MAX:
        raise WireError(f"RLP: lists nested deeper than {_DEPTH_MAX}")
    is_list, start, end = _span(raw, start, limit)
    if not is_list:
        return raw[start:end], end
    items: list[Decoded] = []
    while start < end:
        item, start = _decode(raw, start, end, depth + 1)
        items.append(item)
    return items, end


def _span(raw: bytes, start: int, limit: int) -> tuple[bool, int, int]:
    """Whether an item is a list, and where its content begins and ends."""
    if start >= limit:
        raise WireError("RLP: input ends before an item")
    first = raw[start]
    if first < 0x80:
        return False, start, start + 1
    is_list = first >= 0xC0
    length = first - (0xC0 if is_list else 0x80)
    start += 1
    if length > 55:
        width = length - 55
        digits = raw[start : start + width]
        length = int.from_bytes(digits, "big")
        if start + width > limit or length < 56 or digits[0] == 0:
            raise WireError("RLP: bad length of a length")
        start += width
    end = start + length
    if end > limit:
        raise WireError(f"RLP: an item of {length} bytes where {limit - start} are left")
    if not is_list and length == 1 and raw[start] < 0x80:
        raise WireError("RLP: a small byte that needs no header has one")
    return is_list, start, end
