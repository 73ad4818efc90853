"""Logs and calls of a block as they are stored. Pure; only for chains whose settings ask for it."""

from collections.abc import Iterator

from icefall.evm.call_data import pack_data
from icefall.evm.call_trees import pack_calls
from icefall.evm.model import RawKinds, RawRows
from icefall.wire.evm.decode import trace_format
from icefall.wire.evm.types import FullBlock

RawLog = tuple[int, int, bytes, bytes, bytes, bytes]


def raw_rows(full: FullBlock, calls: bytes | None, calls_format: str, kinds: RawKinds) -> RawRows:
    """Of a verified block: its traces are known to be one for each transaction, in order. WireError where the calls
    cannot be read. `calls`, `calls_format`: as they were fetched."""
    return RawRows(
        wanted=kinds,
        logs=tuple(_logs(full)) if kinds.logs else None,
        calls=tuple(map(pack_calls, trace_format(calls_format).decode_call_trees(calls)))
        if kinds.calls and calls is not None
        else None,
    )


def _logs(full: FullBlock) -> Iterator[RawLog]:
    for receipt in full.receipts:
        for log in receipt.logs:
            first, rest = (log.topics[0], b"".join(log.topics[1:])) if log.topics else (b"", b"")
            yield log.index, receipt.index, log.address, first, rest, pack_data(log.data)
