"""The linear codec: big-endian numbers, counted lists, raw arrays, values of several types behind a type ID.

An `Unpacker` reads one bytes object from start to end. Adjacent fields of fixed size are read together (`Layout`); only
when the bytes run out is the incomplete field determined, because the node's error text depends on it.
"""

import struct
from collections.abc import Iterable
from typing import Any

from icefall.wire.errors import WireError
from icefall.wire.text.go_text import from_utf8, utf8

VERSION_BYTES = b"\0\0"
SIZE_MAX = 262_144
GENESIS_SIZE_MAX = 2**31 - 1
COUNT_MAX = 2**31 - 1

_SHORT = "packer has insufficient length for input"
# type of field -> (struct code, size, prefix of the node's error text)
_FIELD_TYPES = {
    "uint8": ("B", 1, "couldn't unmarshal uint8: "),
    "uint16": ("H", 2, "couldn't unmarshal uint16: "),
    "uint32": ("I", 4, "couldn't unmarshal uint32: "),
    "uint64": ("Q", 8, "couldn't unmarshal uint64: "),
    "int64": ("q", 8, "couldn't unmarshal int64: "),
    "count": ("I", 4, "couldn't unmarshal slice: "),
    "type": ("I", 4, "couldn't unmarshal interface: "),
    "length": ("H", 2, "couldn't unmarshal string: "),
}

u16 = struct.Struct(">H").pack
u32 = struct.Struct(">I").pack
u64 = struct.Struct(">Q").pack


class Layout:
    """Adjacent fields of fixed size: names of field types, or a number of raw bytes."""

    __slots__ = ("_fields", "pack", "size", "unpack_from")

    def __init__(self, *fields: str | int) -> None:
        rows = [(f"{field}s", field, "") if isinstance(field, int) else _FIELD_TYPES[field] for field in fields]
        shape = struct.Struct(">" + "".join(code for code, _, _ in rows))
        self._fields = [(size, prefix) for _, size, prefix in rows]
        self.pack = shape.pack
        self.unpack_from = shape.unpack_from
        self.size = shape.size

    def shortfall(self, available: int) -> WireError:
        """The error for the first field that `available` bytes do not cover."""
        for size, prefix in self._fields:
            available -= size
            if available < 0:
                return WireError(prefix + _SHORT)
        raise AssertionError("the layout fits")


_U8 = Layout("uint8")
_U32 = Layout("uint32")
_U64 = Layout("uint64")
_COUNT = Layout("count")
_TYPE = Layout("type")
_LENGTH = Layout("length")


class Unpacker:
    """A position in encoded bytes."""

    __slots__ = ("offset", "raw")

    def __init__(self, raw: bytes, offset: int = 0) -> None:
        self.raw = raw
        self.offset = offset

    def take(self, layout: Layout) -> tuple[Any, ...]:
        """Read the fields of a layout."""
        offset = self.offset
        try:
            values = layout.unpack_from(self.raw, offset)
        except struct.error:
            raise layout.shortfall(len(self.raw) - offset) from None
        self.offset = offset + layout.size
        return values

    def u8(self) -> int:
        """Read one byte."""
        value: int = self.take(_U8)[0]
        return value

    def u32(self) -> int:
        """Read a 32-bit number."""
        value: int = self.take(_U32)[0]
        return value

    def u64(self) -> int:
        """Read a 64-bit number."""
        value: int = self.take(_U64)[0]
        return value

    def type_id(self) -> int:
        """The type ID before a value that can have several types."""
        value: int = self.take(_TYPE)[0]
        return value

    def count(self) -> int:
        """Read the number of items that follow."""
        return checked_count(self.take(_COUNT)[0])

    def fixed(self, size: int) -> bytes:
        """Read `size` raw bytes."""
        end = self.offset + size
        if end > len(self.raw):
            raise WireError(_SHORT)
        value = self.raw[self.offset : end]
        self.offset = end
        return value

    def blob(self) -> bytes:
        """A counted run of bytes."""
        return self.fixed(self.count())

    def string(self) -> str:
        """A text with a 16-bit length. It need not be UTF-8: `from_utf8` preserves other bytes."""
        (size,) = self.take(_LENGTH)
        try:
            return from_utf8(self.fixed(size))
        except WireError as error:
            raise WireError(_FIELD_TYPES["length"][2] + str(error)) from None

    def arrays(self, count: int, size: int) -> tuple[bytes, ...]:
        """Read `count` raw arrays of `size` bytes each."""
        if count == 1:
            return (self.fixed(size),)
        run = self.fixed(count * size)
        return tuple([run[start : start + size] for start in range(0, len(run), size)])

    def u32s(self, count: int) -> tuple[int, ...]:
        """Read `count` 32-bit numbers."""
        if count == 1:
            return self.take(_U32)
        offset = self.offset
        if offset + 4 * count > len(self.raw):
            raise _U32.shortfall(0)
        self.offset = offset + 4 * count
        return struct.unpack_from(f">{count}I", self.raw, offset)

    def finish(self) -> None:
        """Nothing may follow the value."""
        if self.offset != len(self.raw):
            raise WireError(f"trailing buffer space: read {self.offset} provided {len(self.raw)}")


def reader(raw: bytes, size_max: int = SIZE_MAX) -> Unpacker:
    """A reader behind the codec version, which every top-level value starts with."""
    if len(raw) > size_max:
        raise WireError(f"byte array exceeds maximum length: {len(raw)} > {size_max}")
    if len(raw) < 2:
        raise WireError("couldn't unpack codec version")
    if raw[:2] != VERSION_BYTES:
        raise WireError("unknown codec version")
    return Unpacker(raw, 2)


def checked_count(count: int) -> int:
    """Return `count` itself, unless no list can be that long."""
    if count > COUNT_MAX:
        raise WireError(f"max slice length exceeded; array length, {count}, exceeds maximum length, {COUNT_MAX}")
    return count


def pack_blob(raw: bytes) -> bytes:
    """Bytes behind their count."""
    return u32(len(raw)) + raw


def pack_string(text: str) -> bytes:
    """A text behind its 16-bit length."""
    raw = utf8(text)
    if len(raw) > 0xFFFF:
        raise WireError(f"a string has at most 65535 bytes, got {len(raw)}")
    return u16(len(raw)) + raw


def pack_u32s(values: tuple[int, ...]) -> bytes:
    """Numbers behind their count."""
    return struct.pack(f">{len(values) + 1}I", len(values), *values)


def pack_arrays(items: tuple[bytes, ...]) -> bytes:
    """Raw arrays of one size behind their count."""
    return u32(len(items)) + b"".join(items)


def pack_varints(numbers: Iterable[int]) -> bytes:
    """Pack numbers with seven bits in each byte, lowest first; the eighth bit says that more follow (LEB128, as in
    protobuf)."""
    packed = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            packed.append(rest & 0x7F | 0x80)
            rest >>= 7
        packed.append(rest)
    return bytes(packed)


def unpack_varints(packed: bytes) -> tuple[int, ...]:
    """Unpack what `pack_varints` packed; a last number without an end is left out."""
    numbers, number, shift = [], 0, 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    return tuple(numbers)
