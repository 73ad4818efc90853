"""Classifies JSON-RPC errors of EVM clients. Codes are reused for different things and texts differ between clients, so
a table of both decides."""

import re
from typing import Any, NamedTuple

from icefall.upstream.client import (
    InvalidAnswer,
    UpstreamBusy,
    UpstreamDown,
    UpstreamError,
    UpstreamFailure,
    WrongUpstream,
)
from icefall.wire.evm.decode import TRACE_FORMATS


class RpcRefusal(UpstreamError):
    """A JSON-RPC error in answer to one call."""

    def __init__(self, text: str, code: int = 0, data: Any = None) -> None:
        super().__init__(text)
        self.code = code
        self.data = data


class NotThere(RpcRefusal):
    """A block or transaction that the chain does not have: beyond the head, or no longer part of it. Not a failure."""


class Unsupported(RpcRefusal):
    """The upstream does not offer this method, or not to us."""


class NoState(RpcRefusal):
    """The state of that block has been pruned: this is no archive node."""


class Untraceable(RpcRefusal):
    """A trace of the genesis was requested: nothing was executed there."""


class Reverted(RpcRefusal):
    """An eth_call that ran and failed. `output` is what it returned."""

    @property
    def output(self) -> str:
        return self.data if isinstance(self.data, str) else "0x"


class Aborted(Reverted):
    """An eth_call that the client aborted: the result of the contract cannot be known."""


class TooHeavyAlone(RpcRefusal):
    """A call that is too much for one request, even alone: it took too long, or its answer is too long."""


class BatchRefused(UpstreamError):
    """The batch is too large. `counted`: because of the number of its calls, not because of the size of the answer."""

    def __init__(self, text: str, *, counted: bool = True) -> None:
        super().__init__(text)
        self.counted = counted


class TooHeavy(UpstreamError):
    """The answer would be larger, or take longer, than the upstream allows: send smaller batches."""


class IncompleteAnswer(InvalidAnswer):
    """An empty or partial answer, or parts that do not belong together. Never taken for an empty block."""

    def __init__(self, text: str) -> None:
        super().__init__(text, retryable=True)


class ReorgDuringFetch(IncompleteAnswer):
    """The chain changed between the requests for one block."""


class WrongChain(WrongUpstream):
    """The upstream serves another chain than the configured one, now."""


FailureType = type[RpcRefusal] | type[UpstreamBusy] | type[BatchRefused] | type[TooHeavy] | type[UpstreamDown]


class _ErrorRule(NamedTuple):
    failure: FailureType
    codes: frozenset[int]
    text: re.Pattern[str] | None


def _rule(failure: FailureType, *codes: int, text: str = "") -> _ErrorRule:
    return _ErrorRule(failure, frozenset(codes), re.compile(text, re.IGNORECASE) if text else None)


# The error text of a failed execution may come from the contract itself: it is checked first, and for eth_call only.
_EXECUTION = _rule(
    Reverted,
    3,
    -32015,
    text=r"^execution reverted|^(vm|evm) (error|exception|execution)|^out of gas|^invalid (opcode|jump)"
    r"|^stack (und|ov)er|^write protection|^gas (required exceeds|uint64 overflow)|^max code size"
    r"|^contract creation code storage",
)

# The first row that fits decides, by text before code: -32005 alone is used for four different things.
_BY_TEXT = (
    _rule(Untraceable, text=r"genesis is not traceable"),
    _rule(Unsupported, text=r"\bmethod\b.*(not|n't|disabled|forbidden|unknown|unsupported)"),
    _rule(
        BatchRefused,
        text=r"\bbatch(es|ing)?\b.*(too (large|big|many|long)|limit|exceed|size|not (allowed|supported|enabled)"
        r"|disabled|maximum|more than)|(exceed|max|limit|too many|support).*\bbatch",
    ),
    _rule(
        TooHeavy, text=r"(response|result|answer|body|payload|entity|content).*(too (large|big|long)|exceed|size limit)"
    ),
    _rule(
        NoState,
        text=r"missing trie node|historical state|(state|history|data)\b.*\b(not available|unavailable)\b|pruned"
        r"|\bno state\b|state not found|target block exceeds|archive",
    ),
    _rule(
        NotThere,
        text=r"unfinalized data|header( for hash)? not found|block (\S+ )?not found|unknown block|BlockOutOfRange"
        r"|resource not found|after last accepted block|could not find block|transaction not found",
    ),
    _rule(
        Unsupported,
        text=r"(namespace|module|tracer|api)\b.*(not|n't|disabled|forbidden|unknown|unsupported)"
        r"|(unknown|unsupported|invalid|no such) (method|tracer|module)|ReferenceError: \w+ is not defined"
        r"|not (whitelisted|supported|enabled)|upgrade your plan|only available|paid (plan|tier)",
    ),
    _rule(
        UpstreamBusy,
        text=r"rate.?limit|too many requests|(request|rate|call|credit|usage)s?( count)? (limit|exceeded|quota)"
        r"|exceeded .*(capacity|compute|credits|quota|limit)|/second|throttl|try again later|\bbusy\b|overload",
    ),
    _rule(TooHeavy, text=r"time[d]?.?out|deadline exceeded|took too long|query exceeds"),
    _rule(UpstreamDown, text=r"internal error|unavailable|bad gateway|connection|temporar|\beof\b|backend|upstream"),
)
_BY_CODE = (
    _rule(Unsupported, -32601, -32004),
    _rule(UpstreamBusy, 429, -32005, -32007, -32029),
    _rule(TooHeavy, -32002, -32003, 413),
    _rule(UpstreamDown, -32603, 500, 502, 503, 504),
    _rule(NotThere, -32001),
)

# geth with its state by hash (--state.scheme=hash, and older databases) says no more than this of state it has pruned.
_PRUNED_BY_HASH = "not supported"
_STATE_METHODS = ("eth_call", "eth_getBalance", "eth_getCode", "eth_getStorageAt")

# Where `null` means that there is no such thing; anywhere else it is an incomplete answer.
NULL_IS_NOT_THERE = (
    "eth_getBlockByNumber",
    "eth_getBlockByHash",
    "eth_getBlockReceipts",
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
    *dict.fromkeys(request.call(0, False)[0] for traces in TRACE_FORMATS for request in traces.requests),
)


def classify(method: str, code: int, text: str) -> FailureType:
    """Return the exception class for an error in answer to `method`; RpcRefusal if no rule matches."""
    if method == "eth_call" and "execution aborted" in text:
        return Aborted
    if method == "eth_call" and (code in _EXECUTION.codes or _fits(_EXECUTION, text)):
        return Reverted
    if code == -32601:
        return Unsupported
    if method in _STATE_METHODS and text == _PRUNED_BY_HASH:
        return NoState
    for row in _BY_TEXT:
        if _fits(row, text):
            return row.failure
    return next((row.failure for row in _BY_CODE if code in row.codes), RpcRefusal)


def _fits(row: _ErrorRule, text: str) -> bool:
    return row.text is not None and row.text.search(text[:500]) is not None


def failure_of(name: str, method: str, code: int, text: str, data: Any = None) -> UpstreamFailure:
    """Return the error as an exception: to raise or, if an RpcRefusal, to return as an outcome."""
    failure = classify(method, code, text)
    if issubclass(failure, RpcRefusal):
        return failure(text, code, data)
    return failure(f"{name} answered {method}: {text} ({code})")
