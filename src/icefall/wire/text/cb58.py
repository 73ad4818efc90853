"""CB58: base58 (Bitcoin's alphabet) of a payload followed by the last four bytes of its SHA-256.

Every ID leaves the process through here, so encoding works on ten digits at a time: 58**10 still fits a machine word,
and only one big-number operation is spent per ten digits. Decoding adds up all digits at once.
"""

from hashlib import sha256

from icefall.wire.errors import WireError
from icefall.wire.text.go_text import quote_rune

CHECKSUM_SIZE = 4

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_NO_DIGIT = 255
_DIGITS = bytes(_ALPHABET.find(chr(byte)) & _NO_DIGIT for byte in range(256))  # by character
_PAIR = [high + low for high in _ALPHABET for low in _ALPHABET]
_PAIR_BASE = 58**2
_CHUNK = 10
_CHUNK_BASE = 58**_CHUNK
_LANES_MAX = 64  # digits
# Width of a lane in bits, every other lane of that width, and the base of what it holds.
_LANES = [
    (8 << step, sum(((1 << (8 << step)) - 1) << at for at in range(0, 8 * _LANES_MAX, 16 << step)), 58 ** (1 << step))
    for step in range(6)
]


def checksum(payload: bytes) -> bytes:
    """The four checksum bytes appended to `payload` in every text form."""
    return sha256(payload).digest()[-CHECKSUM_SIZE:]


def encode(payload: bytes) -> str:
    """The CB58 text of `payload`."""
    return base58_encode(payload + sha256(payload).digest()[-4:])


def decode(text: str) -> bytes:
    """The payload of a CB58 text."""
    return without_checksum(base58_decode(text))


def without_checksum(raw: bytes) -> bytes:
    """The payload of `raw`, provided that its checksum is right."""
    if len(raw) < CHECKSUM_SIZE:
        raise WireError("input string is smaller than the checksum size")
    payload = raw[:-CHECKSUM_SIZE]
    if checksum(payload) != raw[-CHECKSUM_SIZE:]:
        raise WireError("invalid input checksum")
    return payload


def base58_encode(raw: bytes) -> str:
    """Plain base58: each leading zero byte is one `1`, the rest is a number in base 58."""
    number = int.from_bytes(raw, "big")
    zeros = len(raw) - len(raw.lstrip(b"\0"))
    parts: list[str] = []
    pair = _PAIR
    while number:
        number, chunk = divmod(number, _CHUNK_BASE)
        chunk, fifth = divmod(chunk, _PAIR_BASE)
        chunk, fourth = divmod(chunk, _PAIR_BASE)
        chunk, third = divmod(chunk, _PAIR_BASE)
        first, second = divmod(chunk, _PAIR_BASE)
        parts.append(pair[first] + pair[second] + pair[third] + pair[fourth] + pair[fifth])
    parts.reverse()
    return "1" * zeros + "".join(parts).lstrip("1")


def base58_decode(text: str) -> bytes:
    """Plain base58 back to bytes."""
    if not text:
        raise WireError("base58 decoding error: zero length string")
    try:
        number = _number(text)
    except ValueError as error:
        raise WireError(f"base58 decoding error: {_digit_error(text)}") from error
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _number(text: str) -> int:
    """Halving keeps a megabyte of digits from taking quadratic time."""
    if len(text) <= _LANES_MAX:
        return _short_number(text)
    middle = len(text) // 2
    shift: int = 58 ** (len(text) - middle)
    return _number(text[:middle]) * shift + _number(text[middle:])


def _short_number(text: str) -> int:
    """A byte per digit, all of which are added up at once: neighbours become pairs, pairs fours, and so on."""
    digits = text.encode("ascii", "replace").translate(_DIGITS)
    if _NO_DIGIT in digits:
        raise ValueError(text)
    number = int.from_bytes(digits, "big")
    for bits, mask, base in _LANES:
        number = (number & mask) + (number >> bits & mask) * base
    return number


def _digit_error(text: str) -> str:
    bad = next(char for char in text if char not in _ALPHABET)
    return "High-bit set on invalid digit" if ord(bad) > 127 else f"Invalid base58 digit ({quote_rune(bad)})"
