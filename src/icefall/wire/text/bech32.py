"""Bech32 as the node's address decoder treats it, which is more lenient than BIP 173, and the addresses written in it.

It takes bech32m checksums too, takes all-upper-case text, and fills an incomplete last byte with zeros. A full address
is a chain's alias or ID, a dash, and the bech32 form of 20 bytes.
"""

from base64 import b32encode
from functools import lru_cache

from icefall.wire.errors import WireError
from icefall.wire.text.go_text import utf8

_CHARSET = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUE = {char: value for value, char in enumerate(_CHARSET)}
_RFC4648 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_TO_VALUES = bytes.maketrans(_RFC4648, bytes(range(32)))
_TO_CHARS = bytes.maketrans(bytes(range(32)), _CHARSET)

_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_STEP = [0] * 32
for _top in range(32):
    for _bit, _term in enumerate(_GENERATOR):
        if _top >> _bit & 1:
            _STEP[_top] ^= _term

_BECH32 = 1
_BECH32M = 0x2BC830A3
_LENGTH_MIN, _LENGTH_MAX = 8, 90
_CHECKSUM_LENGTH = 6


def encode(hrp: str, payload: bytes) -> str:
    """Bech32 text of `payload` under the human-readable part `hrp`."""
    values = b32encode(payload).rstrip(b"=").translate(_TO_VALUES)
    return f"{hrp}1{values.translate(_TO_CHARS).decode()}{_checksum(hrp, values, _BECH32)}"


def decode(text: str) -> tuple[str, bytes]:
    """The human-readable part and the payload of a bech32 text."""
    raw = utf8(text)
    if not _LENGTH_MIN <= len(raw) <= _LENGTH_MAX:
        raise WireError(f"invalid bech32 string length {len(raw)}")
    _check_characters(raw)
    raw = raw.lower()
    separator = raw.rfind(b"1")
    if separator < 1 or separator + 1 + _CHECKSUM_LENGTH > len(raw):
        raise WireError(f"invalid separator index {separator}")
    hrp, data = raw[:separator].decode(), raw[separator + 1 :]
    stray = next((byte for byte in data if byte not in _VALUE), None)
    if stray is not None:
        raise WireError(f"invalid character not part of charset: {stray}")
    values = bytes(_VALUE[byte] for byte in data)
    if _polymod(values, _hrp_state(hrp)) not in (_BECH32, _BECH32M):
        raise WireError(_checksum_error(hrp, values[:-_CHECKSUM_LENGTH], data))
    return hrp, _regroup(values[:-_CHECKSUM_LENGTH])


def _check_characters(raw: bytes) -> None:
    lower = upper = False
    for byte in raw:
        if not 33 <= byte <= 126:
            raise WireError(f"invalid character in string: '{chr(byte)}'")
        lower = lower or 97 <= byte <= 122
        upper = upper or 65 <= byte <= 90
        if lower and upper:
            raise WireError("string not all lowercase or all uppercase")


def _checksum_error(hrp: str, values: bytes, data: bytes) -> str:
    plain, modified = _checksum(hrp, values, _BECH32), _checksum(hrp, values, _BECH32M)
    actual = data[-_CHECKSUM_LENGTH:].decode()
    # The node runs both checksums together in the second field; clients have seen it that way, so do we.
    return f"invalid checksum (expected (bech32={plain}, bech32m={plain}{modified}), got {actual})"


def _checksum(hrp: str, values: bytes, constant: int) -> str:
    state = _polymod(values + bytes(_CHECKSUM_LENGTH), _hrp_state(hrp)) ^ constant
    return bytes(_CHARSET[state >> shift & 31] for shift in (25, 20, 15, 10, 5, 0)).decode()


@lru_cache(maxsize=64)
def _hrp_state(hrp: str) -> int:
    codes = hrp.encode()
    return _polymod(bytes(code >> 5 for code in codes) + b"\0" + bytes(code & 31 for code in codes), 1)


def _polymod(values: bytes, state: int) -> int:
    step = _STEP
    for value in values:
        state = (state & 0x1FFFFFF) << 5 ^ value ^ step[state >> 25]
    return state


def _regroup(values: bytes) -> bytes:
    """Five-bit groups to bytes, the last one filled up with zero bits."""
    number = 0
    for value in values:
        number = number << 5 | value
    bits = 5 * len(values)
    padding = -bits % 8
    return (number << padding).to_bytes((bits + padding) // 8, "big")


@lru_cache(maxsize=16384)  # a ledger's addresses recur, and a checksum costs more than a lookup
def address_text(chain: str, hrp: str, address: bytes) -> str:
    """Write an address with its chain: `X-local1...`."""
    return f"{chain}-{encode(hrp, address)}"


_decode_again = lru_cache(maxsize=16384)(decode)  # takes 90 characters at most, so the cache stays small


def address_from_text(text: str) -> tuple[str, str, bytes]:
    """Return chain, human-readable part and payload. Which chain and network they must be, and that the payload has 20
    bytes, is the caller's to check: a node checks in that order."""
    chain, dash, rest = text.partition("-")
    if not dash:
        raise WireError("no separator found in address")
    hrp, payload = _decode_again(rest)
    return chain, hrp, payload
