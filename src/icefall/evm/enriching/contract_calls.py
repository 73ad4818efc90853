"""Calls contracts for many rows in one batch, so that one failing contract does not fail the other rows."""

import re
from collections.abc import Sequence

from icefall.evm.model import DECIMALS_MAX
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import Aborted, Reverted
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.evm.rlp import keccak256

Answers = list[bytes]  # of one row; empty where the contract reverts


async def call_each(upstream: EvmUpstream, rows: Sequence[Sequence[ContractCall]]) -> list[Answers | UpstreamFailure]:
    """The answers to each row's calls at the latest block, or the failure of that row.

    Raises UpstreamFailure where the upstream does not answer at all.
    """
    return await _call(upstream, rows, await upstream.head()) if rows else []


async def _call(
    upstream: EvmUpstream, rows: Sequence[Sequence[ContractCall]], at: int
) -> list[Answers | UpstreamFailure]:
    try:
        answers = iter(await upstream.answers([call for calls in rows for call in calls], at))
    except UpstreamFailure as failure:
        at = await upstream.head()  # raises if the failure is not about these calls
        if len(rows) == 1:
            return [failure]
        half = len(rows) // 2
        return [*await _call(upstream, rows[:half], at), *await _call(upstream, rows[half:], at)]
    return [_row_answers([next(answers) for _ in calls]) for calls in rows]


def _row_answers(answers: Sequence[bytes | Reverted]) -> Answers | UpstreamFailure:
    """A revert is an answer; a call that the upstream aborted may succeed another time."""
    aborted = next((answer for answer in answers if isinstance(answer, Aborted)), None)
    return aborted or [b"" if isinstance(answer, Reverted) else answer for answer in answers]


TEXT_SIZE_MAX = 256
WORD = 32
# C0 and C1 controls, direction marks and overrides, line and paragraph separators, the byte order mark.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def _selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


NAME, SYMBOL, DECIMALS = _selector("name()"), _selector("symbol()"), _selector("decimals()")
_TOKEN_URI, _URI = _selector("tokenURI(uint256)"), _selector("uri(uint256)")


def token_uri_call(token_id: int) -> bytes:
    """Call data of tokenURI(id), for an ERC-721 token."""
    return _TOKEN_URI + token_id.to_bytes(WORD, "big")


def uri_call(token_id: int) -> bytes:
    """Call data of uri(id), for an ERC-1155 token."""
    return _URI + token_id.to_bytes(WORD, "big")


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
    """An ERC-1155 URI for one token: `{id}` stands for 64 lower-case hex digits."""
    return uri.replace("{id}", f"{token_id:064x}")


def printable(text: str) -> str:
    """Without characters that are invisible or change how the others are displayed."""
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
