"""Text, durations and instants as Go prints them, because answers and error messages must equal a Go node's.

Text is as `%q`, `%#U` and encoding/json print it; durations are `1h2m3.5s` or `347.661828ms`, instants
`2026-01-02T03:04:05.000000006Z`.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo

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
    """Write `text` in double quotes, as `%q` prints a string."""
    escapes = {ord(char): _escaped(char, '"') for char in set(text)}  # once per different character: a text can be long
    return '"' + text.translate(escapes) + '"'


def quote_rune(char: str) -> str:
    """One character in single quotes, as `%q` prints a rune."""
    return "'" + _escaped(char, "'") + "'"


def rune_name(code: int) -> str:
    """Write `U+0067 'g'`, as `%#U` prints a rune; the quoted part only where it is printable."""
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
    """Return whether `char` stands for a byte that is not UTF-8 (Python's surrogateescape)."""
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


# -- durations and instants ----------------------------------------------------------------------------------------

MICROSECOND_NS = 1_000
MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000

_UNIT_NS = {
    "ns": 1,
    "us": MICROSECOND_NS,
    "µs": MICROSECOND_NS,  # U+00B5, micro sign
    "μs": MICROSECOND_NS,  # U+03BC, Greek letter mu
    "ms": MILLISECOND_NS,
    "s": SECOND_NS,
    "m": 60 * SECOND_NS,
    "h": 3600 * SECOND_NS,
}
_TERM = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)")
_LIMIT = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_duration(text: str) -> int:
    """Nanoseconds of a Go duration; ValueError carries the text Go's ParseDuration gives."""
    negative = text.startswith("-")
    rest = text[1:] if text.startswith(("-", "+")) else text
    if rest == "0":
        return 0
    if not rest:
        raise _refusal("invalid duration", text)
    total = 0
    while rest:
        term = _TERM.match(rest)
        if term is None or not (term["whole"] or term["fraction"]):
            raise _refusal("invalid duration", text)
        total += _term_ns(term, text)
        if total > _LIMIT:
            raise _refusal("invalid duration", text)
        rest = rest[term.end() :]
    if not negative and total == _LIMIT:
        raise _refusal("invalid duration", text)
    return -total if negative else total


def format_duration(ns: int) -> str:
    """Go's Duration.String: the largest unit below a second, else hours, minutes and seconds."""
    sign, size = ("-", -ns) if ns < 0 else ("", ns)
    if size == 0:
        return "0s"
    if size < MICROSECOND_NS:
        return f"{sign}{size}ns"
    if size < MILLISECOND_NS:
        return f"{sign}{_decimal(size, 3)}µs"
    if size < SECOND_NS:
        return f"{sign}{_decimal(size, 6)}ms"
    minutes, below_minute = divmod(size, 60 * SECOND_NS)
    hours, minutes = divmod(minutes, 60)
    lead = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{lead}{_decimal(below_minute, 9)}s"


def rfc3339_nano(ns_since_epoch: int, zone: tzinfo | None = None) -> str:
    """Go's RFC3339Nano, in the machine's local zone unless one is given."""
    seconds, ns = divmod(ns_since_epoch, SECOND_NS)
    moment = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone)
    fraction = f".{ns:09d}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}{_offset(moment)}"


def _term_ns(term: re.Match[str], text: str) -> int:
    """One number with its unit. The fraction goes through a float, as in Go, to cut at the same nanosecond."""
    digits, unit = term["whole"].lstrip("0"), term["unit"]
    whole = int(digits or "0") if len(digits) <= 19 else _LIMIT + 1
    if whole > _LIMIT:
        raise _refusal("invalid duration", text)
    if unit not in _UNIT_NS:
        raise _refusal(f"unknown unit {_byte_quoted(unit)} in duration" if unit else "missing unit in duration", text)
    unit_ns = _UNIT_NS[unit]
    if whole > _LIMIT // unit_ns:
        raise _refusal("invalid duration", text)
    fraction, scale = 0, 1.0
    for digit in term["fraction"] or "":
        if fraction > (_LIMIT - 1) // 10 or fraction * 10 + int(digit) > _LIMIT:
            break
        fraction, scale = fraction * 10 + int(digit), scale * 10
    return whole * unit_ns + int(float(fraction) * (unit_ns / scale))


def _decimal(size: int, places: int) -> str:
    whole, fraction = divmod(size, 10**places)
    return f"{whole}.{fraction:0{places}d}".rstrip("0").rstrip(".")


def _offset(moment: datetime) -> str:
    offset = moment.utcoffset() or timedelta()
    if not offset:
        return "Z"
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    sign = "-" if offset <= timedelta(minutes=-1) else "+"
    return f"{sign}{hours:02d}:{minutes:02d}"


def _refusal(what: str, text: str) -> ValueError:
    return ValueError(f"time: {what} {_byte_quoted(text)}")


def _byte_quoted(text: str) -> str:
    """Go's quoting in package time: bytes outside printable ASCII as \\xNN."""
    return '"' + "".join(_byte_escaped(char) for char in text) + '"'


def _byte_escaped(char: str) -> str:
    if " " <= char < "\x80":
        return "\\" + char if char in '"\\' else char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
