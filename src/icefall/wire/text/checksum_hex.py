"""The node's hex encodings: `0x` and hex digits, with (`hex`, `hexc`) or without (`hexnc`) four bytes of checksum."""

import binascii
from hashlib import sha256

from icefall.wire.errors import WireError
from icefall.wire.text.cb58 import CHECKSUM_SIZE, without_checksum
from icefall.wire.text.go_text import rune_name, utf8

ENCODINGS = ("hex", "hexc", "hexnc", "json")

_CHECKED = frozenset({"hex", "hexc"})
_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")


def encoding_name(text: str) -> str:
    """The canonical name of an encoding; any case is accepted."""
    name = text.lower()
    if name not in ENCODINGS:
        raise WireError(f"encoding must be one of {', '.join(ENCODINGS)}, got {text!r}")
    return name


def encode(payload: bytes, encoding: str = "hex") -> str:
    """Write `payload` as text. `json` is not a text of bytes, so it is refused like the node refuses it."""
    if encoding in _CHECKED:
        return f"0x{payload.hex()}{sha256(payload).hexdigest()[-2 * CHECKSUM_SIZE :]}"
    if encoding == "hexnc":
        return "0x" + payload.hex()
    raise WireError("unsupported encoding in method")


def decode(text: str, encoding: str = "hex") -> bytes:
    """Read the bytes of a text. The empty text is no bytes in every encoding, even in `json`."""
    if not text:
        return b""
    if encoding not in _CHECKED and encoding != "hexnc":
        raise WireError("unsupported encoding in method")
    if not text.startswith("0x"):
        raise WireError("missing 0x prefix to hex encoding")
    raw = _unhex(text[2:])
    return raw if encoding == "hexnc" else without_checksum(raw)


def _unhex(digits: str) -> bytes:
    # unhexlify and not bytes.fromhex, which skips white space.
    try:
        return binascii.unhexlify(digits)
    except ValueError as error:
        bad = next((byte for byte in utf8(digits) if byte not in _HEX_DIGITS), None)
        reason = "odd length hex string" if bad is None else f"invalid byte: {rune_name(bad)}"
        raise WireError(f"encoding/hex: {reason}") from error
