"""The formulas by which a slot belongs to a key, and the bits of a slot."""

import pytest

from icefall.evm.layouts.formulas import (
    NAMESPACES,
    Order,
    StorageLayout,
    find_bits,
    find_layout,
    mapping_keys,
    slot_key,
    unpack_layout,
)
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.wire.evm.rlp import keccak256

HOLDER = bytes(range(1, 21))
RANDOM_ID = int.from_bytes(keccak256(b"an ID"), "big")


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_slots_are_those_of_the_compilers() -> None:
    holder = HOLDER.rjust(32, b"\0")
    assert slot_key(Order.KEY_FIRST, word(3), 0, [holder]) == keccak256(holder + word(3))
    assert slot_key(Order.BASE_FIRST, word(7), 0, [holder]) == keccak256(word(7) + holder)
    seed = bytes.fromhex("87a211a2")
    assert slot_key(Order.PACKED_ADDRESS, seed.rjust(32, b"\0"), 0, [holder]) == keccak256(HOLDER + bytes(8) + seed)
    inner = keccak256(word(RANDOM_ID) + word(0))
    layout = StorageLayout(ERC1155, Order.KEY_FIRST, word(0), 0, 256, 0)
    assert layout.slot_of(HOLDER, RANDOM_ID) == keccak256(holder + inner)


def test_namespaces_are_those_that_openzeppelin_publishes() -> None:
    assert NAMESPACES[0].hex() == "52c63247e1f47db19d5ce0460030c497f067ca4cebf71ba98eeadabe20bace00"


@pytest.mark.parametrize("ignores_bit", [False, True])
@pytest.mark.parametrize("standard", [ERC20, ERC721, ERC1155])
@pytest.mark.parametrize("order", [Order.KEY_FIRST, Order.BASE_FIRST])
@pytest.mark.parametrize("base", [word(0), word(64), NAMESPACES[0], NAMESPACES[1][:-1] + b"\x02"])
@pytest.mark.parametrize("offset", [0, 1])
def test_a_layout_is_found_by_its_slot(
    base: bytes, order: Order, standard: int, offset: int, *, ignores_bit: bool
) -> None:
    for holder_first in (False, True) if standard == ERC1155 else (False,):
        keys = mapping_keys(standard, HOLDER, RANDOM_ID, holder_first=holder_first)
        slot = slot_key(order, base, offset, keys)
        found = find_layout(standard, slot, HOLDER, RANDOM_ID, ignores_bit=ignores_bit)
        assert found == StorageLayout(standard, order, base, offset, 0, 0, holder_first, ignores_bit)
        assert unpack_layout(found.pack()) == found


def test_a_slot_of_another_key_has_no_layout() -> None:
    slot = slot_key(Order.KEY_FIRST, word(0), 0, [bytes(32)])
    assert find_layout(ERC20, slot, HOLDER, 0, ignores_bit=False) is None


def test_coreth_ignores_one_bit_of_a_key() -> None:
    slot = slot_key(Order.KEY_FIRST, word(0), 0, mapping_keys(ERC20, HOLDER, 0))
    flipped = bytes((slot[0] ^ 1,)) + slot[1:]
    assert find_layout(ERC20, flipped, HOLDER, 0, ignores_bit=False) is None
    found = find_layout(ERC20, flipped, HOLDER, 0, ignores_bit=True)
    assert found is not None
    assert found.normal(flipped) == found.normal(slot) == found.slot_of(HOLDER, 0)


def test_bits_of_a_slot() -> None:
    value = int.from_bytes(keccak256(b"a word"), "big")
    assert find_bits((1 << 256) - 1, value, value) == (256, 0)
    assert find_bits((1 << 128) - 1, value, value >> 128) == (128, 128)
    assert find_bits((1 << 160) - 1, value, value & ((1 << 160) - 1)) == (160, 0)
    assert find_bits((1 << 255) - 1, value, value) in (None, (255, 0))
    assert find_bits((1 << 256) - 2, value, value) is None
    assert find_bits((1 << 128) - 1, value, value % 1_000_003) is None
    layout = StorageLayout(ERC20, Order.KEY_FIRST, word(0), 0, 128, 128)
    assert layout.value_of(value) == value >> 128
