"""Keccak-256, Ethereum's hash (not the later SHA3-256, which pads differently)."""

from Crypto.Hash import keccak


def keccak256(raw: bytes) -> bytes:
    """32 bytes."""
    return keccak.new(data=raw, digest_bits=256).digest()
