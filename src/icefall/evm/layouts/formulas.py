"""Storage layouts of tokens: in which slot of a contract a balance or an owner is, and in which bits of it. Pure.

A mapping is stored under the hash of a key and of the mapping's own slot, its base. Solidity hashes the key first,
Vyper the base; Solady hashes an address with four bytes of its own. A mapping of mappings repeats that. What is meant
by a key is said by the standard: a holder, a token ID, or both.
"""

import enum
from collections.abc import Iterator, Sequence

import msgspec

from icefall.evm.model import ERC20, ERC721
from icefall.evm.standards import STANDARDS
from icefall.wire.evm.rlp import keccak256

WORD = 32
BASES = 65  # slots of a contract that are tried as the base of a mapping
_NAMESPACE_BASES = 8  # variables of a namespace that are tried
_OFFSETS = 4  # words of a struct that are tried
_SOLADY_SEED = bytes.fromhex("87a211a2")
_BIT_IGNORED = 0x01  # of the first byte of a slot's key, by coreth
KEY_STORED = 8  # bytes of a slot's key by which its holder is found; the address of the holder proves the rest


def unclaimed_key(slot: bytes) -> bytes:
    """Sixteen bytes of the key of a slot whose holder is not known: its first and its last, by which alone the slots of
    a struct or an array differ."""
    return slot[:8] + slot[-8:]


class Order(enum.IntEnum):
    """The order in which a key and the base of a mapping are hashed."""

    KEY_FIRST = 0  # Solidity
    BASE_FIRST = 1  # Vyper
    PACKED_ADDRESS = 2  # Solady: the address, eight zeros and a seed


class StorageLayout(msgspec.Struct, frozen=True, array_like=True):
    """The place of the values of a token: the slot of a key, and the bits in it."""

    standard: int  # as in standards.py
    order: Order
    base: bytes  # 32 bytes
    offset: int  # words after the hash, in a struct
    bits: int  # the width of the value
    shift: int  # the bits below it
    holder_first: bool = False  # where there are amounts of IDs: the outer mapping is by holder, the inner one by ID
    ignores_bit: bool = False  # coreth: keys that differ in one bit are the same slot
    is_proxy: bool = False  # the code is that of another contract, whose address is in a slot
    is_whole: bool = False  # every change of its storage was seen, from its deployment on

    def value_of(self, word: int) -> int:
        return (word >> self.shift) & ((1 << self.bits) - 1)

    def slot_of(self, holder: bytes, token_id: int) -> bytes:
        """The key of the slot. The standard says which of the two counts."""
        keys = mapping_keys(self.standard, holder, token_id, holder_first=self.holder_first)
        return self.normal(slot_key(self.order, self.base, self.offset, keys))

    def normal(self, key: bytes) -> bytes:
        """The key as it is compared with others."""
        return bytes((key[0] & ~_BIT_IGNORED,)) + key[1:] if self.ignores_bit else key

    def is_same_place(self, other: "StorageLayout") -> bool:
        """Tell whether values are in the same bits of the same slots."""
        return msgspec.structs.astuple(self)[:-2] == msgspec.structs.astuple(other)[:-2]

    def pack(self) -> bytes:
        return msgspec.msgpack.encode(self)


def unpack_layout(raw: bytes) -> StorageLayout:
    return _LAYOUT.decode(raw)


_LAYOUT = msgspec.msgpack.Decoder(StorageLayout)


def mapping_keys(standard: int, holder: bytes, token_id: int, *, holder_first: bool = False) -> tuple[bytes, ...]:
    """The keys of nested mappings that lead to a value, the outermost first."""
    if standard == ERC20:
        return (holder.rjust(WORD, b"\0"),)
    number = token_id.to_bytes(WORD, "big")
    if standard == ERC721:
        return (number,)
    owner = holder.rjust(WORD, b"\0")
    return (owner, number) if holder_first else (number, owner)


def slot_key(order: Order, base: bytes, offset: int, keys: Sequence[bytes]) -> bytes:
    """The key of the slot in which nested mappings end."""
    slot = base
    for key in keys:
        if order is Order.KEY_FIRST:
            slot = keccak256(key + slot)
        elif order is Order.BASE_FIRST:
            slot = keccak256(slot + key)
        else:
            slot = keccak256(key[-20:] + bytes(8) + slot[-4:])
    if not offset:
        return slot
    return ((int.from_bytes(slot, "big") + offset) % (1 << 256)).to_bytes(WORD, "big")


def namespace(name: str) -> bytes:
    """The first slot of a namespace (ERC-7201)."""
    inner = int.from_bytes(keccak256(name.encode()), "big") - 1
    return keccak256(inner.to_bytes(WORD, "big"))[:-1] + b"\0"


NAMESPACES = tuple(namespace(f"openzeppelin.storage.{one.table.upper()}") for one in STANDARDS)


def _bases() -> Iterator[bytes]:
    for number in range(BASES):
        yield number.to_bytes(WORD, "big")
    for start in NAMESPACES:
        for place in range(_NAMESPACE_BASES):
            yield start[:-1] + bytes((start[-1] + place,))


_BASES = tuple(_bases())


def find_layout(standard: int, slot: bytes, holder: bytes, token_id: int, *, ignores_bit: bool) -> StorageLayout | None:
    """The layout by which this slot belongs to the key; its bits are not known yet, and 0. None: no known one."""
    wanted = int.from_bytes(slot, "big")
    ignored = _BIT_IGNORED << 248 if ignores_bit else 0
    for holder_first in (False, True) if standard not in (ERC20, ERC721) else (False,):
        keys = mapping_keys(standard, holder, token_id, holder_first=holder_first)
        for order, base in _candidates(standard):
            start = int.from_bytes(slot_key(order, base, 0, keys), "big")
            for offset in range(_OFFSETS):
                if not (((start + offset) % (1 << 256)) ^ wanted) & ~ignored:
                    return StorageLayout(standard, order, base, offset, 0, 0, holder_first, ignores_bit)
    return None


def _candidates(standard: int) -> Iterator[tuple[Order, bytes]]:
    for base in _BASES:
        yield Order.KEY_FIRST, base
        yield Order.BASE_FIRST, base
    if standard == ERC20:
        yield Order.PACKED_ADDRESS, _SOLADY_SEED.rjust(WORD, b"\0")


def find_bits(ones: int, word: int, value: int) -> tuple[int, int] | None:
    """The width of the value and the bits below it, where a slot of all ones gives `ones` and `word` gives `value`.
    None: no part of the slot is the value."""
    bits = ones.bit_length()
    if ones != (1 << bits) - 1:
        return None
    for shift in range(256 - bits + 1):
        if (word >> shift) & ones == value:
            return bits, shift
    return None
