"""Calls contracts for many rows in one batch, so that one failing contract does not fail the other rows."""

from collections.abc import Sequence

from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import Aborted, Reverted
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream

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
