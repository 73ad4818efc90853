"""JSON that msgspec refuses: unusual requests, and answers that nest too deeply.

The scanner is for requests with unusual spellings, trailing bytes, deep nesting or invalid UTF-8. It follows the rules
of the existing node's decoder (first value decides, nesting up to 10,000, invalid UTF-8 tolerated inside strings) and
gives its error texts. It does not recurse and builds no values: it only finds the bounds of values.

msgspec is tried first because it is many times faster. A body that it refuses and that is longer than SCAN_MAX gets
msgspec's error text instead of the node's: scanning it byte by byte in Python would block all other requests.

`CutJson` is for answers: EVM calls may go 1,024 deep, and the sender of a transaction decides how deep. The text is cut
into pieces of limited depth, in one pass and without recursion. msgspec reads each piece; a string with the hash of the
whole text marks where a deeper one was cut out.
"""

import json
import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.ids import hash256
from icefall.wire.text.go_text import quote

MAX_DEPTH = 10_000
SCAN_MAX = 64 << 10

_BLANK = b" \t\r\n"
_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_any = msgspec.json.Decoder(msgspec.Raw)
_array = msgspec.json.Decoder(list[msgspec.Raw])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NOT_TAKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class JsonError(WireError):
    """Not JSON; the text is the node's."""


def _unexpected(data: bytes, at: int, context: str) -> JsonError:
    if at >= len(data):
        return JsonError("unexpected EOF")
    shown = {"'": "\\'", '"': '"'}.get(chr(data[at])) or quote(chr(data[at]))[1:-1]
    return JsonError(f"invalid character '{shown}' {context}")


def _space(data: bytes, at: int) -> int:
    match = _SPACE.match(data, at)
    return match.end() if match else at


def _string_end(data: bytes, at: int) -> int:
    match = _STRING.match(data, at)
    if match:
        return match.end()
    position = at + 1
    while position < len(data):  # find what stopped the pattern, for the text
        byte = data[position]
        if byte < 32:
            raise _unexpected(data, position, "in string literal")
        if byte == 0x5C:
            position += 1
            if position < len(data) and data[position] == 0x75:
                for digit in range(position + 1, position + 5):
                    if digit >= len(data) or data[digit : digit + 1] not in b"0123456789abcdefABCDEF":
                        raise _unexpected(data, digit, "in \\u hexadecimal character escape")
            elif position >= len(data) or data[position : position + 1] not in b'"\\/bfnrt':
                raise _unexpected(data, position, "in string escape code")
        position += 1
    raise JsonError("unexpected EOF")


def _number_end(data: bytes, at: int) -> int:
    match = _NUMBER.match(data, at)
    if not match:
        raise _unexpected(data, at + 1, "in numeric literal")
    end = match.end()
    follow = data[end : end + 1]
    if follow == b"." and b"." not in match[0] and b"e" not in match[0].lower():
        raise _unexpected(data, end + 1, "after decimal point in numeric literal")
    if follow in (b"e", b"E") and b"e" not in match[0].lower():
        sign = data[end + 1 : end + 2] in (b"+", b"-")
        raise _unexpected(data, end + 1 + sign, "in exponent of numeric literal")
    return end


def _scalar_end(data: bytes, at: int) -> int:
    first = data[at : at + 1]
    if first == b'"':
        return _string_end(data, at)
    if first in _LITERALS:
        word = _LITERALS[first]
        for i in range(1, len(word)):
            if data[at + i : at + i + 1] != word[i : i + 1]:
                raise _unexpected(data, at + i, f"in literal {word.decode()} (expecting '{chr(word[i])}')")
        return at + len(word)
    if first and first in b"-0123456789":
        return _number_end(data, at)
    raise _unexpected(data, at, "looking for beginning of value")


