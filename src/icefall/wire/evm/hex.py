"""Hex text of Ethereum's JSON-RPC, read strictly, and addresses as text whose case is a checksum (EIP-55).

Python's own readers take more than hex: signs, blanks, underscores, other scripts' digits. A block repeats most of its
texts (addresses, topics, small numbers), so each is read once: the readers are dictionaries that fill themselves.
"""

from icefall.wire.errors import WireError
from icefall.wire.evm.rlp import keccak256

_SHOWN_MAX = 80
ADDRESS_SIZE = 20
_CASE = 0x20  # the bit in which small letters and capitals differ
_LETTERS = bytes(_CASE if chr(byte) in "abcdef" else 0 for byte in range(256))
_HIGH = bytes(_CASE if chr(byte) in "89abcdef" else 0 for byte in range(256))


class HexNumbers(dict[str, int]):
    """A reader of numbers that fit 64 bits: heights, gas, nonces, positions, times."""

    def __missing__(self, text: str) -> int:
        value = amount(text)
        if value >> 64:
            raise WireError(f"expected a hex number of at most 64 bits, got {text}")
        self[text] = value
        return value


class HexAmounts(dict[str, int]):
    """A reader of numbers of 256 bits."""

    def __missing__(self, text: str) -> int:
        value = self[text] = amount(text)
        return value


class _HexFixed(dict[str, bytes]):
    size: int  # bytes

    def __missing__(self, text: str) -> bytes:
        # What `fixed` does, without calling it: half of the texts of a block are read here.
        size = self.size
        if text[:2] == "0x" and len(text) == 2 + 2 * size:
            try:
                value = bytes.fromhex(text[2:])
            except ValueError:
                pass
            else:
                if len(value) == size:
                    self[text] = value
                    return value
        return fixed(text, size)


class HexAddresses(_HexFixed):
    size = 20


class HexWords(_HexFixed):
    """The readers of words of 32 bytes: hashes, topics, roots."""

    size = 32


class HexTexts:
    """The readers of one block. Its parts share them: each names the same accounts and transactions."""

    __slots__ = ("address", "amount", "count", "word")

    def __init__(self) -> None:
        self.count = HexNumbers()
        self.amount = HexAmounts()
        self.address = HexAddresses()
        self.word = HexWords()


class HexReader:
    """A part of a block, read with what its parts share."""

    __slots__ = ("address", "amount", "count", "word")

    def __init__(self, texts: HexTexts) -> None:
        self.count = texts.count
        self.amount = texts.amount
        self.address = texts.address
        self.word = texts.word


def amount(text: str) -> int:
    """Read a number of at most 256 bits. Leading zeros are let through: clients pad signatures."""
    # After 0x, what int() takes besides digits is underscores, blanks at the end and other scripts' digits.
    if text[:2] == "0x" and 2 < len(text) <= 66 and text.isascii() and "_" not in text and text[-1] > " ":
        try:
            return int(text, 16)
        except ValueError:
            pass
    raise WireError(f"expected a hex number of at most 256 bits, got {shown(text)}")


def minimal(text: str) -> bytes:
    """Read a number of at most 256 bits that is only hashed, as bytes without leading zeros, which is how RLP has
    it."""
    if len(text) == 66 and text[:2] == "0x":
        try:
            raw = bytes.fromhex(text[2:])
        except ValueError:
            pass
        else:
            if len(raw) == 32:  # otherwise there were blanks in it
                return raw if raw[0] else raw.lstrip(b"\0")
    value = amount(text)
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def fixed(text: str, size: int) -> bytes:
    """Read exactly `size` bytes."""
    if text[:2] == "0x" and len(text) == 2 * size + 2:
        try:
            raw = bytes.fromhex(text[2:])
        except ValueError:
            pass
        else:
            if len(raw) == size:  # otherwise there were blanks in it
                return raw
    raise WireError(f"expected {size} bytes in hex, got {len(data(text))}: {shown(text)}")


def data(text: str) -> bytes:
    """Read bytes of any length."""
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
    """Return a text that came from outside, short and quoted."""
    return repr(text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "...")


def checksummed(address: bytes) -> str:
    """Write an address with the checksum of EIP-55: a letter is a capital where the digit at its position in the hash
    of the small ones is 8 or more."""
    small = address.hex().encode()
    digits = keccak256(small).hex()[:40].encode()
    letters, high = int.from_bytes(small.translate(_LETTERS), "big"), int.from_bytes(digits.translate(_HIGH), "big")
    return "0x" + (int.from_bytes(small, "big") ^ (letters & high)).to_bytes(40, "big").decode()
