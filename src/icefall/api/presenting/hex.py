"""Addresses and hashes as hex strings."""

from functools import lru_cache

from icefall.wire.evm.hex import checksummed

# A page repeats the same few addresses, and a checksum costs more than everything else of a row.
address_text = lru_cache(maxsize=1 << 16)(checksummed)


def hash_text(raw: bytes) -> str:
    return "0x" + raw.hex()
