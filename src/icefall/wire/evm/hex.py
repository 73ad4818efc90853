"""Hex text of Ethereum's JSON-RPC, read strictly.

Python's own readers take more than hex: signs, blanks, underscores, other scripts' digits. A block repeats most of its
texts (addresses, topics, small numbers), so each is read once: the readers are dictionaries that fill themselves.
"""

from icefall.wire.errors import WireError

_SHOWN_MAX = 80


class HexNumbers(dict[str, int]):
    """Numbers that fit 64 bits: heights, gas, nonces, positions, times."""

    def __missing__(self, text: str) -> int:
        value = self[text] = amount(text)
        if value >> 64:
            raise WireError(f"expected a hex number of at most 64 bits, got {text}")
        return value


class HexAmounts(dict[str, int]):
    """Numbers of 256 bits."""

    def __missing__(self, text: str) -> int:
        value = self[text] = amount(text)
        return value


class HexAddresses(dict[str, bytes]):
    def __missing__(self, text: str) -> bytes:
        value = self[text] = fixed(text, 20)
        return value


class HexWords(dict[str, bytes]):
    """Hashes, topics, roots."""

    def __missing__(self, text: str) -> bytes:
        value = self[text] = fixed(text, 32)
        return value


def amount(text: str) -> int:
    """A number of at most 256 bits. Leading zeros are let through: clients pad signatures."""
    if text[:2] == "0x" and 2 < len(text) <= 66 and text.isalnum() and text.isascii():
        try:
            return int(text[2:], 16)
        except ValueError:
            pass
    raise WireError(f"expected a hex number of at most 256 bits, got {shown(text)}")


def fixed(text: str, size: int) -> bytes:
    """Exactly `size` bytes."""
    raw = data(text)
    if len(raw) != size:
        raise WireError(f"expected {size} bytes in hex, got {len(raw)}: {shown(text)}")
    return raw


def data(text: str) -> bytes:
    """Bytes of any length."""
    if text[:2] == "0x":
        try:
            raw = bytes.fromhex(text[2:])
        except ValueError:
            pass
        else:
            if len(raw) * 2 + 2 == len(text):  # otherwise there were blanks in it
                return raw
    raise WireError(f"expected bytes in hex, got {shown(text)}")


def shown(text: str) -> str:
    """A text that came from outside, short and quoted."""
    return repr(text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "...")
