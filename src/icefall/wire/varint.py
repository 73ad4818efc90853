"""Numbers with seven bits in each byte, lowest first; the eighth bit says that more follow (LEB128, as in protobuf)."""

from collections.abc import Iterable


def pack_varints(numbers: Iterable[int]) -> bytes:
    packed = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            packed.append(rest & 0x7F | 0x80)
            rest >>= 7
        packed.append(rest)
    return bytes(packed)


def unpack_varints(packed: bytes) -> tuple[int, ...]:
    """The numbers, in their order."""
    numbers, number, shift = [], 0, 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    return tuple(numbers)
