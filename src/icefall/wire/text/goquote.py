"""Text as Go's `%q` and `%#U` print it, because error messages echo what a caller sent the way a Go node would."""

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


def quote(text: str) -> str:
    """`text` in double quotes, as `%q` prints a string."""
    return '"' + "".join(_escaped(char, '"') for char in text) + '"'


def quote_rune(char: str) -> str:
    """One character in single quotes, as `%q` prints a rune."""
    return "'" + _escaped(char, "'") + "'"


def rune_name(code: int) -> str:
    """`U+0067 'g'`, as `%#U` prints a rune; the quoted part only where it is printable."""
    char = chr(code)
    return f"U+{code:04X} '{char}'" if char.isprintable() else f"U+{code:04X}"


def utf8(text: str) -> bytes:
    """The bytes Go would hold: raw bytes that Python carries as surrogates come back, other surrogates are U+FFFD."""
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
