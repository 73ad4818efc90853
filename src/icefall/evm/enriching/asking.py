"""Questions to contracts about many rows at once, such that one contract nobody can call does not spoil the others."""

from collections.abc import Sequence

from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import Aborted, Reverted
from icefall.upstream.evm.state import ContractCall
from icefall.upstream.evm.upstream import EvmUpstream

Answers = list[bytes]  # of one row; empty where the contract reverts


async def ask_each(upstream: EvmUpstream, rows: Sequence[Sequence[ContractCall]]) -> list[Answers | UpstreamFailure]:
    """The answers to each row's calls at the latest block, or why there are none for that row.

    An upstream that answers nothing at all is raised.
    """
    return await _ask(upstream, rows, await upstream.head()) if rows else []


async def _ask(
    upstream: EvmUpstream, rows: Sequence[Sequence[ContractCall]], at: int
) -> list[Answers | UpstreamFailure]:
    try:
        told = iter(await upstream.answers([call for calls in rows for call in calls], at))
    except UpstreamFailure as failure:
        at = await upstream.head()  # raised if it is not about these calls
        if len(rows) == 1:
            return [failure]
        half = len(rows) // 2
        return [*await _ask(upstream, rows[:half], at), *await _ask(upstream, rows[half:], at)]
    return [_settled([next(told) for _ in calls]) for calls in rows]


def _settled(answers: Sequence[bytes | Reverted]) -> Answers | UpstreamFailure:
    """A contract that was broken off may be heard out another time; one that reverts has answered."""
    aborted = next((answer for answer in answers if isinstance(answer, Aborted)), None)
    return aborted or [b"" if isinstance(answer, Reverted) else answer for answer in answers]
