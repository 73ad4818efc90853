"""Results of debug_traceBlockByNumber: callTracer, and prestateTracer in diff mode."""

from collections.abc import Iterator
from typing import Any

import msgspec

from icefall.wire.errors import WireError
from icefall.wire.evm.hex import HexAddresses, HexAmounts, HexNumbers, fixed, shown
from icefall.wire.evm.types import AccountDiff, CallFrame, IncompleteBlock, Trace, TxDiff
from icefall.wire.text import jsondeep

# The 16 bytes that CREATE3 libraries deploy with CREATE2: a proxy that runs CREATE on whatever it is called with.
CREATE3_PROXY_CODE = "0x67363d3d37363d34f03d5260086018f3"

_CREATIONS = ("CREATE", "CREATE2")
_MAY_MATTER = frozenset(["CALL", "CALLCODE", "CREATE", "CREATE2", "SELFDESTRUCT"])
_NO_CODE_SIZE = 4  # of `"0x"` with its quotes, and of null
_NO_CODE_HASHES = ("0x" + "00" * 32, "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
_NO_STORAGE = (b"", b"{}", b"null")


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
    code: msgspec.Raw = msgspec.Raw()  # most of a diff is code, of which only the presence counts
    code_hash: str | None = None  # geth: its only word about a delegation (EIP-7702) that was cleared
    storage: msgspec.Raw = msgspec.Raw()


class _DiffText(msgspec.Struct, gc=False):
    pre: dict[str, _AccountText]
    post: dict[str, _AccountText]


class _TxDiffText(msgspec.Struct, gc=False, rename="camel"):
    tx_hash: str | None = None
    result: _DiffText | None = None
    error: msgspec.Raw = msgspec.Raw()


_traces = msgspec.json.Decoder(list[_TraceText])
_diffs = msgspec.json.Decoder(list[_TxDiffText])
_NOTHING = _AccountText()


def decode_traces(raw: bytes) -> tuple[Trace, ...]:
    """callTracer's frames, transaction by transaction."""
    try:
        try:
            texts = _traces.decode(raw)
        except RecursionError:  # calls may nest 1,024 deep, which is more than this decoder dares
            texts = _deep(raw)
        reader = _Frames()
        return tuple([reader.trace(text) for text in texts])
    except IncompleteBlock:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, WireError) as error:
        raise WireError(f"traces: {error}") from error


def decode_diffs(raw: bytes) -> tuple[TxDiff, ...]:
    """prestateTracer's view of what each transaction changed."""
    try:
        reader = _Diffs()
        return tuple([reader.diff(text) for text in _diffs.decode(raw)])
    except IncompleteBlock:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WireError) as error:
        raise WireError(f"diffs: {error}") from error


class _Frames:
    __slots__ = ("address", "amount", "count")

    def __init__(self) -> None:
        self.count = HexNumbers()
        self.amount = HexAmounts()
        self.address = HexAddresses()

    def trace(self, text: _TraceText) -> Trace:
        if text.result is None:
            raise _failed(text.tx_hash, text.error)
        frames = []
        number = 0
        pending = [(text.result, False)]  # a stack, not recursion: depth is the sender's choice
        while pending:
            one, is_inside_failure = pending.pop()
            is_reverted = is_inside_failure or one.error is not None
            if number == 0 or one.type in _MAY_MATTER:
                frame = self._frame(one, number, is_reverted=is_reverted)
                if number == 0 or frame.value or one.type not in ("CALL", "CALLCODE"):
                    frames.append(frame)
            number += 1
            if one.calls:
                pending.extend([(child, is_reverted) for child in reversed(one.calls)])
        return Trace(b"" if text.tx_hash is None else fixed(text.tx_hash, 32), tuple(frames), number)

    def _frame(self, text: _FrameText, number: int, *, is_reverted: bool) -> CallFrame:
        # anvil leaves both out where a contract destroys itself in favour of itself and lives on: nothing moves.
        if not text.to and text.error is None and text.type != "SELFDESTRUCT":
            raise WireError(f"a {text.type} frame without an error has no recipient")
        return CallFrame(
            number=number,
            kind=text.type,
            sender=self.address[text.from_],
            # Some clients name the place of a creation that failed, others do not: nothing is there.
            to=b"" if not text.to or (text.error is not None and text.type in _CREATIONS) else self.address[text.to],
            value=self.amount[text.value] if text.value else 0,
            gas=self.count[text.gas],
            gas_used=self.count[text.gas_used],
            is_reverted=is_reverted,
            is_create3_proxy=text.type == "CREATE2" and text.input == CREATE3_PROXY_CODE,
        )


