"""A header whose hash is proven by recomputing it: what an upstream says of its chain counts only then."""

import msgspec

from icefall.upstream.client import InvalidAnswer
from icefall.upstream.evm.errors import IncompleteAnswer
from icefall.wire.errors import WireError
from icefall.wire.evm.block import decode_header
from icefall.wire.evm.hashes import header_hash, is_known_layout
from icefall.wire.evm.types import DecodedBlock


def proven_header(raw: msgspec.Raw, number: int, name: str) -> DecodedBlock:
    """The header of block `number` that the upstream `name` sent. InvalidAnswer if its hash is not the one it claims; a
    layout that is not known cannot be checked."""
    try:
        header = decode_header(bytes(raw))
    except WireError as error:
        raise IncompleteAnswer(f"{name} sent block {number} with an invalid {error}") from error
    if header.number != number:
        raise IncompleteAnswer(f"requested block {number}, got block {header.number}")
    if is_known_layout(header) and header_hash(header) != header.block_hash:
        raise InvalidAnswer(f"{name} sent block {number} with a hash that is not that of its header")
    return header
