"""Positions in a chain as one integer that sorts like the chain: the block number, then an index inside the block."""

BITS = 24  # transactions, or logs, of one block
PER_BLOCK = 1 << BITS
INDEX_BITS = PER_BLOCK - 1
BLOCK_MAX = (1 << (63 - BITS)) - 1


def position_of(block: int, index: int) -> int:
    """The position of transaction or log number `index` of a block."""
    return block << BITS | index


def block_of(position: int) -> int:
    return position >> BITS


def index_of(position: int) -> int:
    return position & INDEX_BITS


def above(block: int) -> int:
    """The first position that lies in a later block."""
    return (block + 1) << BITS
