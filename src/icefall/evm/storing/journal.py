"""Changes of a block that its own rows do not show, stored with the block for rollbacks and audits."""

import struct
from collections.abc import Iterable, Sequence

import msgspec

from icefall.wire.packer import pack_varints, unpack_varints

_PADDING = b"\x80"  # begins a number that has no end


class TouchedAddresses(msgspec.Struct, frozen=True, gc=False):
    """IDs of addresses, by what the block changed."""

    native: tuple[int, ...] = ()  # native balance
    code: tuple[int, ...] = ()  # code, changed or read from state
    silent: tuple[int, ...] = ()  # tokens whose storage changed without a log: the 1st, 2nd, 4th, 8th ... time
    named: tuple[tuple[int, int], ...] = ()  # (holder, token) that a log named without a transfer
    silent_again: tuple[int, ...] = ()  # as `silent`, any other time: some contracts do it in every block
    recoded: tuple[int, ...] = ()  # tokens that run other code from here on

    def pack(self) -> bytes:
        flat = [number for pair in self.named for number in pair]
        lists = [self.native, self.code, self.silent, flat]
        if self.silent_again or self.recoded:  # the first release had four lists
            lists += [self.silent_again, self.recoded]
        numbers = [*map(len, lists[:4]), *(number for one in lists[:4] for number in one)]
        for later in lists[4:]:
            numbers += [len(later), *later]
        return _pack_numbers(numbers) if any(lists) else b""


def unpack_touched(raw: bytes) -> TouchedAddresses:
    if not raw:
        return TouchedAddresses()
    numbers = _unpack_numbers(raw)
    lists, start = [], 4
    for size in numbers[:4]:
        lists.append(numbers[start : start + size])
        start += size
    while start < len(numbers):
        lists.append(numbers[start + 1 : start + 1 + numbers[start]])
        start += 1 + numbers[start]
    native, code, silent, flat, *later = lists
    return TouchedAddresses(native, code, silent, _pairs(flat), *later)


def _pack_numbers(numbers: Iterable[int]) -> bytes:
    """Never a multiple of four bytes: older releases took four for each number."""
    packed = pack_varints(numbers)
    return packed if len(packed) % 4 else packed + _PADDING


def _unpack_numbers(raw: bytes) -> tuple[int, ...]:
    return unpack_varints(raw) if len(raw) % 4 else struct.unpack(f"<{len(raw) // 4}I", raw)


def _pairs(flat: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(flat[::2], flat[1::2], strict=True))
