"""Calls and state diffs of a block in geth's format: the results of callTracer, and of prestateTracer in diff mode.

They are decoded for every block, so this module is written for speed. geth_format.py has everything else of the format.
"""

import re
from collections.abc import Sequence

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.evm.hex import HexReader, HexTexts, shown
from icefall.wire.evm.trace_format import CREATE3_PROXY_CODE, IMPLEMENTATION_SLOTS
from icefall.wire.evm.types import CREATIONS, AccountDiff, CallFrame, IncompleteBlock, Trace, TxDiff
from icefall.wire.text.jsonscan import CutJson

_STORED_OPCODES = frozenset(["CALL", "CALLCODE", *CREATIONS, "SELFDESTRUCT"])
_NO_CODE_SIZE = 4  # of `"0x"` with its quotes, and of null
_NO_CODE_HASHES = ("0x" + "00" * 32, "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
_ABSENT = msgspec.Raw()  # a default that is found again by its identity
_NO_STORAGE = (b"", b"{}", b"null")
_NO_STORAGE_SIZE = 4  # of the longest of them
# One search that looks only behind an x takes a third of the time of three for the slots themselves.
_IMPLEMENTATION_SLOT = re.compile(b"x(?:" + b"|".join(IMPLEMENTATION_SLOTS) + b")")


class _FrameText(msgspec.Struct, gc=False, rename="camel"):
    type: str
    from_: str = msgspec.field(name="from")
    gas: str
    gas_used: str
    to: str | None = None
    value: str | None = None
    input: str = "0x"
    error: str | None = None
    calls: "list[_FrameText] | None" = None


class _TraceText(msgspec.Struct, gc=False, rename="camel"):
    tx_hash: str | None = None
    result: _FrameText | None = None
    error: msgspec.Raw = msgspec.Raw()


class _AccountText(msgspec.Struct, gc=False, rename="camel"):
    balance: str | None = None
    code: msgspec.Raw = _ABSENT  # most of a diff is code, of which only the presence counts
    code_hash: str | None = None  # geth: the only sign of a cleared delegation (EIP-7702)
    nonce: int | str | None = None  # left out where it is 0
    storage: msgspec.Raw = _ABSENT


class _DiffText(msgspec.Struct, gc=False):
    pre: dict[str, _AccountText]
    post: dict[str, _AccountText]


class _TxDiffText(msgspec.Struct, gc=False, rename="camel"):
    tx_hash: str | None = None
    result: _DiffText | None = None
    error: msgspec.Raw = msgspec.Raw()


class _DeepFrameText(_FrameText):
    """A frame whose calls may be marks of what was cut out of a deep answer."""

    calls: "list[_DeepFrameText | str] | str | None" = None  # type: ignore[assignment]


class _DeepTraceText(_TraceText):
    result: _DeepFrameText | None = None


_traces = msgspec.json.Decoder(list[_TraceText])
_deep_traces = msgspec.json.Decoder(list[_DeepTraceText])
_deep_calls = msgspec.json.Decoder(list[_DeepFrameText | str])
_deep_frame = msgspec.json.Decoder(_DeepFrameText)
_diffs = msgspec.json.Decoder(list[_TxDiffText])
_NOTHING = _AccountText()


def decode_geth_calls(raw: bytes, texts: HexTexts | None = None) -> tuple[Trace, ...]:
    """Decode callTracer's frames, transaction by transaction."""
    try:
        try:
            traces: Sequence[_TraceText] = _traces.decode(raw)
        except RecursionError:  # calls may nest 1,024 deep, which is more than msgspec allows
            traces = _deep(raw)
        reader = _CallTraceReader(texts or HexTexts())
        return tuple([reader.trace(trace) for trace in traces])
    except IncompleteBlock:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, WireError) as error:
        raise WireError(f"traces: {error}") from error


def decode_geth_diffs(raw: bytes, texts: HexTexts | None = None) -> tuple[TxDiff, ...]:
    """Decode what each transaction changed, as prestateTracer reports it."""
    try:
        reader = _PrestateReader(texts or HexTexts())
        return tuple([reader.diff(text) for text in _diffs.decode(raw)])
    except IncompleteBlock:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"diffs: {error}") from error


