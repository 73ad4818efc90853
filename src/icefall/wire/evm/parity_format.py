"""The trace format of OpenEthereum (Parity) and its followers: trace_block and trace_replayBlockTransactions.

Its results become the same values as those of geth's tracers, but contain less: no gas of a frame that failed without a
result, no balance and no code of an account where the diff is "=". Some clients (anvil, reth) send "=" for code even
where a transaction set or cleared it, and a destroyed account as an empty one or not at all.
"""

from collections.abc import Iterator, Mapping

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.evm.hex import HexReader, HexTexts, amount, data, fixed, shown
from icefall.wire.evm.storage import text_of_deltas
from icefall.wire.evm.trace_format import (
    CREATE3_PROXY_CODE,
    IMPLEMENTATION_SLOTS,
    Hash,
    Header,
    JsonText,
    TraceFormat,
    TxTraceRequest,
    calls_request,
    check_txs,
    decode_part,
    diffs_request,
    joined_lists,
    joined_objects,
)
from icefall.wire.evm.types import (
    AccountDiff,
    CallFrame,
    Calls,
    IncompleteBlock,
    Trace,
    TreeCall,
    TxDiff,
    omits_code,
)

_CALLS = {"call": "CALL", "callcode": "CALLCODE", "delegatecall": "DELEGATECALL", "staticcall": "STATICCALL"}
_MOVING_VALUE = ("CALL", "CALLCODE")
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
    address: str | None = None  # this and the next two: of a destruction
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


def decode_parity_calls(raw: bytes, texts: HexTexts | None = None) -> tuple[Trace, ...]:
    """Decode trace_block's rows to frames, transaction by transaction. Rewards of miners are no part of any."""
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
    """Decode what each transaction changed, as trace_replayBlockTransactions reports it for "stateDiff"."""
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
        """Decode one transaction. Rows sorted by position are in pre-order; some clients send a destruction before the
        calls that went ahead of it."""
        frames = []
        failed: dict[tuple[int, ...], bool] = {}
        for number, (position, row) in enumerate(sorted(rows.items())):
            before = (*position[:-1], position[-1] - 1) if position and position[-1] else position[:-1]
            if before not in rows or (position and min(position) < 0) or (not position) != (number == 0):
                raise IncompleteBlock(f"the trace before {position} of transaction {shown(tx_hash)} is missing")
            is_reverted = failed[position] = row.error is not None or (number > 0 and failed[position[:-1]])
            frame = self._frame(row, number, is_reverted=is_reverted)
            if number == 0 or frame.opcode not in _CALLS.values() or (frame.value and frame.opcode in _MOVING_VALUE):
                frames.append(frame)
        return Trace(self.word[tx_hash], tuple(frames), len(rows))

    def _frame(self, row: _TraceRow, number: int, *, is_reverted: bool) -> CallFrame:
        if row.type in _DESTRUCTIONS:
            return self._destruction(row.action, number, is_reverted=is_reverted)
        opcode = _opcode(row)
        result = row.result or _ResultText()
        is_creation = row.type == "create"
        to = result.address if is_creation else row.action.to
        if not to and row.error is None:
            raise WireError(f"a {opcode} frame without an error has no recipient")
        gas = self.count[_needed(row.action.gas, "gas")]
        return CallFrame(
            number=number,
            opcode=opcode,
            sender=self.address[_needed(row.action.from_, "from")],
            to=b"" if not to or (is_creation and row.error is not None) else self.address[to],
            value=self.amount[row.action.value] if row.action.value else 0,
            gas=gas,
            gas_used=self.count[result.gas_used] if result.gas_used else 0 if _never_ran(row) else gas,
            is_reverted=is_reverted,
            is_create3_proxy=opcode == "CREATE2" and row.action.init == CREATE3_PROXY_CODE,
        )

    def _destruction(self, action: _ActionText, number: int, *, is_reverted: bool) -> CallFrame:
        return CallFrame(
            number=number,
            opcode="SELFDESTRUCT",
            sender=self.address[_needed(action.address, "address")],
            to=self.address[_needed(action.refund_address, "refundAddress")],
            value=self.amount[_needed(action.balance, "balance")],
            gas=0,
            gas_used=0,
            is_reverted=is_reverted,
            is_create3_proxy=False,
        )


def _opcode(row: _TraceRow) -> str:
    """Return the opcode as callTracer names it. Without a creation method: CREATE, or CREATE2 for the CREATE3 proxy."""
    if row.type == "create":
        method = row.action.creation_method
        if method is None or method == "none":
            return "CREATE2" if row.action.init == CREATE3_PROXY_CODE else "CREATE"
        opcode = _CREATIONS.get(method.lower())
    else:
        opcode = _CALLS.get((row.action.call_type or "").lower()) if row.type == "call" else None
    if opcode is None:
        how = row.action.call_type or row.action.creation_method or ""
        raise WireError(f"a trace of type {shown(row.type)}, {shown(how)}")
    return opcode


