"""Keccak-256, Ethereum's hash (not the later SHA3-256, which pads differently)."""

from sha3 import keccak_256  # type: ignore[import-untyped]


def keccak256(raw: bytes) -> bytes:
    """32 bytes."""
    digest: bytes = keccak_256(raw).digest()
    return digest
