"""Changes of a block that its own rows do not show, stored with the block for rollbacks and audits."""

import struct

import msgspec


class TouchedAddresses(msgspec.Struct, frozen=True, gc=False):
    """IDs of addresses, by what the block changed."""

    native: tuple[int, ...] = ()  # native balance
    code: tuple[int, ...] = ()  # code, changed or read from state
    silent: tuple[int, ...] = ()  # tokens whose storage changed without a log that explains it
    named: tuple[tuple[int, int], ...] = ()  # (holder, token) that a log named without a transfer

    def pack(self) -> bytes:
        flat = [number for pair in self.named for number in pair]
        lists = (self.native, self.code, self.silent, flat)
        numbers = [*map(len, lists), *self.native, *self.code, *self.silent, *flat]
        return struct.pack(f"<{len(numbers)}I", *numbers) if any(lists) else b""


def unpack_touched(raw: bytes) -> TouchedAddresses:
    if not raw:
        return TouchedAddresses()
    numbers = struct.unpack(f"<{len(raw) // 4}I", raw)
    lists, start = [], 4
    for size in numbers[:4]:
        lists.append(numbers[start : start + size])
        start += size
    native, code, silent, flat = lists
    return TouchedAddresses(native, code, silent, tuple(zip(flat[::2], flat[1::2], strict=True)))
