"""JSON of any depth, read without recursion. Slower than msgspec: for what msgspec refuses for its nesting alone."""

import re
from typing import Any

import msgspec

from icefall.wire.errors import WireError

_TOKEN = re.compile(rb'[ \t\r\n]*+([\[\]{},:]|"(?:[^"\\]|\\.)*+"|[^\s\[\]{},:"]++)', re.DOTALL)
_value = msgspec.json.Decoder()


class _Open:
    """An array or object not closed yet. `key` is the name that waits for its value."""

    __slots__ = ("key", "values")

    def __init__(self, values: "list[Any] | dict[str, Any]") -> None:
        self.values = values
        self.key: str | None = None


def decode(raw: bytes) -> Any:
    """The value. Commas are not checked: what comes here has been read by a strict decoder up to some depth."""
    stack: list[_Open] = []
    at = 0
    result: list[Any] = []
    while match := _TOKEN.match(raw, at):
        at = match.end()
        token = match[1]
        if token in b",:":
            continue
        if token in b"]}":
            if not stack:
                raise WireError("JSON: closed more than was opened")
            stack.pop()
            continue
        value: Any = {} if token == b"{" else [] if token == b"[" else _plain(token)
        _put(stack, result, value)
        if token in b"[{":
            stack.append(_Open(value))
    if stack or len(result) != 1 or raw[at:].strip():
        raise WireError("JSON: ends too early or too late")
    return result[0]


def _plain(token: bytes) -> Any:
    try:
        return _value.decode(token)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(f"JSON: {error}") from error


def _put(stack: list[_Open], result: list[Any], value: Any) -> None:
    if not stack:
        result.append(value)
        return
    top = stack[-1]
    if isinstance(top.values, list):
        top.values.append(value)
    elif top.key is None:
        if not isinstance(value, str):
            raise WireError("JSON: a name must be a string")
        top.key = value
    else:
        top.values[top.key] = value
        top.key = None