class _CallTraceReader(HexReader):
    __slots__ = ()

    def trace(self, text: _TraceText) -> Trace:
        if text.result is None:
            raise _failed(text.tx_hash, text.error)
        tx_hash = b"" if text.tx_hash is None else self.word[text.tx_hash]
        if not text.result.calls:
            return Trace(tx_hash, (self._frame(text.result, 0, is_reverted=text.result.error is not None),), 1)
        frames = []
        number = 0
        pending = [(text.result, False)]  # a stack, not recursion: the sender controls the depth
        while pending:
            one, is_inside_failure = pending.pop()
            is_reverted = is_inside_failure or one.error is not None
            if number == 0 or one.type in _STORED_OPCODES:
                frame = self._frame(one, number, is_reverted=is_reverted)
                if number == 0 or frame.value or one.type not in ("CALL", "CALLCODE"):
                    frames.append(frame)
            number += 1
            if one.calls:
                pending.extend([(child, is_reverted) for child in reversed(one.calls)])
        return Trace(tx_hash, tuple(frames), number)

    def _frame(self, text: _FrameText, number: int, *, is_reverted: bool) -> CallFrame:
        """Fields are given in the order of the struct, which costs less than by name."""
        opcode, to = text.type, text.to
        # anvil leaves both out where a contract destroys itself in favour of itself and lives on: nothing moves.
        if not to and text.error is None and opcode != "SELFDESTRUCT":
            raise WireError(f"a {opcode} frame without an error has no recipient")
        return CallFrame(
            number,
            opcode,
            self.address[text.from_],
            # Some clients send the address of a failed creation, others do not: no contract exists there.
            b"" if not to or (text.error is not None and opcode in CREATIONS) else self.address[to],
            self.amount[text.value] if text.value else 0,
            self.count[text.gas],
            self.count[text.gas_used],
            is_reverted,
            opcode == "CREATE2" and text.input == CREATE3_PROXY_CODE,
        )


class _PrestateReader:
    __slots__ = ("address", "amount", "word")

    def __init__(self, texts: HexTexts) -> None:
        self.amount = texts.amount
        self.address = texts.address
        self.word = texts.word

    def diff(self, text: _TxDiffText) -> TxDiff:
        if text.result is None:
            raise _failed(text.tx_hash, text.error)
        pre, post = text.result.pre, text.result.post
        accounts = [self._account(address, before, post.get(address)) for address, before in pre.items()]
        accounts += [self._account(address, _NOTHING, post[address]) for address in post if address not in pre]
        return TxDiff(b"" if text.tx_hash is None else self.word[text.tx_hash], tuple(accounts))

    def _account(self, address: str, before: _AccountText, after: _AccountText | None) -> AccountDiff:
        """Fields are given in the order of the struct, which costs less than by name."""
        amount, nonce = self.amount, before.nonce
        balance = amount[before.balance] if before.balance else 0
        had_code = (before.code_hash is not None or before.code is not _ABSENT) and _has_code(before)
        if after is None:
            changed_storage = _has_storage(before.storage)
            return AccountDiff(self.address[address], balance, 0, had_code, False, True, changed_storage)
        changed_storage = changed_implementation = False
        storage = b""
        if before.storage is not _ABSENT or after.storage is not _ABSENT:  # of most accounts only the balance changes
            both = b"\n".join((before.storage, after.storage))
            changed_storage = (
                len(both) > 2 * _NO_STORAGE_SIZE + 1 or _has_storage(before.storage) or _has_storage(after.storage)
            )
            changed_implementation = _IMPLEMENTATION_SLOT.search(both) is not None
            storage = both if changed_storage else b""
        return AccountDiff(
            self.address[address],
            balance,
            amount[after.balance] if after.balance else balance,
            had_code,
            _has_code(after) if after.code_hash or after.code is not _ABSENT else had_code,
            False,
            changed_storage,
            changed_implementation,
            amount[nonce] if isinstance(nonce, str) else nonce or 0,
            storage,
        )


def _has_storage(storage: msgspec.Raw) -> bool:
    return bytes(storage) not in _NO_STORAGE


def _has_code(account: _AccountText) -> bool:
    if account.code is not _ABSENT:
        return memoryview(account.code).nbytes > _NO_CODE_SIZE
    return account.code_hash is not None and account.code_hash not in _NO_CODE_HASHES


def _failed(tx_hash: str | None, error: msgspec.Raw) -> IncompleteBlock:
    reason = shown(bytes(error).decode(errors="replace"))
    return IncompleteBlock(f"no trace of transaction {shown(tx_hash or '')}: {reason}")


def _deep(raw: bytes) -> Sequence[_TraceText]:
    """Decode frames that nest deeper than msgspec reads: each piece is decoded and put where it was cut out."""
    cut = CutJson(raw)
    traces = _deep_traces.decode(cut.text)
    pending = [trace.result for trace in traces if trace.result is not None]
    while pending:
        frame = pending.pop()
        calls = _deep_calls.decode(cut.piece(frame.calls)) if isinstance(frame.calls, str) else frame.calls
        children = [_deep_frame.decode(cut.piece(it)) if isinstance(it, str) else it for it in calls or ()]
        frame.calls = [*children]
        pending += children
    return traces
