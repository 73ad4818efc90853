"""Results of trace_block and trace_replayBlockTransactions, introduced by OpenEthereum (Parity) and adopted by others.

They become the same values as the results of callTracer and prestateTracer, but contain less: no gas of a frame that
failed without a result, no balance and no code of an account where the diff is "=". Some clients (anvil, reth) send "="
for code even where a transaction set or cleared it, and a destroyed account as an empty one or not at all.
"""

from collections.abc import Iterator, Mapping

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.evm.hex import HexReader, HexTexts, shown
from icefall.wire.evm.trace import CREATE3_PROXY_CODE, IMPLEMENTATION_SLOTS
from icefall.wire.evm.types import AccountDiff, CallFrame, IncompleteBlock, Trace, TxDiff, omits_code

_CALLS = {"call": "CALL", "callcode": "CALLCODE", "delegatecall": "DELEGATECALL", "staticcall": "STATICCALL"}
_CREATIONS = {"create": "CREATE", "create2": "CREATE2"}
_DESTRUCTIONS = ("suicide", "selfdestruct")
_ERRORS_BEFORE_RUN = ("insufficient balance", "depth")
_NO_CODE = "0x"


class _ActionText(msgspec.Struct, gc=False, rename="camel"):
    from_: str | None = msgspec.field(name="from", default=None)
    to: str | None = None
    value: str | None = None
    gas: str | None = None
    call_type: str | None = None
    creation_method: str | None = None  # newer clients only
    init: str | None = None
    address: str | None = None  # from here on: of a destruction
    refund_address: str | None = None
    balance: str | None = None


class _ResultText(msgspec.Struct, gc=False, rename="camel"):
    gas_used: str | None = None
    address: str | None = None


class _TraceRow(msgspec.Struct, gc=False, rename="camel"):
    action: _ActionText
    type: str
    trace_address: list[int]
    transaction_hash: str | None = None  # a reward has none
    result: _ResultText | None = None
    error: str | None = None


class _ChangeText(msgspec.Struct, gc=False, rename={"from_": "from"}):
    from_: str
    to: str


class _DeltaText(msgspec.Struct, gc=False, rename={"added": "+", "removed": "-", "changed": "*"}):
    added: str | None = None
    removed: str | None = None
    changed: _ChangeText | None = None


class _AccountDiffText(msgspec.Struct, gc=False):
    balance: str | _DeltaText
    code: str | _DeltaText
    nonce: str | _DeltaText | None = None
    storage: dict[str, msgspec.Raw] | None = None


class _TxReplayText(msgspec.Struct, gc=False, rename="camel"):
    state_diff: dict[str, _AccountDiffText] | None = None
    transaction_hash: str | None = None


_rows = msgspec.json.Decoder(list[_TraceRow])
_replayed = msgspec.json.Decoder(list[_TxReplayText])


def decode_parity_traces(raw: bytes, texts: HexTexts | None = None) -> tuple[Trace, ...]:
    """trace_block's rows as frames, transaction by transaction. Rewards of miners are no part of any."""
    try:
        of_tx: dict[str, dict[tuple[int, ...], _TraceRow]] = {}
        for row in _rows.decode(raw):
            if row.type != "reward":
                _put(row, of_tx)
        reader = _ParityTraceReader(texts or HexTexts())
        return tuple([reader.trace(tx_hash, rows) for tx_hash, rows in of_tx.items()])
    except IncompleteBlock:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"traces: {error}") from error


def decode_parity_diffs(raw: bytes, texts: HexTexts | None = None) -> tuple[TxDiff, ...]:
    """What each transaction changed, as trace_replayBlockTransactions gives it for "stateDiff"."""
    try:
        reader = _ParityDiffReader(texts or HexTexts())
        return tuple([reader.diff(text) for text in _replayed.decode(raw)])
    except IncompleteBlock:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"diffs: {error}") from error


def _put(row: _TraceRow, of_tx: dict[str, dict[tuple[int, ...], _TraceRow]]) -> None:
    if row.transaction_hash is None:
        raise WireError(f"a row of type {shown(row.type)} has no transaction")
    rows = of_tx.setdefault(row.transaction_hash, {})
    position = tuple(row.trace_address)
    if position in rows:
        raise IncompleteBlock(f"two traces at {position} of transaction {shown(row.transaction_hash)}")
    rows[position] = row


