"""Roots of Ethereum's Merkle-Patricia tries, computed from all their entries at once.

The shape of a trie depends on its keys alone. A block's transactions and receipts have their positions as keys: the
shape for a number of them is computed once, and filled with values for every block of that size.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from icefall.wire.evm import rlp
from icefall.wire.evm.keccak import keccak256

EMPTY_ROOT = keccak256(rlp.EMPTY_STRING)

_NIBBLES = [bytes([byte >> 4, byte & 15]) for byte in range(256)]
_HASH = b"\xa0"  # RLP's header of 32 bytes
_SHAPES_KEPT = 64

_Path = tuple[bytes, int]  # a path, one nibble per byte, and the position of its value


class _Leaf(NamedTuple):
    path: bytes  # what is left of it, compact, as RLP
    position: int


class _Branch(NamedTuple):
    path: bytes  # of the extension above it, compact, as RLP; empty: there is none
    children: "tuple[tuple[int, _Shape], ...]"  # by nibble
    position: int | None  # of the value whose path ends here


_Shape = _Leaf | _Branch


def root(entries: Mapping[bytes, bytes]) -> bytes:
    """Root of a trie of plain keys. No value may be empty: an empty value is an absent entry."""
    return _root(entries, list(entries.values()))


def secure_root(entries: Mapping[bytes, bytes]) -> bytes:
    """Root of a trie whose keys are hashed first: accounts by address, storage by slot."""
    return _root(map(keccak256, entries), list(entries.values()))


def ordered_root(values: Sequence[bytes]) -> bytes:
    """Root over a block's transactions or receipts, which are keyed by their position."""
    return keccak256(_node(_ordered_shape(len(values)), values)) if values else EMPTY_ROOT


def _root(keys: Iterable[bytes], values: Sequence[bytes]) -> bytes:
    return keccak256(_node(_shape(_paths(keys), 0), values)) if values else EMPTY_ROOT


@lru_cache(maxsize=_SHAPES_KEPT)
def _ordered_shape(count: int) -> _Shape:
    return _shape(_paths(rlp.encode(rlp.number(index)) for index in range(count)), 0)


def _paths(keys: Iterable[bytes]) -> list[_Path]:
    return sorted((b"".join([_NIBBLES[byte] for byte in key]), index) for index, key in enumerate(keys))


def _shape(paths: list[_Path], depth: int) -> _Shape:
    """Of the node that holds `paths`, sorted and equal in their first `depth` nibbles."""
    first, last = paths[0][0], paths[-1][0]
    if len(paths) == 1:
        return _Leaf(rlp.encode(_compact(first[depth:], is_leaf=True)), paths[0][1])
    shared = depth
    while shared < len(first) and first[shared] == last[shared]:  # sorted, so what the ends share all share
        shared += 1
    extension = rlp.encode(_compact(first[depth:shared], is_leaf=False)) if shared > depth else b""
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
    """RLP of a node."""
    if isinstance(shape, _Leaf):
        return rlp.joined_list(shape.path + rlp.encode(values[shape.position]))
    items = [rlp.EMPTY_STRING] * 17
    for nibble, child in shape.children:
        if isinstance(child, _Leaf):  # most are: without another call
            node = rlp.joined_list(child.path + rlp.encode(values[child.position]))
        else:
            node = _node(child, values)
        items[nibble] = node if len(node) < 32 else _HASH + keccak256(node)  # small ones are written in place
    if shape.position is not None:
        items[16] = rlp.encode(values[shape.position])
    branch = rlp.encode_list(items)
    if not shape.path:
        return branch
    return rlp.encode_list((shape.path, branch if len(branch) < 32 else _HASH + keccak256(branch)))


def _compact(path: bytes, *, is_leaf: bool) -> bytes:
    """Nibbles packed to bytes behind a flag for leaf or not, odd or even."""
    flag = 2 if is_leaf else 0
    padded = bytes([flag + 1]) + path if len(path) % 2 else bytes([flag, 0]) + path
    return bytes(high << 4 | low for high, low in zip(padded[::2], padded[1::2], strict=True))
