"""Positions in a chain as one integer that sorts like the chain: the block, then a place inside it."""

BITS = 24  # transactions, or logs, of one block
PER_BLOCK = 1 << BITS
BLOCK_MAX = (1 << (63 - BITS)) - 1


def place(block: int, inside: int) -> int:
    """Of transaction or log number `inside` of a block."""
    return block << BITS | inside


def block_of(position: int) -> int:
    return position >> BITS


def inside_of(position: int) -> int:
    return position & (PER_BLOCK - 1)


def above(block: int) -> int:
    """The first position that lies in a later block."""
    return (block + 1) << BITS
