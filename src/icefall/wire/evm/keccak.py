"""Keccak-256, Ethereum's hash (not the later SHA3-256, which pads differently)."""

from tiny_keccak import keccak256

__all__ = ["keccak256"]
