"""Full addresses: a chain's alias or ID, a dash, and the bech32 form of 20 bytes."""

from functools import lru_cache

from icefall.wire.errors import WireError
from icefall.wire.text import bech32


@lru_cache(maxsize=16384)  # a ledger's addresses recur, and a checksum costs more than a lookup
def address_text(chain: str, hrp: str, address: bytes) -> str:
    """`X-local1...`"""
    return f"{chain}-{bech32.encode(hrp, address)}"


_decoded = lru_cache(maxsize=16384)(bech32.decode)  # takes 90 characters at most, so what is kept stays small


def address_from_text(text: str) -> tuple[str, str, bytes]:
    """Chain, human-readable part and payload. Which chain and network they must be, and that the payload has 20 bytes,
    is the caller's to check: a node checks in that order."""
    chain, dash, rest = text.partition("-")
    if not dash:
        raise WireError("no separator found in address")
    hrp, payload = _decoded(rest)
    return chain, hrp, payload
