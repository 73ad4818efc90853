"""Call data, event logs and error data, decoded by a declaration.

Values come as a flat list with the path of each (`message.receipts[0].nonce`), so that nothing nests. Whoever wrote the
data may be anybody: data that is not exactly of its types is refused as a whole, and so is data with more values than
are shown. All that is read of the data is no more than its length, so parts that overlap cannot make a long list.
"""

from collections.abc import Iterator

import msgspec

from icefall.wire.evm.abi import WORD, AbiType, Declaration, Parameter
from icefall.wire.evm.hex import checksummed

VALUES_MAX = 256
PATH_MAX = 256  # characters
_ADDRESS_BITS = 160
_FUNCTION_SIZE = 24


class DecodedValue(msgspec.Struct, frozen=True, gc=False):
    """One value as text: numbers in decimal, bytes in hex, addresses with their checksum; an empty array is `[]`.

    `is_hash`: the log holds only the hash of an indexed value of any length.
    """

    name: str
    type: str
    value: str
    is_indexed: bool = False
    is_hash: bool = False


class _Invalid(Exception):
    """Data that is not of its types."""


def decode_call(declared: Declaration, data: bytes) -> list[DecodedValue] | None:
    """Return the arguments of call data or error data, which begins with the selector of `declared`; None where it is
    not of these types. More data may follow, as compilers allow it."""
    decoder = _Decoder(data[4:])
    try:
        decoder.read_tuple(declared.inputs, 0, "")
    except _Invalid:
        return None
    return decoder.found


def decode_output(declared: Declaration, data: bytes) -> list[DecodedValue] | None:
    """Return what a function returned; None where it is not of the types of its outputs."""
    decoder = _Decoder(data)
    try:
        decoder.read_tuple(declared.outputs, 0, "")
    except _Invalid:
        return None
    return decoder.found


def decode_event(declared: Declaration, topics: tuple[bytes, ...], data: bytes) -> list[DecodedValue] | None:
    """Return the arguments of a log whose first topic is that of `declared`, in the order of their declaration; None
    where it has another number of topics or is not of these types."""
    indexed = [one for one in declared.inputs if one.indexed]
    if len(indexed) != len(topics) - 1:
        return None
    decoder, remaining = _Decoder(data), iter(topics[1:])
    places = _places([one for one in declared.inputs if not one.indexed])
    try:
        for position, one in enumerate(declared.inputs):
            name = one.name or str(position)
            if one.indexed:
                decoder.found.append(_topic_value(name, one.type, next(remaining)))
            else:
                decoder.read_part(one.type, 0, next(places), name)
    except _Invalid:
        return None
    return decoder.found


def _places(parts: list[Parameter]) -> Iterator[int]:
    """Yield where the head of each part is."""
    at = 0
    for part in parts:
        yield at
        at += part.type.head_size


def _topic_value(name: str, kind: AbiType, topic: bytes) -> DecodedValue:
    if kind.is_dynamic or not kind.is_elementary:
        return DecodedValue(name, kind.text, f"0x{topic.hex()}", True, True)
    return DecodedValue(name, kind.text, _word_text(kind.text, topic), True)


class _Decoder:
    """Reads values of one encoding. `_unread`: bytes that may still be read, each of them once."""

    def __init__(self, data: bytes) -> None:
        self.found: list[DecodedValue] = []
        self._data = data
        self._unread = len(data)

    def read_tuple(self, parts: tuple[Parameter, ...], start: int, path: str) -> None:
        at = start
        for position, part in enumerate(parts):
            name = part.name or str(position)
            self.read_part(part.type, start, at, f"{path}.{name}" if path else name)
            at += part.type.head_size

    def read_part(self, kind: AbiType, start: int, at: int, path: str) -> None:
        """Read the value whose head is at `at`; a dynamic one is at an offset from `start`, which its head says."""
        if kind.is_dynamic:
            at = start + int.from_bytes(self._take(at, WORD), "big")
        if kind.is_elementary:
            self._add(path, kind.text, self._text(kind, at))
        elif kind.item is not None:
            self._read_array(kind, kind.item, at, path)
        else:
            self.read_tuple(kind.parts, at, path)

    def _read_array(self, kind: AbiType, item: AbiType, start: int, path: str) -> None:
        count = kind.count
        if count is None:
            count = int.from_bytes(self._take(start, WORD), "big")
            start += WORD
        if count > VALUES_MAX:
            raise _Invalid
        if not count:
            self._add(path, kind.text, "[]")
        for index in range(count):
            self.read_part(item, start, start + index * item.head_size, f"{path}[{index}]")

    def _add(self, path: str, kind: str, value: str) -> None:
        if len(self.found) >= VALUES_MAX or len(path) > PATH_MAX:
            raise _Invalid
        self.found.append(DecodedValue(path, kind, value))

    def _text(self, kind: AbiType, at: int) -> str:
        if not kind.is_dynamic:
            return _word_text(kind.text, self._take(at, WORD))
        size = int.from_bytes(self._take(at, WORD), "big")
        content = self._take(at + WORD, size)
        return content.decode("utf-8", "replace") if kind.text == "string" else f"0x{content.hex()}"

    def _take(self, at: int, size: int) -> bytes:
        if size > self._unread or at + size > len(self._data):
            raise _Invalid
        self._unread -= size
        return self._data[at : at + size]


def _word_text(kind: str, word: bytes) -> str:
    """Write the value of one word, which has to be exactly one that a compiler would write for this type."""
    number = int.from_bytes(word, "big")
    if kind == "address":
        if number >> _ADDRESS_BITS:
            raise _Invalid
        return checksummed(word[12:])
    if kind == "bool":
        if number > 1:
            raise _Invalid
        return "true" if number else "false"
    if kind.startswith("uint"):
        if number >> int(kind[4:]):
            raise _Invalid
        return str(number)
    if kind.startswith("int"):
        signed, limit = int.from_bytes(word, "big", signed=True), 1 << int(kind[3:]) - 1
        if not -limit <= signed < limit:
            raise _Invalid
        return str(signed)
    size = _FUNCTION_SIZE if kind == "function" else int(kind[5:])
    if any(word[size:]):
        raise _Invalid
    return f"0x{word[:size].hex()}"
