"""Internal transactions: the calls of a trace that move value or create contracts."""

from collections.abc import Iterator, Sequence

from icefall.evm.model import InternalTx, NativeTx
from icefall.wire.evm.types import CREATIONS, CallFrame, Trace

_LISTED_WITH_VALUE = ("CALL", "CALLCODE")


def internals(traces: Sequence[Trace] | None, txs: Sequence[NativeTx]) -> Iterator[InternalTx]:
    """Frames below the root, in pre-order. DELEGATECALL repeats its parent's value and moves nothing: not listed."""
    for tx, trace in zip(txs, traces or (), strict=traces is not None):
        if trace.frame_count == 1:
            continue
        proxies = {frame.to for frame in trace.frames if frame.is_create3_proxy and frame.to}
        for frame in trace.frames[1:]:
            if frame.opcode in CREATIONS or (frame.value and frame.opcode in _LISTED_WITH_VALUE):
                yield InternalTx(
                    tx_index=tx.tx_index,
                    frame=frame.number,
                    kind=_kind(frame, proxies),
                    sender=frame.sender,
                    to=frame.to,
                    value=frame.value,
                    gas_limit=frame.gas,
                    gas_used=frame.gas_used,
                    is_reverted=frame.is_reverted or tx.status == 0,
                )


def _kind(frame: CallFrame, proxies: set[bytes]) -> str:
    """CREATE3 is no instruction: it is a CREATE by a proxy that the same transaction made with CREATE2."""
    return "CREATE3" if frame.opcode == "CREATE" and frame.sender in proxies else frame.opcode
