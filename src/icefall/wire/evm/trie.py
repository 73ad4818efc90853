"""Roots of Ethereum's Merkle-Patricia tries, computed from all their entries at once."""

from collections.abc import Iterable, Mapping, Sequence

from icefall.wire.evm import rlp
from icefall.wire.evm.keccak import keccak256

EMPTY_ROOT = keccak256(rlp.EMPTY_STRING)

_Entry = tuple[bytes, bytes]  # a path, one nibble per byte, and the value at its end
_NIBBLES = [bytes([byte >> 4, byte & 15]) for byte in range(256)]


def root(entries: Mapping[bytes, bytes]) -> bytes:
    """Root of a trie of plain keys. No value may be empty: an empty value is an absent entry."""
    return _root((key, value) for key, value in entries.items())


def secure_root(entries: Mapping[bytes, bytes]) -> bytes:
    """Root of a trie whose keys are hashed first: accounts by address, storage by slot."""
    return _root((keccak256(key), value) for key, value in entries.items())


def ordered_root(values: Sequence[bytes]) -> bytes:
    """Root over a block's transactions or receipts, which are keyed by their position."""
    return _root((rlp.encode(rlp.number(index)), value) for index, value in enumerate(values))


def _root(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    paths = sorted((b"".join(_NIBBLES[byte] for byte in key), value) for key, value in entries)
    return keccak256(_node(paths, 0)) if paths else EMPTY_ROOT


def _node(entries: list[_Entry], depth: int) -> bytes:
    """RLP of the node that holds `entries`, sorted and equal in their first `depth` nibbles."""
    first, last = entries[0][0], entries[-1][0]
    if len(entries) == 1:
        return rlp.encode([_compact(first[depth:], is_leaf=True), entries[0][1]])
    shared = depth
    while shared < len(first) and first[shared] == last[shared]:  # sorted, so what the ends share all share
        shared += 1
    branch = _branch(entries, shared)
    if shared == depth:
        return branch
    return rlp.encode_list([rlp.encode(_compact(first[depth:shared], is_leaf=False)), _reference(branch)])


def _branch(entries: list[_Entry], depth: int) -> bytes:
    children = [rlp.EMPTY_STRING] * 16
    here = b""
    start = 0
    if len(entries[0][0]) == depth:  # one key is a prefix of the others: its value sits in the branch itself
        here = entries[0][1]
        start = 1
    while start < len(entries):
        nibble = entries[start][0][depth]
        end = start
        while end < len(entries) and entries[end][0][depth] == nibble:
            end += 1
        children[nibble] = _reference(_node(entries[start:end], depth + 1))
        start = end
    return rlp.encode_list([*children, rlp.encode(here)])


def _reference(node: bytes) -> bytes:
    """How a parent names a node: small ones are written in place, others by hash."""
    return node if len(node) < 32 else rlp.encode(keccak256(node))


def _compact(path: bytes, *, is_leaf: bool) -> bytes:
    """Nibbles packed to bytes behind a flag for leaf or not, odd or even."""
    flag = 2 if is_leaf else 0
    padded = bytes([flag + 1]) + path if len(path) % 2 else bytes([flag, 0]) + path
    return bytes(high << 4 | low for high, low in zip(padded[::2], padded[1::2], strict=True))
