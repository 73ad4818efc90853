"""Contract creations that succeeded."""

from collections.abc import Iterator, Sequence

from icefall.evm.model import CallType, Deployment, NativeTx
from icefall.wire.evm.types import CREATIONS, Trace


def deployments(traces: Sequence[Trace] | None, txs: Sequence[NativeTx]) -> Iterator[Deployment]:
    """Creations that succeeded and are not inside anything that failed; without traces, those of transactions."""
    for tx in txs:
        if tx.status == 0:
            continue
        if tx.call_type is CallType.CONTRACT_CREATION:
            yield Deployment(tx.to, tx.tx_index, 0, tx.sender)
        if traces is not None:
            for frame in traces[tx.tx_index].frames[1:]:
                if frame.opcode in CREATIONS and not frame.is_reverted:
                    yield Deployment(frame.to, tx.tx_index, frame.number, frame.sender)
