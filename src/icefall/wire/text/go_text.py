"""Text as Go's `%q`, `%#U` and encoding/json print it, because answers and error messages must equal a Go node's."""

import re

_NAMED = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
}
REPLACEMENT = "\ufffd"
_JSON_SPECIAL = re.compile('["\\\\\x00-\x1f<>&\u2028\u2029\ud800-\udfff]')
_JSON_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote(text: str) -> str:
    """`text` in double quotes, as `%q` prints a string."""
    escapes = {ord(char): _escaped(char, '"') for char in set(text)}  # once per different character: a text can be long
    return '"' + text.translate(escapes) + '"'


def quote_rune(char: str) -> str:
    """One character in single quotes, as `%q` prints a rune."""
    return "'" + _escaped(char, "'") + "'"


def rune_name(code: int) -> str:
    """`U+0067 'g'`, as `%#U` prints a rune; the quoted part only where it is printable."""
    char = chr(code)
    return f"U+{code:04X} '{char}'" if char.isprintable() else f"U+{code:04X}"


def json_string(text: str) -> str:
    """A JSON string, quotes included: `<`, `>` and `&` are escaped too, bytes that are not UTF-8 become U+FFFD."""
    return '"' + _JSON_SPECIAL.sub(_json_escaped, text) + '"'


def utf8(text: str) -> bytes:
    """The bytes Go would hold: surrogates that stand for raw bytes become those bytes, other surrogates U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if _is_lone_surrogate(char) else char for char in text).encode(
            errors="surrogateescape"
        )


def from_utf8(raw: bytes) -> str:
    """The reverse of `utf8`, for any bytes whatsoever."""
    return raw.decode(errors="surrogateescape")


def is_raw_byte(char: str) -> bool:
    """Whether `char` stands for a byte that is not UTF-8 (Python's surrogateescape)."""
    return "\udc80" <= char <= "\udcff"


def _is_lone_surrogate(char: str) -> bool:
    return "\ud800" <= char <= "\udfff" and not is_raw_byte(char)


def _escaped(char: str, delimiter: str) -> str:
    if char == delimiter:
        return "\\" + char
    if char in _NAMED:
        return _NAMED[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    if is_raw_byte(char):
        return f"\\x{code - 0xDC00:02x}"
    if _is_lone_surrogate(char):
        return REPLACEMENT
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escaped(match: re.Match[str]) -> str:
    char = match[0]
    if char in _JSON_SHORT:
        return _JSON_SHORT[char]
    if "\ud800" <= char <= "\udfff":
        return "\\ufffd"
    return f"\\u{ord(char):04x}"
