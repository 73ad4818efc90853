"""The trace format of geth and its descendants: debug_traceBlockByNumber with callTracer, prestateTracer in diff mode,
or muxTracer, which runs both of them at once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.evm.geth_traces import decode_geth_calls, decode_geth_diffs
from icefall.wire.evm.hex import amount, data, fixed
from icefall.wire.evm.trace_format import (
    Header,
    JsonText,
    RpcCall,
    TraceFormat,
    TraceParts,
    TraceRequest,
    TxTraceRequest,
    calls_request,
    check_txs,
    decode_part,
    diffs_request,
)
from icefall.wire.evm.types import CREATIONS, Calls, IncompleteBlock, TreeCall
from icefall.wire.text.jsonscan import CutJson, decode_any_depth


class _Traced(msgspec.Struct, rename="camel"):
    result: msgspec.Raw = msgspec.Raw()
    tx_hash: str | None = None  # old clients leave it out
    error: str | None = None


class _Frame(msgspec.Struct):
    type: str


class _Diff(msgspec.Struct):
    pre: msgspec.Raw
    post: msgspec.Raw


class _MuxTrace(msgspec.Struct, gc=False, rename={"calls": "callTracer", "diffs": "prestateTracer"}):
    calls: msgspec.Raw
    diffs: msgspec.Raw


class _TracedMux(msgspec.Struct, gc=False, rename="camel"):
    result: _MuxTrace | None = None
    tx_hash: str | None = None
    error: str | None = None


class _TreeFrame(msgspec.Struct, gc=False, rename="camel"):
    type: str
    from_: str = msgspec.field(name="from")
    gas: str = "0x0"
    gas_used: str = "0x0"
    to: str | None = None
    value: str | None = None
    input: str | None = None
    output: str | None = None
    error: str | None = None
    calls: "list[_TreeFrame | str] | str | None" = None  # a text: the mark of what was cut out of a deep answer


class _TracedTx(msgspec.Struct, gc=False, rename="camel"):
    result: _TreeFrame
    tx_hash: str | None = None


_TRACED = msgspec.json.Decoder(list[_Traced])
_FRAME = msgspec.json.Decoder(_Frame)
_DIFF = msgspec.json.Decoder(_Diff)
_SIDES = msgspec.json.Decoder(dict[str, dict[str, dict[str, msgspec.Raw]]])
_TRACED_MUX = msgspec.json.Decoder(list[_TracedMux])
_TRACED_TXS = msgspec.json.Decoder(list[_TracedTx])
_TREE_FRAMES = msgspec.json.Decoder(list[_TreeFrame | str])
_TREE_FRAME = msgspec.json.Decoder(_TreeFrame)


# -- requests ------------------------------------------------------------------------------------------------------


_Config = Callable[[bool], dict[str, Any]]  # of a tracer; True: without code in diffs


def _calls_config(leave_out_code: bool) -> dict[str, Any]:
    return {"withLog": False}


def _diffs_config(leave_out_code: bool) -> dict[str, Any]:
    return {"diffMode": True, "disableCode": True} if leave_out_code else {"diffMode": True}


def _mux_config(leave_out_code: bool) -> dict[str, Any]:
    return {"callTracer": _calls_config(leave_out_code), "prestateTracer": _diffs_config(leave_out_code)}


def _of_block(tracer: str, config: _Config) -> Callable[[int, bool], RpcCall]:
    def call(number: int, leave_out_code: bool) -> RpcCall:
        given = {"tracer": tracer, "tracerConfig": config(leave_out_code)}
        return "debug_traceBlockByNumber", (hex(number), given)

    return call


def _of_tx(tracer: str, config: _Config) -> TxTraceRequest:
    def call(tx_hash: str, leave_out_code: bool) -> RpcCall:
        return "debug_traceTransaction", (tx_hash, {"tracer": tracer, "tracerConfig": config(leave_out_code)})

    def joined(txids: Sequence[str], answers: Sequence[JsonText]) -> bytes:
        pieces: list[JsonText] = []
        for txid, answer in zip(txids, answers, strict=True):
            pieces += _row_start(txid), answer
        return _closed_list(pieces)

    return TxTraceRequest(call, joined)


def _row_start(txid: str) -> bytes:
    """The end of the row before, and the beginning of the row of a transaction."""
    return b'},{"txHash":"%b","result":' % txid.encode()


# -- completeness --------------------------------------------------------------------------------------------------


def check_calls(raw: JsonText, header: Header) -> None:
    """Check that callTracer's answer has one call trace for each transaction of the block."""
    decode_any_depth(raw, lambda text: _check_traced(text, header, "call traces", _FRAME))


def check_diffs(raw: JsonText, header: Header) -> None:
    """Check that prestateTracer's answer has one state diff for each transaction of the block."""
    decode_any_depth(raw, lambda text: _check_traced(text, header, "state diffs", _DIFF))


def _check_mux(raw: JsonText, header: Header) -> None:
    calls, diffs = split_mux_traces(raw, header)
    check_calls(calls or b"", header)
    check_diffs(diffs or b"", header)


def split_mux_traces(raw: JsonText, header: Header) -> TraceParts:
    """Split muxTracer's answer into what callTracer and prestateTracer would each have sent. What a trace contains is
    only checked where it is decoded: reading it once more here would cost as much as splitting."""
    (calls, diffs), cut = decode_any_depth(raw, lambda text: _split_mux(text, header))
    return TraceParts(calls, diffs) if cut is None else TraceParts(cut.restored(calls), cut.restored(diffs))