def value_end(data: bytes, at: int) -> int:
    """Return where the value that begins at `at` (no space before it) ends."""
    stack: list[int] = []  # the closing byte each open container waits for
    while True:
        opener = data[at : at + 1]
        if opener in (b"{", b"["):
            if len(stack) == MAX_DEPTH:
                raise JsonError(f"invalid character '{opener.decode()}' exceeded max depth")
            closer = 0x7D if opener == b"{" else 0x5D
            at = _space(data, at + 1)
            if data[at : at + 1] != bytes((closer,)):
                stack.append(closer)
                at = _member(data, at) if closer == 0x7D else at
                continue
            at += 1
        else:
            at = _scalar_end(data, at)
        while stack:  # a value ended: go on in its container, or close it
            at = _space(data, at)
            if data[at : at + 1] == b",":
                at = _space(data, at + 1)
                at = _member(data, at) if stack[-1] == 0x7D else at
                break
            if at >= len(data) or data[at] != stack[-1]:
                raise _unexpected(data, at, _after(stack[-1]))
            stack.pop()
            at += 1
        else:
            return at


def _after(closer: int) -> str:
    return "after object key:value pair" if closer == 0x7D else "after array element"


def _member(data: bytes, at: int) -> int:
    """Past `"key" :`, to where the member's value begins."""
    if data[at : at + 1] != b'"':
        raise _unexpected(data, at, "looking for beginning of object key string")
    at = _space(data, _string_end(data, at))
    if data[at : at + 1] != b":":
        raise _unexpected(data, at, "after object key")
    return _space(data, at + 1)


def first_value(data: bytes) -> tuple[bytes, bytes]:
    """The first JSON value of a body, and what follows it. `EOF` for a blank body."""
    try:
        _any.decode(data)
        return data.strip(_BLANK), b""
    except _NOT_TAKEN as error:
        if len(data) > SCAN_MAX:
            return _first_of_long(data, error)
    at = _space(data, 0)
    if at == len(data):
        raise JsonError("EOF")
    end = value_end(data, at)
    return data[at:end], data[end:].strip(_BLANK)


def _first_of_long(data: bytes, error: Exception) -> tuple[bytes, bytes]:
    trailing = _TRAILING.search(str(error))
    if not trailing:
        raise JsonError("nested too deeply" if isinstance(error, RecursionError) else str(error)) from error
    end = int(trailing[1]) - 1  # it counts the first byte too many
    return data[:end].strip(_BLANK), data[end:]


def members(value: bytes) -> list[tuple[str, bytes]]:
    """The members of an object that `first_value` has passed, in order, values raw."""
    try:
        found = [(key, bytes(raw)) for key, raw in _object.decode(value).items()]
    except _NOT_TAKEN:
        return _members(value)
    # a dictionary has forgotten a key's first value, and with more colons than keys there may have been one
    return found if value.count(b":") == len(found) or len(value) > SCAN_MAX else _members(value)


def distinct_members(value: bytes) -> dict[str, msgspec.Raw] | None:
    """The same members where it takes one pass to read them and no key comes twice, as nearly always; else None."""
    try:
        found = _object.decode(value)
    except _NOT_TAKEN:
        return None
    return found if value.count(b":") == len(found) else None


def _members(value: bytes) -> list[tuple[str, bytes]]:
    found = []
    at = _space(value, 1)
    while value[at : at + 1] != b"}":
        key = string_of(value[at : _string_end(value, at)])
        at = _member(value, at)
        end = value_end(value, at)
        found.append((key, value[at:end]))
        at = _space(value, end)
        if value[at : at + 1] == b",":
            at = _space(value, at + 1)
    return found


def elements(value: bytes) -> list[bytes]:
    """The elements of an array that `first_value` has passed, raw."""
    try:
        return [bytes(raw) for raw in _array.decode(value)]
    except _NOT_TAKEN:
        return _elements(value)


def _elements(value: bytes) -> list[bytes]:
    found = []
    at = _space(value, 1)
    while value[at : at + 1] != b"]":
        end = value_end(value, at)
        found.append(value[at:end])
        at = _space(value, end)
        if value[at : at + 1] == b",":
            at = _space(value, at + 1)
    return found


