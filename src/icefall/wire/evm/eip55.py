"""Ethereum addresses as text: 0x and 40 hex digits whose case is a checksum (EIP-55)."""

from icefall.wire.evm.keccak import keccak256

ADDRESS_SIZE = 20
_CASE = 0x20  # the bit in which small letters and capitals differ
_LETTERS = bytes(_CASE if chr(byte) in "abcdef" else 0 for byte in range(256))
_HIGH = bytes(_CASE if chr(byte) in "89abcdef" else 0 for byte in range(256))


def checksummed(address: bytes) -> str:
    """A letter is a capital where the digit at its position in the hash of the small ones is 8 or more."""
    small = address.hex().encode()
    digits = keccak256(small).hex()[:40].encode()
    letters, high = int.from_bytes(small.translate(_LETTERS), "big"), int.from_bytes(digits.translate(_HIGH), "big")
    return "0x" + (int.from_bytes(small, "big") ^ (letters & high)).to_bytes(40, "big").decode()
