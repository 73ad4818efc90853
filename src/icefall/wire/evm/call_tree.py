"""All calls of a transaction with their data, as callTracer or trace_block report them: a flat list in pre-order.

`trace.py` and `parity.py` keep only what moves value or creates; they are read for every block and must stay fast.
"""

from collections.abc import Iterator

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.evm.hex import amount, data, fixed
from icefall.wire.text.jsondeep import CutJson, decode_any_depth

_CREATE = "create"


class TreeCall(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One call. `is_reverted`: it failed, or a call around it did; `error`: why it failed itself."""

    depth: int  # of the transaction itself: 0
    kind: str
    sender: bytes
    to: bytes  # empty: a creation that failed
    value: int
    gas: int
    gas_used: int
    input: bytes
    output: bytes
    error: str
    is_reverted: bool


Calls = tuple[TreeCall, ...]


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


class _Action(msgspec.Struct, gc=False, rename="camel"):
    from_: str | None = msgspec.field(name="from", default=None)
    to: str | None = None
    value: str | None = None
    gas: str | None = None
    input: str | None = None
    init: str | None = None
    call_type: str | None = None
    creation_method: str | None = None
    address: str | None = None  # from here on: of a destruction
    refund_address: str | None = None
    balance: str | None = None


class _Outcome(msgspec.Struct, gc=False, rename="camel"):
    gas_used: str | None = None
    output: str | None = None
    address: str | None = None
    code: str | None = None


class _Row(msgspec.Struct, gc=False, rename="camel"):
    action: _Action
    type: str
    trace_address: list[int]
    transaction_hash: str | None = None
    result: _Outcome | None = None
    error: str | None = None


_traced = msgspec.json.Decoder(list[_TracedTx])
_frames = msgspec.json.Decoder(list[_TreeFrame | str])
_frame = msgspec.json.Decoder(_TreeFrame)
_rows = msgspec.json.Decoder(list[_Row])


def decode_call_trees(raw: bytes, calls_by: str = "callTracer") -> list[Calls]:
    """The calls of a block, transaction by transaction, of whichever request gave them."""
    try:
        if calls_by == "callTracer":
            traced, cut = decode_any_depth(raw, _traced.decode)
            return [tuple(_calls(tx.result, cut)) for tx in traced]
        of_tx: dict[str, list[_Row]] = {}
        for row in _rows.decode(raw):
            if row.type != "reward":
                of_tx.setdefault(row.transaction_hash or "", []).append(row)
        return [tuple(_from_rows(rows)) for rows in of_tx.values()]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"calls: {error}") from error


def decode_call_tree(raw: bytes, calls_by: str = "callTracer") -> Calls:
    """The calls of one transaction: the result of debug_traceTransaction or trace_transaction."""
    if calls_by == "callTracer":
        raw = b'[{"result":' + raw + b"}]"
    trees = decode_call_trees(raw, calls_by)
    if len(trees) != 1:
        raise WireError(f"calls: expected those of one transaction, got {len(trees)}")
    return trees[0]


def _calls(root: _TreeFrame, cut: CutJson | None) -> Iterator[TreeCall]:
    pending = [(root, 0, False)]  # a stack, not recursion: the sender of a transaction controls the depth
    while pending:
        frame, depth, is_inside_failure = pending.pop()
        is_reverted = is_inside_failure or frame.error is not None
        failed_creation = frame.error is not None and frame.type in ("CREATE", "CREATE2")
        yield TreeCall(
            depth=depth,
            kind=frame.type,
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
        calls = _frames.decode(_piece(cut, calls))
    for child in calls or ():
        yield _frame.decode(_piece(cut, child)) if isinstance(child, str) else child


def _piece(cut: CutJson | None, mark: str) -> bytes:
    if cut is None:
        raise WireError("a text where a call belongs")
    return cut.piece(mark)


def _creation(action: _Action) -> str:
    method = (action.creation_method or "none").upper()
    return "CREATE" if method == "NONE" else method


def _from_rows(rows: list[_Row]) -> Iterator[TreeCall]:
    failed: dict[tuple[int, ...], bool] = {}
    for row in sorted(rows, key=lambda row: row.trace_address):
        place = tuple(row.trace_address)
        is_reverted = failed[place] = row.error is not None or failed.get(place[:-1], False)
        action, result = row.action, row.result or _Outcome()
        if row.type in ("suicide", "selfdestruct"):
            kind, sender, to, value = "SELFDESTRUCT", action.address, action.refund_address, action.balance
        elif row.type == _CREATE:
            kind, sender, to, value = _creation(action), action.from_, result.address, action.value
        else:
            kind, sender, to, value = (action.call_type or "call").upper(), action.from_, action.to, action.value
        if sender is None:
            raise WireError("a call without a sender")
        given, returned = (action.init, result.code) if row.type == _CREATE else (action.input, result.output)
        yield TreeCall(
            depth=len(place),
            kind=kind,
            sender=fixed(sender, 20),
            to=fixed(to, 20) if to else b"",
            value=amount(value) if value else 0,
            gas=amount(action.gas) if action.gas else 0,
            gas_used=amount(result.gas_used) if result.gas_used else 0,
            input=data(given) if given else b"",
            output=data(returned) if returned else b"",
            error=row.error or "",
            is_reverted=is_reverted,
        )
