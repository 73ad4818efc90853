"""A block of an EVM chain, decoded from four answers of a node: block, receipts, calls and diffs."""

from icefall.wire.errors import WireError
from icefall.wire.evm.authorizations import with_delegations
from icefall.wire.evm.block import decode_block, decode_receipts
from icefall.wire.evm.hex import HexTexts
from icefall.wire.evm.parity import decode_parity_diffs, decode_parity_traces
from icefall.wire.evm.trace import decode_diffs, decode_traces
from icefall.wire.evm.types import FullBlock, IncompleteBlock

_CALLS_BY = {"callTracer": decode_traces, "trace_block": decode_parity_traces}
_DIFFS_BY = {"prestateTracer": decode_diffs, "trace_replayBlockTransactions": decode_parity_diffs}


def decode_full(
    block: bytes,
    receipts: bytes,
    calls: bytes | None,
    diffs: bytes | None,
    calls_by: str = "callTracer",
    diffs_by: str = "prestateTracer",
) -> FullBlock:
    """Decoded, not yet verified. None: the chain has no such tracer, or the block is the genesis.

    `calls_by` and `diffs_by` name the requests that gave `calls` and `diffs`, as FetchedBlock has them.
    """
    texts = HexTexts()
    read_block = decode_block(block, texts)
    read_receipts = decode_receipts(receipts, texts)
    if read_block is None or read_receipts is None:
        raise IncompleteBlock("the block is missing" if read_block is None else "the block's receipts are missing")
    if (calls is not None and calls_by not in _CALLS_BY) or (diffs is not None and diffs_by not in _DIFFS_BY):
        raise WireError(f"calls by {calls_by!r} and diffs by {diffs_by!r} have no known format")
    return FullBlock(
        block=read_block,
        receipts=read_receipts,
        traces=None if calls is None else _CALLS_BY[calls_by](calls, texts),
        diffs=None if diffs is None else with_delegations(read_block.txs, _DIFFS_BY[diffs_by](diffs, texts)),
    )
