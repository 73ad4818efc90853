"""What a block did that its own rows do not tell, noted beside it: a rollback and an audit find it there by block."""

import struct

import msgspec


class TouchedAddresses(msgspec.Struct, frozen=True, gc=False):
    """Interned addresses, each list for its own reason."""

    native: tuple[int, ...] = ()  # got a native balance
    code: tuple[int, ...] = ()  # got or lost code, or was asked for it
    silent: tuple[int, ...] = ()  # tokens whose storage changed while no log said why
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
