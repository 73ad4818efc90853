"""A block of an EVM chain, from the four answers that tell all about it."""

from icefall.wire.evm_block import decode_block, decode_receipts
from icefall.wire.evm_trace import decode_diffs, decode_traces
from icefall.wire.evm_types import FullBlock, Incomplete


def decode_full(block: bytes, receipts: bytes, calls: bytes | None, diffs: bytes | None) -> FullBlock:
    """Decoded, not yet verified. None: the chain has no such tracer, or the block is the genesis.

    `calls` is what callTracer gave, `diffs` what prestateTracer gave in diff mode.
    """
    read_block = decode_block(block)
    read_receipts = decode_receipts(receipts)
    if read_block is None or read_receipts is None:
        raise Incomplete("the block is not there" if read_block is None else "the block's receipts are not there")
    return FullBlock(
        block=read_block,
        receipts=read_receipts,
        traces=None if calls is None else decode_traces(calls),
        diffs=None if diffs is None else decode_diffs(diffs),
    )
