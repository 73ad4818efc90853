"""Calls for chain state that an API request makes to an upstream: few, with a short timeout, and nothing is stored.

Not the indexer's EvmUpstream, which first probes what an upstream can trace and has long timeouts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from icefall.errors import BadGateway, Unavailable
from icefall.upstream.client import InvalidAnswer, Limits, Retry, UpstreamDown, UpstreamFailure
from icefall.upstream.evm import state as evm_state
from icefall.upstream.evm.client import EvmClient
from icefall.upstream.evm.errors import NoState, NotThere, Reverted, Unsupported, WrongChain
from icefall.upstream.evm.probe import quantity
from icefall.upstream.evm.state import At, ContractCall
from icefall.upstream.meter import Clock
from icefall.wire.evm.types import Calls, PlacedTx, Receipt

T = TypeVar("T")

TIMEOUT_S = 5.0
AT_ONCE = 16
WAITING_MAX = 64
BACK_OFF_S = 2.0  # after a timeout: requests do not wait for this upstream again meanwhile
_ONCE = Retry(attempts=1, first_s=0.1, longest_s=0.5, retry_after_max_s=1.0)


class _Source:
    """One upstream. Its chain ID is checked once, before the first call."""

    def __init__(self, client: EvmClient, chain_id: int) -> None:
        self.client = client
        self.backs_off_until = 0.0
        self._chain_id = chain_id
        self._is_checked = False

    async def ready(self) -> EvmClient:
        if not self._is_checked:
            served = quantity(await self.client.call("eth_chainId"), "eth_chainId")
            if served != self._chain_id:
                raise WrongChain(f"it serves chain {served}, not {self._chain_id}")
            self._is_checked = True
        return self.client


class RequestState:
    """The state of one chain. Connects at the first call.

    BadGateway for an invalid answer, Unavailable where no upstream answers in time or has the state.
    """

    def __init__(
        self, urls: Sequence[str], chain_id: int, *, timeout_s: float = TIMEOUT_S, clock: Clock | None = None
    ) -> None:
        self._timeout_s = timeout_s
        self._clock = clock or Clock()
        limits = Limits(
            connect_s=timeout_s * 0.4, total_s=timeout_s * 0.4, calls_at_once=AT_ONCE
        )  # leaves time for another upstream
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
        return await self._call(at, lambda client: evm_state.balances(client, addresses, at))

    async def answers(self, calls: Sequence[ContractCall], at: At, gas: int | None = None) -> list[bytes | Reverted]:
        """Return data of contract calls, in order. `gas`: the limit of each call, where it is not the upstream's."""
        return await self._call(at, lambda client: evm_state.answers(client, calls, at, gas))

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]:
        """The code of contracts, in order; empty where there is none."""
        return await self._call(at, lambda client: evm_state.codes(client, addresses, at))

    async def storage(self, slots: Sequence[tuple[bytes, bytes]], at: At) -> list[bytes]:
        """The words in slots of contracts, in order."""
        return await self._call(at, lambda client: evm_state.storage(client, slots, at))

    async def transaction(self, tx_hash: bytes) -> PlacedTx | None:
        """Fetch a transaction that may be in no block yet; None if the upstream does not know it."""
        return await self._call(None, lambda client: evm_state.transaction(client, tx_hash))

    async def receipt(self, tx_hash: bytes, at: At) -> Receipt:
        """Fetch what a transaction in the block `at` did."""
        return await self._call(at, lambda client: evm_state.receipt(client, tx_hash))

    async def calls(self, tx_hash: bytes, block_hash: bytes) -> Calls:
        """Fetch the calls of a transaction, from an upstream that has it in this block."""
        return await self._call(block_hash, lambda client: evm_state.calls(client, tx_hash, block_hash))

    async def logs(
        self, address: bytes, topics: Sequence[bytes | None], first: int, last: int
    ) -> list[evm_state.FoundLog]:
        return await self._call(last, lambda client: evm_state.logs(client, address, topics, first, last))

    async def _call(self, at: At | None, work: Callable[[EvmClient], Awaitable[T]]) -> T:
        if self._waiting >= WAITING_MAX:
            raise Unavailable("too many requests are waiting for the chain's state: try again in a moment")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._timeout_s), self._slots:
                return await self._first_answer(work)
        except TimeoutError as error:
            raise Unavailable(f"the chain's state was not received within {self._timeout_s:g} s") from error
        except UpstreamFailure as failure:
            raise _public_error(failure, at) from failure
        finally:
            self._waiting -= 1

    async def _first_answer(self, work: Callable[[EvmClient], Awaitable[T]]) -> T:
        """Ask the upstreams in their order, each twice at most. Raises the last failure if none has an answer."""
        failure: UpstreamFailure = UpstreamDown("every upstream timed out a moment ago")
        refused = set()
        for source in (*self._sources, *self._sources):
            if source in refused or source.backs_off_until > self._clock.now():
                continue
            try:
                return await work(await source.ready())
            except UpstreamFailure as error:
                failure = error
                if isinstance(error, UpstreamDown) and error.timed_out:
                    source.backs_off_until = self._clock.now() + BACK_OFF_S
                elif not error.retryable:
                    refused.add(source)
        raise failure


def _public_error(failure: UpstreamFailure, at: At | None) -> BadGateway | Unavailable:
    """Make an error without text of the upstream, which may contain its URL and an API key. `at` None: it was asked for
    what it knows now."""
    where = "this moment" if at is None else f"block {at}" if isinstance(at, int) else f"block 0x{at.hex()}"
    if isinstance(failure, InvalidAnswer):
        return BadGateway(f"the upstream's answer for the state at {where} is invalid")
    if isinstance(failure, NoState):
        return Unavailable(f"the upstream no longer keeps the state at {where}: an archive node is needed")
    if isinstance(failure, NotThere):
        return Unavailable(f"the upstream does not have {where}: it is behind, or the chain was reorganised")
    if isinstance(failure, Unsupported):
        return Unavailable("the upstream does not offer the call that this needs: use a node with logs and tracers")
    return Unavailable(f"the state at {where} must be fetched from an upstream, and none answers")