class _Diffs:
    __slots__ = ("address", "amount")

    def __init__(self) -> None:
        self.amount = HexAmounts()
        self.address = HexAddresses()

    def diff(self, text: _TxDiffText) -> TxDiff:
        if text.result is None:
            raise _failed(text.tx_hash, text.error)
        return TxDiff(b"" if text.tx_hash is None else fixed(text.tx_hash, 32), tuple(self._accounts(text.result)))

    def _accounts(self, text: _DiffText) -> Iterator[AccountDiff]:
        pre, post = text.pre, text.post
        for address, before in pre.items():
            yield self._account(address, before, post.get(address))
        for address, after in post.items():
            if address not in pre:
                yield self._account(address, _NOTHING, after)

    def _account(self, address: str, before: _AccountText, after: _AccountText | None) -> AccountDiff:
        balance = self.amount[before.balance] if before.balance else 0
        had_code = _has_code(before)
        if after is None:
            return AccountDiff(self.address[address], balance, 0, had_code, False, True, _has_storage(before))
        return AccountDiff(
            address=self.address[address],
            balance_before=balance,
            balance_after=self.amount[after.balance] if after.balance else balance,
            had_code=had_code,
            has_code=_has_code(after) if after.code_hash or _size(after.code) else had_code,
            is_gone=False,
            changed_storage=_has_storage(before) or _has_storage(after),
        )


def _has_code(account: _AccountText) -> bool:
    if _size(account.code):
        return _size(account.code) > _NO_CODE_SIZE
    return account.code_hash is not None and account.code_hash not in _NO_CODE_HASHES


def _has_storage(account: _AccountText) -> bool:
    return bytes(account.storage) not in _NO_STORAGE


def _size(raw: msgspec.Raw) -> int:
    """Bytes of JSON text; 0 where the field is absent."""
    return memoryview(raw).nbytes


def _failed(tx_hash: str | None, error: msgspec.Raw) -> IncompleteBlock:
    reason = shown(bytes(error).decode(errors="replace"))
    return IncompleteBlock(f"no trace of transaction {shown(tx_hash or '')}: {reason}")


def _deep(raw: bytes) -> list[_TraceText]:
    """The same texts, for nesting that a recursive decoder refuses."""
    try:
        items = jsondeep.decode(raw)
        if not isinstance(items, list):
            raise WireError("expected a list")
        return [_deep_trace(item) for item in items]
    except (msgspec.ValidationError, AttributeError, TypeError) as error:
        raise WireError(str(error)) from error


def _deep_trace(item: dict[str, Any]) -> _TraceText:
    root = item.get("result")
    trace = _TraceText(
        tx_hash=msgspec.convert(item.get("txHash"), str | None),
        error=msgspec.Raw(msgspec.json.encode(item["error"]) if "error" in item else b""),
    )
    if root is not None:
        trace.result = _shallow(root)
        pending = [(trace.result, root)]
        while pending:
            text, values = pending.pop()
            children = [(_shallow(child), child) for child in values.get("calls") or ()]
            text.calls = [child for child, _ in children]
            pending.extend(children)
    return trace


def _shallow(values: dict[str, Any]) -> _FrameText:
    return msgspec.convert({key: value for key, value in values.items() if key != "calls"}, _FrameText)