def _never_ran(row: _TraceRow) -> bool:
    """Return whether all of its gas came back: what fails later and has no result used all of it."""
    return row.error is not None and any(word in row.error.lower() for word in _ERRORS_BEFORE_RUN)


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
            had_code, has_code = (None, None) if code is None else [side not in (None, _NO_CODE) for side in code]
            is_gone = isinstance(account.balance, _DeltaText) and account.balance.removed is not None
            yield AccountDiff(
                address=self.address[address],
                balance_before=None if balance is None else self._wei(balance[0]),
                balance_after=None if balance is None else self._wei(balance[1]),
                had_code=had_code,
                has_code=has_code,
                is_gone=is_gone,
                changed_storage=any(bytes(slot) != b'"="' for slot in (account.storage or {}).values()),
                changed_implementation=any(slot[2:].encode() in IMPLEMENTATION_SLOTS for slot in account.storage or {}),
                nonce_before=self._nonce_before(account.nonce),
                storage=b"" if is_gone else text_of_deltas(account.storage),
            )

    def _nonce_before(self, delta: str | _DeltaText | None) -> int | None:
        """Return the nonce before the transaction; None where it is not reported."""
        nonce = None if delta is None else _sides(delta)
        return None if nonce is None else self._wei(nonce[0])

    def _wei(self, text: str | None) -> int:
        return 0 if text is None else self.amount[text]


def _sides(delta: str | _DeltaText) -> tuple[str | None, str | None] | None:
    """Return the values before and after, of which one may be absent; None where the client reports no change."""
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


# -- requests and completeness -------------------------------------------------------------------------------------


class _RootRow(msgspec.Struct, rename="camel"):
    trace_address: list[int]
    type: str
    transaction_hash: Hash | None = None  # a reward has none


class _ReplayRow(msgspec.Struct, rename="camel"):
    state_diff: msgspec.Raw
    transaction_hash: Hash | None = None


_root_rows = msgspec.json.Decoder(list[_RootRow])
_replay_rows = msgspec.json.Decoder(list[_ReplayRow])


def check_trace_block(raw: JsonText, header: Header) -> None:
    """Check that trace_block's list has one root call for each transaction of the block."""
    rows = decode_part(_root_rows, raw, f"the traces of block {header.number}")
    roots = [row.transaction_hash for row in rows if not row.trace_address and row.type != "reward"]
    check_txs(header, roots, "call traces")


def check_replay(raw: JsonText, header: Header) -> None:
    """Check that trace_replayBlockTransactions' list has a state diff for each transaction of the block."""
    rows = decode_part(_replay_rows, raw, f"the state diffs of block {header.number}")
    check_txs(header, [row.transaction_hash for row in rows], "state diffs")
    if any(bytes(memoryview(row.state_diff)[:1]) != b"{" for row in rows):
        raise IncompleteBlock(f"a state diff of block {header.number} is missing")


# -- call trees ----------------------------------------------------------------------------------------------------


class _TreeAction(_ActionText):
    input: str | None = None


class _TreeResult(_ResultText):
    output: str | None = None
    code: str | None = None


class _TreeRow(_TraceRow):
    action: _TreeAction
    result: _TreeResult | None = None


_tree_rows = msgspec.json.Decoder(list[_TreeRow])


def decode_parity_trees(raw: bytes) -> list[Calls]:
    """Decode every call of a block with its data, transaction by transaction."""
    try:
        of_tx: dict[str, list[_TreeRow]] = {}
        for row in _tree_rows.decode(raw):
            if row.type != "reward":
                of_tx.setdefault(row.transaction_hash or "", []).append(row)
        return [tuple(_tree(rows)) for rows in of_tx.values()]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"calls: {error}") from error


def _creation(action: _TreeAction) -> str:
    method = (action.creation_method or "none").upper()
    return "CREATE" if method == "NONE" else method


def _tree(rows: list[_TreeRow]) -> Iterator[TreeCall]:
    failed: dict[tuple[int, ...], bool] = {}
    for row in sorted(rows, key=lambda row: row.trace_address):
        place = tuple(row.trace_address)
        is_reverted = failed[place] = row.error is not None or failed.get(place[:-1], False)
        action, result = row.action, row.result or _TreeResult()
        if row.type in _DESTRUCTIONS:
            opcode, sender, to, value = "SELFDESTRUCT", action.address, action.refund_address, action.balance
        elif row.type == "create":
            opcode, sender, to, value = _creation(action), action.from_, result.address, action.value
        else:
            opcode, sender, to, value = (action.call_type or "call").upper(), action.from_, action.to, action.value
        if sender is None:
            raise WireError("a call without a sender")
        given, returned = (action.init, result.code) if row.type == "create" else (action.input, result.output)
        yield TreeCall(
            depth=len(place),
            opcode=opcode,
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


PARITY = TraceFormat(
    name="parity",
    requests=(
        calls_request(
            "trace_block",
            lambda number, leave_out_code: ("trace_block", (hex(number),)),
            TxTraceRequest(lambda tx_hash, leave_out_code: ("trace_transaction", (tx_hash,)), joined_lists),
            check_trace_block,
            "call traces are trace_block's: CREATE2 shows as CREATE where the client does not distinguish them",
        ),
        diffs_request(
            "trace_replayBlockTransactions",
            lambda number, leave_out_code: ("trace_replayBlockTransactions", (hex(number), ["stateDiff"])),
            TxTraceRequest(lambda tx, leave_out_code: ("trace_replayTransaction", (tx, ["stateDiff"])), joined_objects),
            check_replay,
            "state diffs are trace_replayBlockTransactions': destroyed contracts and code are read from"
            " state, block by block: slower, and only with an archive",
        ),
    ),
    decode_calls=decode_parity_calls,
    decode_diffs=decode_parity_diffs,
    decode_call_trees=decode_parity_trees,
)