def _check_traced(text: JsonText, header: Header, what: str, shape: msgspec.json.Decoder[Any]) -> None:
    rows = decode_part(_TRACED, text, f"the {what} of block {header.number}", is_deep=True)
    _check_rows(rows, header, what)
    for row in rows:
        decode_part(shape, row.result, f"one of the {what} of block {header.number}", is_deep=True)


def _split_mux(text: JsonText, header: Header) -> tuple[bytes, bytes]:
    calls: list[JsonText] = []
    diffs: list[JsonText] = []
    rows = decode_part(_TRACED_MUX, text, f"the traces of block {header.number}", is_deep=True)
    _check_rows(rows, header, "traces")
    for txid, row in zip(header.txids, rows, strict=True):
        if row.result is None:
            raise IncompleteBlock(f"one of the traces of block {header.number} is missing")
        start = _row_start(txid)
        calls += start, row.result.calls
        diffs += start, row.result.diffs
    return _closed_list(calls), _closed_list(diffs)


def _closed_list(pieces: list[JsonText]) -> bytes:
    """Join objects, each of which closes the one before, to a list: in one step, because traces are large."""
    if not pieces:
        return b"[]"
    pieces[0] = b"[" + bytes(pieces[0]).removeprefix(b"},")
    return b"".join((*pieces, b"}]"))


def _check_rows(rows: Sequence[_Traced | _TracedMux], header: Header, what: str) -> None:
    """Check that the rows are of the transactions of the block, and none of them an error."""
    for row in rows:
        if row.error is not None:
            raise IncompleteBlock(f"the {what} of block {header.number} lack one: {row.error[:200]}")
    txids = [row.tx_hash for row in rows]
    check_txs(header, list(header.txids[: len(rows)]) if set(txids) == {None} else txids, what)


def _code_left_out(with_code: msgspec.Raw, without_code: msgspec.Raw) -> tuple[bool | None, bool]:
    coded = _accounts_with(with_code, "code")
    still_coded, hashed = _accounts_with(without_code, "code"), _accounts_with(without_code, "codeHash")
    return (not still_coded, coded <= hashed) if coded else (None, False)


def _accounts_with(raw: msgspec.Raw, field: str) -> set[tuple[int, str, str]]:
    """Return the accounts of some state diffs that have a field: transaction index, side (pre or post), address."""
    rows = decode_part(_TRACED, raw, "state diffs")
    return {
        (index, side, address)
        for index, row in enumerate(rows)
        for side, accounts in decode_part(_SIDES, row.result, "a state diff").items()
        for address, account in accounts.items()
        if field in account
    }


# -- call trees ----------------------------------------------------------------------------------------------------


def decode_geth_trees(raw: bytes) -> list[Calls]:
    """Decode every call of a block with its data, transaction by transaction."""
    try:
        traced, cut = decode_any_depth(raw, _TRACED_TXS.decode)
        return [tuple(_tree(tx.result, cut)) for tx in traced]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"calls: {error}") from error


def _tree(root: _TreeFrame, cut: CutJson | None) -> Iterator[TreeCall]:
    pending = [(root, 0, False)]  # a stack, not recursion: the sender of a transaction controls the depth
    while pending:
        frame, depth, is_inside_failure = pending.pop()
        is_reverted = is_inside_failure or frame.error is not None
        failed_creation = frame.error is not None and frame.type in CREATIONS
        yield TreeCall(
            depth=depth,
            opcode=frame.type,
            sender=fixed(frame.from_, 20),
            to=b"" if not frame.to or failed_creation else fixed(frame.to, 20),
            value=amount(frame.value) if frame.value else 0,
            gas=amount(frame.gas),
            gas_used=amount(frame.gas_used),
            input=data(frame.input) if frame.input else b"",
            output=data(frame.output) if frame.output else b"",
            error=frame.error or "",
            is_reverted=is_reverted,
        )
        children = [(child, depth + 1, is_reverted) for child in _children(frame, cut)]
        pending.extend(reversed(children))


def _children(frame: _TreeFrame, cut: CutJson | None) -> Iterator[_TreeFrame]:
    calls = frame.calls
    if isinstance(calls, str):
        calls = _TREE_FRAMES.decode(_piece(cut, calls))
    for child in calls or ():
        yield _TREE_FRAME.decode(_piece(cut, child)) if isinstance(child, str) else child


def _piece(cut: CutJson | None, mark: str) -> bytes:
    if cut is None:
        raise WireError("a text where a call belongs")
    return cut.piece(mark)


GETH = TraceFormat(
    name="geth",
    requests=(
        calls_request(
            "callTracer", _of_block("callTracer", _calls_config), _of_tx("callTracer", _calls_config), check_calls
        ),
        diffs_request(
            "prestateTracer",
            _of_block("prestateTracer", _diffs_config),
            _of_tx("prestateTracer", _diffs_config),
            check_diffs,
        ),
        TraceRequest(
            "muxTracer",
            True,
            True,
            _of_block("muxTracer", _mux_config),
            _of_tx("muxTracer", _mux_config),
            _check_mux,
            split_mux_traces,
        ),
    ),
    decode_calls=decode_geth_calls,
    decode_diffs=decode_geth_diffs,
    decode_call_trees=decode_geth_trees,
    code_left_out=_code_left_out,
)
