"""What a worker asks an upstream during a request: little, briefly, and nothing of it is stored.

Not the indexer's EvmUpstream: that one first finds out what an upstream can trace, and is patient.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from icefall.errors import BadGateway, Unavailable
from icefall.upstream.client import InvalidAnswer, Limits, Retry, UpstreamDown, UpstreamFailure
from icefall.upstream.evm import state as evm_state
from icefall.upstream.evm.client import EvmClient
from icefall.upstream.evm.errors import NoState, NotThere, Reverted, WrongChain
from icefall.upstream.evm.probe import quantity
from icefall.upstream.evm.state import At, ContractCall
from icefall.upstream.meter import Clock

T = TypeVar("T")

PATIENCE_S = 5.0
AT_ONCE = 16
WAITING_MAX = 64
REST_S = 2.0  # for an upstream that was silent: meanwhile nobody waits for it
_ONCE = Retry(attempts=1, first_s=0.1, longest_s=0.5, asked_for_max_s=1.0)


class _Source:
    """One upstream; asked for its chain once, before anything else."""

    def __init__(self, client: EvmClient, chain_id: int) -> None:
        self.client = client
        self.rests_until = 0.0
        self._chain_id = chain_id
        self._is_ours = False

    async def ready(self) -> EvmClient:
        if not self._is_ours:
            told = quantity(await self.client.one("eth_chainId"), "eth_chainId")
            if told != self._chain_id:
                raise WrongChain(f"it serves chain {told}, not {self._chain_id}")
            self._is_ours = True
        return self.client


class RequestState:
    """The state of one chain. No connection is made before the first question.

    BadGateway where an upstream answers nonsense, Unavailable where none answers in time or has the state.
    """

    def __init__(
        self, urls: Sequence[str], chain_id: int, *, patience_s: float = PATIENCE_S, clock: Clock | None = None
    ) -> None:
        self._patience_s = patience_s
        self._clock = clock or Clock()
        limits = Limits(connect_s=patience_s * 0.4, total_s=patience_s * 0.4, calls_at_once=AT_ONCE)  # time for another
        self._sources = [
            _Source(EvmClient(url, clock=self._clock, limits=limits, retry=_ONCE), chain_id) for url in urls
        ]
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def close(self) -> None:
        for source in self._sources:
            await source.client.close()

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]:
        """Native balances in wei, in order."""
        return await self._ask(at, lambda client: evm_state.balances(client, addresses, at))

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
        """What contracts return, in order."""
        return await self._ask(at, lambda client: evm_state.answers(client, calls, at))

    async def _ask(self, at: At, work: Callable[[EvmClient], Awaitable[T]]) -> T:
        if self._waiting >= WAITING_MAX:
            raise Unavailable("too many requests wait for the chain's state: try again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience_s), self._slots:
                return await self._first_answer(work)
        except TimeoutError as error:
            raise Unavailable(
                f"the chain's state was asked for and did not come within {self._patience_s:g} s"
            ) from error
        except UpstreamFailure as failure:
            raise _told(failure, at) from failure
        finally:
            self._waiting -= 1

    async def _first_answer(self, work: Callable[[EvmClient], Awaitable[T]]) -> T:
        """Of the upstreams in their order, each twice at most. What was said last where none has an answer."""
        failure: UpstreamFailure = UpstreamDown("every upstream was silent a moment ago")
        refused = set()
        for source in (*self._sources, *self._sources):
            if source in refused or source.rests_until > self._clock.now():
                continue
            try:
                return await work(await source.ready())
            except UpstreamFailure as said:
                failure = said
                if isinstance(said, UpstreamDown) and said.timed_out:
                    source.rests_until = self._clock.now() + REST_S
                elif not said.again:
                    refused.add(source)
        raise failure


def _told(failure: UpstreamFailure, at: At) -> BadGateway | Unavailable:
    """For people, without a word of the upstream's own: those may hold its address, and that a key."""
    where = f"block {at}" if isinstance(at, int) else f"block 0x{at.hex()}"
    if isinstance(failure, InvalidAnswer):
        return BadGateway(f"the upstream's answer about the state at {where} makes no sense")
    if isinstance(failure, NoState):
        return Unavailable(f"the upstream no longer keeps the state at {where}: an archive node is needed")
    if isinstance(failure, NotThere):
        return Unavailable(f"the upstream does not have {where}: it is behind, or the chain was reorganised")
    return Unavailable(f"the state at {where} must be asked of an upstream, and none answers")
