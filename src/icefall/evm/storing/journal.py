"""Changes of a block that its own rows do not show, stored with the block for rollbacks and audits."""

from collections.abc import Sequence

import msgspec

from icefall.wire.packer import pack_varints, unpack_varints


class TouchedAddresses(msgspec.Struct, frozen=True, gc=False):
    """IDs of addresses, by what the block changed."""

    native: tuple[int, ...] = ()  # native balance
    code: tuple[int, ...] = ()  # code, changed or read from state
    silent: tuple[int, ...] = ()  # tokens whose storage changed without a log: the 1st, 2nd, 4th, 8th ... time
    named: tuple[tuple[int, int], ...] = ()  # (holder, token) that a log named without a transfer
    silent_again: tuple[int, ...] = ()  # as `silent`, any other time: some contracts do it in every block
    recoded: tuple[int, ...] = ()  # tokens that run other code from here on

    def pack(self) -> bytes:
        """The length of each list and its numbers. The last lists are mostly empty, and are left out then."""
        flat = [number for pair in self.named for number in pair]
        lists = [self.native, self.code, self.silent, flat, self.silent_again, self.recoded]
        while lists and not lists[-1]:
            lists.pop()
        return pack_varints([number for one in lists for number in (len(one), *one)])


def unpack_touched(raw: bytes) -> TouchedAddresses:
    numbers = unpack_varints(raw)
    lists: list[tuple[int, ...]] = []
    start = 0
    while start < len(numbers):
        end = start + 1 + numbers[start]
        lists.append(numbers[start + 1 : end])
        start = end
    lists += [()] * (6 - len(lists))
    native, code, silent, flat, again, recoded = lists
    return TouchedAddresses(native, code, silent, _pairs(flat), again, recoded)


def _pairs(flat: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(flat[::2], flat[1::2], strict=True))
