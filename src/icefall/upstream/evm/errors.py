"""What an EVM client's complaint means: codes are shared by unlike things, texts differ, so a table of both decides."""

import re
from typing import Any, NamedTuple

from icefall.upstream.client import InvalidAnswer, UpstreamBusy, UpstreamDown, UpstreamError, UpstreamFailure


class RpcRefusal(UpstreamError):
    """A JSON-RPC error: it answered, and the answer is no."""

    def __init__(self, text: str, code: int = 0, data: Any = None) -> None:
        super().__init__(text)
        self.code = code
        self.data = data


class NotThere(RpcRefusal):
    """No such block or transaction: beyond the head, or no longer part of the chain. Not a failure."""


class Unsupported(RpcRefusal):
    """It does not offer this method, or not to us."""


class NoState(RpcRefusal):
    """The state of that block has been thrown away: this is no archive."""


class Untraceable(RpcRefusal):
    """Genesis: nothing was executed there."""


class Reverted(RpcRefusal):
    """An eth_call that ran and failed. `output` is what it returned."""

    @property
    def output(self) -> str:
        return self.data if isinstance(self.data, str) else "0x"


class Aborted(Reverted):
    """An eth_call that the client broke off: nobody will ever know what the contract says."""


class BatchRefused(UpstreamError):
    """It will not take this many requests at once. `counted`: because of their number, not of what they come to."""

    def __init__(self, text: str, *, counted: bool = True) -> None:
        super().__init__(text)
        self.counted = counted


class TooHeavy(UpstreamError):
    """The answer is larger, or takes longer, than it allows: ask for less at once."""


class IncompleteAnswer(InvalidAnswer):
    """An empty or partial answer, or parts that do not belong together. Never taken for an empty block."""

    def __init__(self, text: str) -> None:
        super().__init__(text, again=True)


class ReorgDuringFetch(IncompleteAnswer):
    """The chain changed between the requests for one block."""


class WrongChain(UpstreamError):
    """It serves another chain than the one we were told of."""


Meaning = type[RpcRefusal] | type[UpstreamBusy] | type[BatchRefused] | type[TooHeavy] | type[UpstreamDown]


class _Row(NamedTuple):
    meaning: Meaning
    codes: frozenset[int]
    text: re.Pattern[str] | None


def _row(meaning: Meaning, *codes: int, text: str = "") -> _Row:
    return _Row(meaning, frozenset(codes), re.compile(text, re.IGNORECASE) if text else None)


# The words of a failed execution may come from the contract itself: they are looked at first, and for eth_call only.
_EXECUTION = _row(
    Reverted,
    3,
    -32015,
    text=r"^execution reverted|^(vm|evm) (error|exception|execution)|^out of gas|^invalid (opcode|jump)"
    r"|^stack (und|ov)er|^write protection|^gas (required exceeds|uint64 overflow)|^max code size"
    r"|^contract creation code storage",
)

# The first row that fits decides, by text before code: -32005 alone is used for four different things.
_BY_TEXT = (
    _row(Untraceable, text=r"genesis is not traceable"),
    _row(Unsupported, text=r"\bmethod\b.*(not|n't|disabled|forbidden|unknown|unsupported)"),
    _row(
        BatchRefused,
        text=r"\bbatch(es|ing)?\b.*(too (large|big|many|long)|limit|exceed|size|not (allowed|supported|enabled)"
        r"|disabled|maximum|more than)|(exceed|max|limit|too many|support).*\bbatch",
    ),
    _row(
        TooHeavy, text=r"(response|result|answer|body|payload|entity|content).*(too (large|big|long)|exceed|size limit)"
    ),
    _row(
        NoState,
        text=r"missing trie node|historical state|(state|history|data)\b.*\b(not available|unavailable)\b|pruned"
        r"|\bno state\b|state not found|target block exceeds|archive",
    ),
    _row(
        NotThere,
        text=r"unfinalized data|header( for hash)? not found|block (\S+ )?not found|unknown block|BlockOutOfRange"
        r"|resource not found|after last accepted block|could not find block|transaction not found",
    ),
    _row(
        Unsupported,
        text=r"(namespace|module|tracer|api)\b.*(not|n't|disabled|forbidden|unknown|unsupported)"
        r"|(unknown|unsupported|invalid|no such) (method|tracer|module)|ReferenceError: \w+ is not defined"
        r"|not (whitelisted|supported|enabled)|upgrade your plan|only available|paid (plan|tier)",
    ),
    _row(
        UpstreamBusy,
        text=r"rate.?limit|too many requests|(request|rate|call|credit|usage)s?( count)? (limit|exceeded|quota)"
        r"|exceeded .*(capacity|compute|credits|quota|limit)|/second|throttl|try again later|\bbusy\b|overload",
    ),
    _row(TooHeavy, text=r"time[d]?.?out|deadline exceeded|took too long|query exceeds"),
    _row(UpstreamDown, text=r"internal error|unavailable|bad gateway|connection|temporar|\beof\b|backend|upstream"),
)
_BY_CODE = (
    _row(Unsupported, -32601, -32004),
    _row(UpstreamBusy, 429, -32005, -32007, -32029),
    _row(TooHeavy, -32002, -32003, 413),
    _row(UpstreamDown, -32603, 500, 502, 503, 504),
    _row(NotThere, -32001),
)

# Where `null` says that there is no such thing; anywhere else it says nothing at all.
NULL_IS_NOT_THERE = (
    "eth_getBlockByNumber",
    "eth_getBlockByHash",
    "eth_getBlockReceipts",
    "eth_getTransactionReceipt",
    "debug_traceBlockByNumber",
    "trace_block",
    "trace_replayBlockTransactions",
)


def meaning(method: str, code: int, text: str) -> Meaning:
    """Which of the above a complaint about a call of `method` is; Refusal where nobody knows."""
    if method == "eth_call" and "execution aborted" in text:
        return Aborted
    if method == "eth_call" and (code in _EXECUTION.codes or _fits(_EXECUTION, text)):
        return Reverted
    if code == -32601:
        return Unsupported
    for row in _BY_TEXT:
        if _fits(row, text):
            return row.meaning
    return next((row.meaning for row in _BY_CODE if code in row.codes), RpcRefusal)


def _fits(row: _Row, text: str) -> bool:
    return row.text is not None and row.text.search(text[:500]) is not None


def made(name: str, method: str, code: int, text: str, data: Any = None) -> UpstreamFailure:
    """The complaint as an exception to raise, or, if a Refusal, to hand back."""
    kind = meaning(method, code, text)
    if issubclass(kind, RpcRefusal):
        return kind(text, code, data)
    return kind(f"{name} answered {method}: {text} ({code})")
