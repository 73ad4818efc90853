"""A block of an EVM chain, decoded from four answers of a node: block, receipts, calls and diffs.

`TRACE_FORMATS` has a row for each format in which nodes send calls and diffs.
"""

from icefall.wire.errors import WireError
from icefall.wire.evm.authorizations import with_delegations
from icefall.wire.evm.block import decode_block, decode_receipts
from icefall.wire.evm.geth_format import GETH
from icefall.wire.evm.hex import HexTexts
from icefall.wire.evm.parity_format import PARITY
from icefall.wire.evm.trace_format import TraceFormat
from icefall.wire.evm.types import Calls, FullBlock, IncompleteBlock

TRACE_FORMATS = (GETH, PARITY)  # those that are preferred first
_BY_NAME = {one.name: one for one in TRACE_FORMATS}


def trace_format(name: str) -> TraceFormat:
    """Return the trace format of a name, as FetchedBlock has it. WireError where there is none."""
    found = _BY_NAME.get(name)
    if found is None:
        raise WireError(f"traces of {name!r} have no known format")
    return found


def decode_tx_calls(raw: bytes, traces: TraceFormat) -> Calls:
    """Decode every call of one transaction, as the request of `traces` for one transaction gives them."""
    found = traces.decode_call_trees(traces.requests[0].of_tx.joined(("",), (raw,)))
    if len(found) != 1:
        raise WireError(f"calls: expected those of one transaction, got {len(found)}")
    return found[0]


def decode_full(
    block: bytes,
    receipts: bytes,
    calls: bytes | None,
    diffs: bytes | None,
    calls_format: str = GETH.name,
    diffs_format: str = GETH.name,
) -> FullBlock:
    """Decode a block without verifying it. `calls` and `diffs` are None where the chain has no such tracer, and for the
    genesis; the names of their formats are those of FetchedBlock."""
    texts = HexTexts()
    read_block = decode_block(block, texts)
    read_receipts = decode_receipts(receipts, texts)
    if read_block is None or read_receipts is None:
        raise IncompleteBlock("the block is missing" if read_block is None else "the block's receipts are missing")
    return FullBlock(
        block=read_block,
        receipts=read_receipts,
        traces=None if calls is None else trace_format(calls_format).decode_calls(calls, texts),
        diffs=None
        if diffs is None
        else with_delegations(read_block.txs, trace_format(diffs_format).decode_diffs(diffs, texts)),
    )
