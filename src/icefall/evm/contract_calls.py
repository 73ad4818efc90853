"""The calls of token contracts: their call data, strict decoding of what they return, and many of them in one batch."""

import re
from collections.abc import Sequence
from typing import Protocol

from icefall.evm.model import DECIMALS_MAX
from icefall.evm.standards import STANDARDS, Holding, TokenStandard
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import Aborted, NoState, NotThere, Reverted
from icefall.upstream.evm.state import At, ContractCall, StateCall

TEXT_SIZE_MAX = 256
WORD = 32
NAME, SYMBOL, DECIMALS = (bytes.fromhex(selector) for selector in ("06fdde03", "95d89b41", "313ce567"))
_OF_HOLDING = {standard.holding: standard for standard in STANDARDS}
# C0 and C1 controls, direction marks and overrides, line and paragraph separators, the byte order mark.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
Answers = list[bytes]  # of one row; empty where the contract reverts


class StateSource(Protocol):
    """The state of a chain, as the indexer reads it from upstreams."""

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]: ...

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]: ...

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]: ...

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]: ...


class NewestStateSource(StateSource, Protocol):
    """The same, with the number of the newest block: its state is there when that of old blocks is pruned."""

    async def head(self) -> int: ...


class HeadSource(Protocol):
    """The newest block of an upstream, and calls at its state."""

    async def head(self) -> int: ...

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]: ...


# -- calls -------------------------------------------------------------------------------------------------------


def holding_call(standard: TokenStandard, token: bytes, holder: bytes, token_id: int) -> ContractCall:
    """The call that returns what `holder` has, or who owns `token_id`; what the standard does not name is ignored."""
    data = standard.holding_selector
    if standard.holding is not Holding.OWNER:
        data += holder.rjust(WORD, b"\0")
    if standard.has_ids:
        data += token_id.to_bytes(WORD, "big")
    return ContractCall(token, data)


def balance_of(token: bytes, holder: bytes) -> ContractCall:
    return holding_call(_OF_HOLDING[Holding.AMOUNT], token, holder, 0)


def balance_of_id(token: bytes, holder: bytes, token_id: int) -> ContractCall:
    return holding_call(_OF_HOLDING[Holding.AMOUNT_BY_ID], token, holder, token_id)


def owner_of(token: bytes, token_id: int) -> ContractCall:
    return holding_call(_OF_HOLDING[Holding.OWNER], token, b"", token_id)


def uri_call(standard: TokenStandard, token: bytes, token_id: int) -> ContractCall:
    """The call that returns the URI of a token ID: tokenURI(id) or uri(id)."""
    return ContractCall(token, standard.uri_selector + token_id.to_bytes(WORD, "big"))


def decimals(token: bytes) -> ContractCall:
    return ContractCall(token, DECIMALS)


# -- many at once ------------------------------------------------------------------------------------------------


async def call_each(
    upstream: HeadSource, rows: Sequence[Sequence[ContractCall]], at: At | None = None
) -> list[Answers | UpstreamFailure]:
    """The answers to each row's calls at a block, the latest if `at` is None, or the failure of that row: one contract
    that fails does not fail the other rows. UpstreamFailure where the upstream does not answer at all, NotThere where
    it does not have the block."""
    if not rows:
        return []
    return await _call(upstream, rows, await upstream.head() if at is None else at)


async def _call(
    upstream: HeadSource, rows: Sequence[Sequence[ContractCall]], at: At
) -> list[Answers | UpstreamFailure]:
    try:
        answers = iter(await upstream.answers([call for calls in rows for call in calls], at))
    except UpstreamFailure as failure:
        head = await upstream.head()  # raises if the failure is not about these calls
        if isinstance(at, int):
            at = head
        elif isinstance(failure, NotThere | NoState):
            raise
        if len(rows) == 1:
            return [failure]
        half = len(rows) // 2
        return [*await _call(upstream, rows[:half], at), *await _call(upstream, rows[half:], at)]
    return [_row_answers([next(answers) for _ in calls]) for calls in rows]


def _row_answers(answers: Sequence[bytes | Reverted]) -> Answers | UpstreamFailure:
    """The answers of one row. A revert is an answer; a call that the upstream aborted may succeed another time."""
    aborted = next((answer for answer in answers if isinstance(answer, Aborted)), None)
    return aborted or [b"" if isinstance(answer, Reverted) else answer for answer in answers]


# -- answers -----------------------------------------------------------------------------------------------------


def uint_of(answer: bytes | Reverted, most: int = (1 << 256) - 1) -> int | None:
    """The number a contract returned; None if it reverted or returned anything but one word."""
    if isinstance(answer, Reverted) or len(answer) != 32:
        return None
    number = int.from_bytes(answer, "big")
    return number if number <= most else None


def address_of(answer: bytes | Reverted) -> bytes | None:
    """The address a contract returned; None if it reverted or returned anything else."""
    number = uint_of(answer, (1 << 160) - 1)
    return None if number is None else number.to_bytes(20, "big")


def text_of(answer: bytes) -> str:
    """The text that name() or symbol() returned; empty if the answer is invalid."""
    is_bytes32 = len(answer) == WORD and answer[0] != 0
    text = _utf8(answer.rstrip(b"\0") if is_bytes32 else string_of(answer))
    return printable(text or "")[:TEXT_SIZE_MAX]


def decimals_of(answer: bytes) -> int | None:
    """The number that decimals() returned: one word, at most 255."""
    number = int.from_bytes(answer, "big")
    return number if len(answer) == WORD and number <= DECIMALS_MAX else None


def uri_of(answer: bytes) -> str | None:
    """The URI that tokenURI(id) or uri(id) returned, without surrounding spaces; None: not a string."""
    text = _utf8(string_of(answer))
    return None if text is None else text.strip(" \t\r\n\0")


def with_id(uri: str, token_id: int) -> str:
    """Fill the ID of one token into the URI of all: `{id}` stands for 64 lower-case hex digits."""
    return uri.replace("{id}", f"{token_id:064x}")


def printable(text: str) -> str:
    """Drop characters that are invisible or change how the others are displayed."""
    return _UNPRINTABLE.sub("", text)


def string_of(answer: bytes) -> bytes | None:
    """The bytes of an ABI string or bytes value that is the only thing returned."""
    if len(answer) < 2 * WORD:
        return None
    start = int.from_bytes(answer[:WORD], "big") + WORD
    if start > len(answer):
        return None
    size = int.from_bytes(answer[start - WORD : start], "big")
    return answer[start : start + size] if size <= len(answer) - start else None


def _utf8(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
