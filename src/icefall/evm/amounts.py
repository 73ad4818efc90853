"""Compact encodings for the store: of numbers up to 2**256, whose bytes sort like the numbers, and of call data."""

import re
from typing import Any

_RUN = re.compile(rb"\x00{1,255}")
_PACKED_RUN = re.compile(rb"\x00(.)", re.DOTALL)
_from_bytes = int.from_bytes  # found once: pages unpack a hundred numbers
_PACKED_RUNS = tuple(bytes([0, n]) for n in range(256))  # by length
_SIZES = tuple(bytes([n]) for n in range(256))
_ABSENT = b"\xff"  # where the length of a number would be
_SMALL = tuple(bytes([1, n]) if n else b"\x00" for n in range(256))


def pack_uint(number: int) -> bytes:
    """A length byte and the number, big-endian without leading zeros."""
    if number < 256:
        return _SMALL[number]
    size = (number.bit_length() + 7) >> 3
    return _SIZES[size] + number.to_bytes(size, "big")


class PackedUints(dict[int | None, bytes]):
    """`pack_uint` of numbers that repeat, such as prices and limits: each is packed once. None is an absent one, of
    which `unpack_uints` can tell."""

    def __missing__(self, number: int | None) -> bytes:
        packed = self[number] = _ABSENT if number is None else pack_uint(number)
        return packed


def unpack_uint(packed: bytes) -> int:
    return _from_bytes(packed[1:], "big")


def unpack_uints(packed: bytes) -> list[Any]:
    """Of several, one after another; None for those that are absent."""
    numbers: list[Any] = []
    at, end = 0, len(packed)
    while at < end:
        size, at = packed[at], at + 1
        if size == _ABSENT[0]:
            numbers.append(None)
        else:
            numbers.append(_from_bytes(packed[at : at + size], "big"))
            at += size
    return numbers


def pack_data(data: bytes) -> bytes:
    """Call data is mostly zeros: a run of them becomes a zero and its length."""
    return _RUN.sub(_pack_run, data)


def _pack_run(run: re.Match[bytes]) -> bytes:
    start, end = run.span()
    return _PACKED_RUNS[end - start]


def unpack_data(packed: bytes) -> bytes:
    return _PACKED_RUN.sub(lambda run: bytes(run[1][0]), packed)