class _ParityTraceReader(HexReader):
    __slots__ = ()

    def trace(self, tx_hash: str, rows: Mapping[tuple[int, ...], _TraceRow]) -> Trace:
        """Sorted by position is pre-order; some clients put a destruction before the calls that went ahead of it."""
        frames = []
        failed: dict[tuple[int, ...], bool] = {}
        for number, (position, row) in enumerate(sorted(rows.items())):
            before = (*position[:-1], position[-1] - 1) if position and position[-1] else position[:-1]
            if before not in rows or (position and min(position) < 0) or (not position) != (number == 0):
                raise IncompleteBlock(f"the trace before {position} of transaction {shown(tx_hash)} is missing")
            is_reverted = failed[position] = row.error is not None or (number > 0 and failed[position[:-1]])
            frame = self._frame(row, number, is_reverted=is_reverted)
            if number == 0 or frame.kind not in _CALLS.values() or (frame.value and _moves_value(frame)):
                frames.append(frame)
        return Trace(self.word[tx_hash], tuple(frames), len(rows))

    def _frame(self, row: _TraceRow, number: int, *, is_reverted: bool) -> CallFrame:
        if row.type in _DESTRUCTIONS:
            return self._destruction(row.action, number, is_reverted=is_reverted)
        kind = _kind(row)
        result = row.result or _ResultText()
        is_creation = row.type == "create"
        to = result.address if is_creation else row.action.to
        if not to and row.error is None:
            raise WireError(f"a {kind} frame without an error has no recipient")
        gas = self.count[_needed(row.action.gas, "gas")]
        return CallFrame(
            number=number,
            kind=kind,
            sender=self.address[_needed(row.action.from_, "from")],
            to=b"" if not to or (is_creation and row.error is not None) else self.address[to],
            value=self.amount[row.action.value] if row.action.value else 0,
            gas=gas,
            gas_used=self.count[result.gas_used] if result.gas_used else 0 if _never_ran(row) else gas,
            is_reverted=is_reverted,
            is_create3_proxy=kind == "CREATE2" and row.action.init == CREATE3_PROXY_CODE,
        )

    def _destruction(self, action: _ActionText, number: int, *, is_reverted: bool) -> CallFrame:
        return CallFrame(
            number=number,
            kind="SELFDESTRUCT",
            sender=self.address[_needed(action.address, "address")],
            to=self.address[_needed(action.refund_address, "refundAddress")],
            value=self.amount[_needed(action.balance, "balance")],
            gas=0,
            gas_used=0,
            is_reverted=is_reverted,
            is_create3_proxy=False,
        )


def _kind(row: _TraceRow) -> str:
    """The frame type in callTracer's terms. Without a creation method: CREATE, or CREATE2 for the CREATE3 proxy."""
    if row.type == "create":
        method = row.action.creation_method
        if method is None or method == "none":
            return "CREATE2" if row.action.init == CREATE3_PROXY_CODE else "CREATE"
        kind = _CREATIONS.get(method.lower())
    else:
        kind = _CALLS.get((row.action.call_type or "").lower()) if row.type == "call" else None
    if kind is None:
        how = row.action.call_type or row.action.creation_method or ""
        raise WireError(f"a trace of type {shown(row.type)}, {shown(how)}")
    return kind


def _never_ran(row: _TraceRow) -> bool:
    """Whether its gas came back whole: what fails later and has no result took all of it."""
    return row.error is not None and any(word in row.error.lower() for word in _ERRORS_BEFORE_RUN)


def _moves_value(frame: CallFrame) -> bool:
    return frame.kind in ("CALL", "CALLCODE")


def _needed(text: str | None, name: str) -> str:
    if text is None:
        raise WireError(f"a trace without {name}")
    return text


class _ParityDiffReader:
    __slots__ = ("address", "amount", "word")

    def __init__(self, texts: HexTexts) -> None:
        self.amount = texts.amount
        self.address = texts.address
        self.word = texts.word

    def diff(self, text: _TxReplayText) -> TxDiff:
        if text.state_diff is None:
            raise IncompleteBlock(f"no state diff of transaction {shown(text.transaction_hash or '')}")
        tx_hash = b"" if text.transaction_hash is None else self.word[text.transaction_hash]
        accounts = tuple(self._accounts(text.state_diff))
        return TxDiff(tx_hash, accounts, omits_code(accounts))

    def _accounts(self, diff: Mapping[str, _AccountDiffText]) -> Iterator[AccountDiff]:
        for address, account in diff.items():
            balance, code = _sides(account.balance), _sides(account.code)
            had_code, has_code = (None, None) if code is None else (_has_code(code[0]), _has_code(code[1]))
            yield AccountDiff(
                address=self.address[address],
                balance_before=None if balance is None else self._wei(balance[0]),
                balance_after=None if balance is None else self._wei(balance[1]),
                had_code=had_code,
                has_code=has_code,
                is_gone=isinstance(account.balance, _DeltaText) and account.balance.removed is not None,
                changed_storage=any(bytes(slot) != b'"="' for slot in (account.storage or {}).values()),
                changed_implementation=any(slot[2:].encode() in IMPLEMENTATION_SLOTS for slot in account.storage or {}),
                nonce_before=self._nonce_before(account.nonce),
            )

    def _nonce_before(self, delta: str | _DeltaText | None) -> int | None:
        """Unknown where it is not reported."""
        nonce = None if delta is None else _sides(delta)
        return None if nonce is None else self._wei(nonce[0])

    def _wei(self, text: str | None) -> int:
        return 0 if text is None else self.amount[text]


def _has_code(text: str | None) -> bool:
    return text is not None and text != _NO_CODE


def _sides(delta: str | _DeltaText) -> tuple[str | None, str | None] | None:
    """The values before and after, of which one may be absent; None where the client reports no change."""
    if isinstance(delta, str):
        if delta != "=":
            raise WireError(f"expected a change or '=', got {shown(delta)}")
        return None
    match delta:
        case _DeltaText(added=str(after), removed=None, changed=None):
            return None, after
        case _DeltaText(added=None, removed=str(before), changed=None):
            return before, None
        case _DeltaText(added=None, removed=None, changed=_ChangeText(from_=before, to=after)):
            return before, after
    raise WireError("expected one of '+', '-' and '*' in a change")