def string_of(raw: bytes) -> str:
    """The text of a raw JSON string; what is no valid Unicode becomes U+FFFD."""
    text = json.loads(raw.decode("utf-8", "replace"))
    return str(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_OUTSIDE = re.compile(rb'("(?:[^"\\]++|\\.)*+")|[ \t\r\n]++', re.DOTALL)
_HTML = {char.encode(): b"\\u00%02x" % ord(char) for char in "<>&"}


def compact(raw: bytes) -> bytes:
    """A raw value as the node echoes it: no white space outside strings, `<`, `>` and `&` escaped."""
    tight = _OUTSIDE.sub(rb"\1", raw)
    for char, escaped in _HTML.items():
        tight = tight.replace(char, escaped)
    return tight


def json_type(raw: bytes) -> str:
    """Return what the node calls a value of this type in its texts."""
    return {0x7B: "object", 0x5B: "array", 0x22: "string", 0x74: "bool", 0x66: "bool", 0x6E: "null"}.get(
        raw[0], "number"
    )


# -- deep answers --------------------------------------------------------------------------------------------------

_T = TypeVar("_T")
_PIECE_DEPTH = 100
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


class _Piece(NamedTuple):
    text: bytes  # with marks for what was cut out of it
    start: int  # of the whole, in the original
    end: int


class CutJson:
    """A text cut into pieces, of which `text` is the outermost. DecodeError if brackets do not match; everything else
    is left to msgspec."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._key = hash256(raw).hex()  # a text cannot contain its own hash
        self._pieces: list[_Piece] = []
        self.text = self._cut(raw)

    def _cut(self, raw: bytes) -> bytes:
        unfinished: list[list[bytes]] = [[]]  # the text so far of each piece we are in, outermost first
        begins: list[int] = []  # of the same, without the outermost
        depth = copied = 0
        for match in _TOKEN.finditer(raw):
            token = raw[match.start()]
            if token in b"[{":
                if depth and depth % _PIECE_DEPTH == 0:
                    unfinished[-1].append(raw[copied : match.start()])
                    unfinished.append([])
                    copied = match.start()
                    begins.append(copied)
                depth += 1
            elif token in b"]}":
                depth -= 1
                if depth > 0 and depth % _PIECE_DEPTH == 0:
                    text = b"".join((*unfinished.pop(), raw[copied : match.end()]))
                    copied = match.end()
                    unfinished[-1].append(b'"%s-%d"' % (self._key.encode(), len(self._pieces)))
                    self._pieces.append(_Piece(text, begins.pop(), copied))
                elif depth < 0:
                    break
        if depth:
            raise msgspec.DecodeError("JSON: brackets do not match")
        return b"".join((*unfinished[0], raw[copied:]))

    def piece(self, mark: str) -> bytes:
        """Return what was cut out where `mark` is now; marks may be in it in turn."""
        key, _, number = mark.partition("-")
        if key != self._key:
            raise WireError("JSON: a string where an array or object belongs")
        return self._pieces[int(number)].text

    def restored(self, text: bytes | msgspec.Raw) -> bytes:
        """Return a part of the outermost piece as it was in the original."""

        def original(mark: re.Match[bytes]) -> bytes:
            piece = self._pieces[int(mark[1])]
            return self._raw[piece.start : piece.end]

        return re.sub(rb'"%s-(\d+)"' % self._key.encode(), original, bytes(text))


def decode_any_depth(
    raw: bytes | msgspec.Raw, decode: Callable[[bytes | msgspec.Raw], _T]
) -> tuple[_T, CutJson | None]:
    """Run `decode` on the text as it is or, where it is too deep, on its outermost piece."""
    try:
        return decode(raw), None
    except RecursionError:
        cut = CutJson(bytes(raw))
        return decode(cut.text), cut
