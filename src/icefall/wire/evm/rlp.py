"""RLP, Ethereum's nested byte strings, and the roots of Merkle-Patricia tries, which are hashes over RLP.

An item is bytes or a list of items; numbers carry no leading zeros. Hashes are Keccak-256, not the later SHA3-256,
which pads differently.

The shape of a trie depends on its keys alone. A block's transactions and receipts have their positions as keys: the
shape for a number of them is computed once, and filled with values for every block of that size.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import tiny_keccak

from icefall.wire.errors import WireError

keccak256 = tiny_keccak.keccak256
Item: TypeAlias = "bytes | Sequence[Item]"
Decoded: TypeAlias = "bytes | list[Decoded]"

EMPTY_STRING = b"\x80"
_TABLE_SIZE = 2048  # lengths whose headers are in a table
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
    """Return whether an item is a list, and where its content begins and ends."""
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


# -- tries ---------------------------------------------------------------------------------------------------------

EMPTY_ROOT = keccak256(EMPTY_STRING)

_NIBBLES = [bytes([byte >> 4, byte & 15]) for byte in range(256)]
_HASH_HEADER = b"\xa0"  # RLP's header of 32 bytes
_SHAPES_CACHED = 64

_Path = tuple[bytes, int]  # a path, one nibble per byte, and the position of its value


class _Leaf(NamedTuple):
    path: bytes  # what is left of it, compact, as RLP
    position: int


class _Branch(NamedTuple):
    path: bytes  # of the extension above it, compact, as RLP; empty: there is none
    children: "tuple[tuple[int, _Shape], ...]"  # by nibble
    position: int | None  # of the value whose path ends here


_Shape = _Leaf | _Branch


def trie_root(entries: Mapping[bytes, bytes]) -> bytes:
    """Compute the root of a trie of plain keys. No value may be empty: an empty value is an absent entry."""
    return _root_of(entries, list(entries.values()))


def secure_root(entries: Mapping[bytes, bytes]) -> bytes:
    """Compute the root of a trie whose keys are hashed first: accounts by address, storage by slot."""
    return _root_of(map(keccak256, entries), list(entries.values()))


def ordered_root(values: Sequence[bytes]) -> bytes:
    """Compute the root over a block's transactions or receipts, which are keyed by their position."""
    return keccak256(_node(_ordered_shape(len(values)), values)) if values else EMPTY_ROOT


def _root_of(keys: Iterable[bytes], values: Sequence[bytes]) -> bytes:
    return keccak256(_node(_shape(_paths(keys), 0), values)) if values else EMPTY_ROOT


@lru_cache(maxsize=_SHAPES_CACHED)
def _ordered_shape(count: int) -> _Shape:
    return _shape(_paths(encode(number(index)) for index in range(count)), 0)


def _paths(keys: Iterable[bytes]) -> list[_Path]:
    return sorted((b"".join([_NIBBLES[byte] for byte in key]), index) for index, key in enumerate(keys))


def _shape(paths: list[_Path], depth: int) -> _Shape:
    """Compute the shape of the node that holds `paths`, which are sorted and equal in their first `depth` nibbles."""
    first, last = paths[0][0], paths[-1][0]
    if len(paths) == 1:
        return _Leaf(encode(_compact(first[depth:], is_leaf=True)), paths[0][1])
    shared = depth
    while shared < len(first) and first[shared] == last[shared]:  # sorted, so what the ends share all share
        shared += 1
    extension = encode(_compact(first[depth:shared], is_leaf=False)) if shared > depth else b""
    here, start = None, 0
    if len(first) == shared:  # one key is a prefix of the others: its value sits in the branch itself
        here, start = paths[0][1], 1
    children = []
    while start < len(paths):
        nibble, end = paths[start][0][shared], start
        while end < len(paths) and paths[end][0][shared] == nibble:
            end += 1
        children.append((nibble, _shape(paths[start:end], shared + 1)))
        start = end
    return _Branch(extension, tuple(children), here)


def _node(shape: _Shape, values: Sequence[bytes]) -> bytes:
    """Encode a node of a trie of this shape, with these values."""
    if isinstance(shape, _Leaf):
        return joined_list(shape.path + encode(values[shape.position]))
    items = [EMPTY_STRING] * 17
    for nibble, child in shape.children:
        if isinstance(child, _Leaf):  # most are: without another call
            node = joined_list(child.path + encode(values[child.position]))
        else:
            node = _node(child, values)
        items[nibble] = node if len(node) < 32 else _HASH_HEADER + keccak256(node)  # small ones are written in place
    if shape.position is not None:
        items[16] = encode(values[shape.position])
    branch = encode_list(items)
    if not shape.path:
        return branch
    return encode_list((shape.path, branch if len(branch) < 32 else _HASH_HEADER + keccak256(branch)))


def _compact(path: bytes, *, is_leaf: bool) -> bytes:
    """Pack nibbles to bytes behind a flag for leaf or not, odd or even."""
    flag = 2 if is_leaf else 0
    padded = bytes([flag + 1]) + path if len(path) % 2 else bytes([flag, 0]) + path
    return bytes(high << 4 | low for high, low in zip(padded[::2], padded[1::2], strict=True))
