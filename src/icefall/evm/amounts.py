"""Compact encodings of numbers up to 2**256 for the store: of one, whose bytes sort like the number, and of several."""

from typing import Any

_from_bytes = int.from_bytes  # found once: pages unpack a hundred numbers
_SIZES = tuple(bytes([n]) for n in range(256))
_SMALL = tuple(bytes([1, n]) if n else b"\x00" for n in range(256))
# Of several numbers, where the length of one would be, which is 32 at most:
_ITSELF = 0x20  # up to 0x7f: a number from 1 to 95, plus this
_ROUND = 0x80  # the power of ten with which the next byte is multiplied, plus this
_ABSENT = 0xFF
_POWERS = tuple(10**n for n in range(_ABSENT - _ROUND))


def pack_uint(number: int) -> bytes:
    """A length byte and the number, big-endian without leading zeros."""
    if number < 256:
        return _SMALL[number]
    size = (number.bit_length() + 7) >> 3
    return _SIZES[size] + number.to_bytes(size, "big")


def unpack_uint(packed: bytes) -> int:
    return _from_bytes(packed[1:], "big")


class PackedUints(dict[int | None, bytes]):
    """Numbers as `unpack_uints` reads them, one after another; None is an absent one. Each is packed once: prices and
    limits repeat. People and wallets choose round ones."""

    def __missing__(self, number: int | None) -> bytes:
        packed = self[number] = _packed(number)
        return packed


def _packed(number: int | None) -> bytes:
    if number is None:
        return _SIZES[_ABSENT]
    if 0 < number < _ROUND - _ITSELF:
        return _SIZES[_ITSELF + number]
    if number < 256 or number % 10:
        return pack_uint(number)
    digits, power = number, 0
    while not digits % 10:
        digits, power = digits // 10, power + 1
    return bytes([_ROUND + power, digits]) if digits < 256 else pack_uint(number)


def unpack_uints(packed: bytes) -> list[Any]:
    """The numbers that `PackedUints` packed, one after another."""
    numbers: list[Any] = []
    at, end = 0, len(packed)
    while at < end:
        code, at = packed[at], at + 1
        if code <= _ITSELF:
            numbers.append(_from_bytes(packed[at : at + code], "big"))
            at += code
        elif code < _ROUND:
            numbers.append(code - _ITSELF)
        elif code == _ABSENT:
            numbers.append(None)
        else:
            numbers.append(packed[at] * _POWERS[code - _ROUND])
            at += 1
    return numbers
