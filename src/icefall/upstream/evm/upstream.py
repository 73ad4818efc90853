"""The upstreams of one EVM chain, used as one: blocks in order, and state, from one that is usable."""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeVar

import msgspec

from icefall.upstream.client import (
    RETRY,
    ByteBudget,
    ByteBudgetExceeded,
    InvalidAnswer,
    Limits,
    Retry,
    UpstreamFailure,
)
from icefall.upstream.evm import state as evm_state
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.upstream.evm.client import CALLS_PER_BATCH, EVM_LIMITS, Call, EvmClient, Lane, Outcome
from icefall.upstream.evm.errors import IncompleteAnswer, NoState, NotThere, Reverted, WrongChain
from icefall.upstream.evm.fetch import TracerUntested, UpstreamView, fetch_run, read_block_hash, read_head
from icefall.upstream.evm.prefetch import PREFETCH_LIMITS, Prefetcher, PrefetchLimits
from icefall.upstream.evm.probe import Capabilities, limitations, limitations_without, probe
from icefall.upstream.evm.state import At, ContractCall, StateCall
from icefall.upstream.meter import Clock
from icefall.upstream.pool import Pool, PoolLog

_T = TypeVar("_T")
_TIMEOUT_S = 60.0
_NEEDS_ARCHIVE = (
    "the traces of this block need an archive node in the rpc of its [[chain]]. An index that begins anew can do "
    "without them: traces = false there, or a later start_block"
)
_ATTEMPTS = 4  # of one call, at one upstream that answers, but incompletely


class RequiredTraces(msgspec.Struct, frozen=True):
    """The traces that every fetched block must have: an index begun with traces is not continued without them."""

    calls: bool
    diffs: bool


NO_TRACES = RequiredTraces(calls=False, diffs=False)


class Source:
    """One upstream of the chain."""

    def __init__(self, client: EvmClient) -> None:
        self.name = client.name
        self.client = client
        self.capabilities: Capabilities | None = None

    def provides(self, required: RequiredTraces | None) -> bool:
        if self.capabilities is None or required is None:
            return self.capabilities is not None
        return bool(self.capabilities.calls_format or not required.calls) and bool(
            self.capabilities.diffs_format or not required.diffs
        )


def _unknown_genesis() -> bytes | None:
    return None


def _unknown_block() -> int | None:
    return None


class EvmUpstream:
    """Several upstreams of one chain. `required` is what the most capable of them provides, unless it is passed in.
    `traces` False: none are fetched, whatever the upstreams have. `genesis`: the hash of block 0, where it is known;
    None where it may change. `busy_block`: the number of a block with transactions, where one is known."""

    def __init__(
        self,
        urls: Sequence[str],
        chain_id: int | None,
        log: PoolLog,
        *,
        required: RequiredTraces | None = None,
        traces: bool = True,
        genesis: Callable[[], bytes | None] | None = _unknown_genesis,
        busy_block: Callable[[], int | None] = _unknown_block,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
        limits: Limits = EVM_LIMITS,
        retry: Retry = RETRY,
        calls_per_batch: dict[Lane, int] = CALLS_PER_BATCH,
        prefetch_limits: PrefetchLimits = PREFETCH_LIMITS,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self.clock = clock or Clock()
        self.chain_id = chain_id
        self.required = required if traces else NO_TRACES
        self._only = None if traces else NO_TRACES
        self._genesis = genesis
        self._busy_block = busy_block
        self.last_prefetch: Prefetcher | None = None
        self._retry = retry
        self._chance = chance
        self._prefetch_limits = prefetch_limits
        self._timeout_s = timeout_s
        self._log = log
        self._per_block: float | None = None
        sources = [
            Source(
                EvmClient(
                    url, clock=self.clock, chance=chance, limits=limits, retry=retry, calls_per_batch=calls_per_batch
                )
            )
            for url in urls
        ]
        self.pool = Pool(sources, self._probe, log, clock=self.clock, chance=chance)
        self._current: Source | None = None

    async def close(self) -> None:
        await self.pool.close()
        for source in self.pool.members:
            await source.client.close()

    def source_name(self) -> str:
        """The upstream in use; empty while none can be used."""
        usable = self.pool.usable()
        current = self._current if self._current in usable else next(iter(usable), None)
        return current.name if current is not None else ""

    # -- probing -----------------------------------------------------------------------------------------------

    async def probe_all(self) -> dict[str, str]:
        """Probe each upstream once. Returns what is wrong with any of them, by name; WrongChain if none serves this
        chain."""
        problems = await self.pool.probe_all()
        if self.pool.all_wrong():
            raise WrongChain(self.pool.all_wrong())
        self._settle_required()
        return problems

    def capabilities(self) -> dict[str, Capabilities]:
        return {source.name: source.capabilities for source in self.pool.members if source.capabilities is not None}

    def is_avalanche(self) -> bool:
        """Tell whether one of them is a node of Avalanche."""
        return any(can.is_avalanche for can in self.capabilities().values())

    def degraded(self) -> list[str]:
        """What is missing because none of the usable upstreams has it, or because the index was begun without it, as
        text."""
        found = limitations([source.capabilities for source in self.pool.usable() if source.capabilities is not None])
        if self.required is not None:
            found += limitations_without(calls=not self.required.calls, diffs=not self.required.diffs)
        return list(dict.fromkeys(found))

    @property
    def genesis_hash(self) -> str | None:
        """The hash of block 0 of the chain that the usable upstreams serve."""
        known = (source.capabilities for source in self.pool.usable() if source.capabilities is not None)
        return next((one.genesis_hash for one in known if one.genesis_hash is not None), None)

    async def _probe(self, source: Source) -> None:
        """Probe one upstream. If it serves another chain it backs off like one that fails: what it answers may
        change."""
        found = await probe(source.client, self.chain_id)
        busy = self._busy_block() if found.sample is None and found.archive else None  # else its state may be pruned
        if busy is not None:
            found = await probe(source.client, self.chain_id, sample=busy)
        if self.chain_id not in (None, found.chain_id):  # learnt from another while this one was probed
            raise WrongChain(f"{source.name} serves chain {found.chain_id}, not {self.chain_id}")
        self.chain_id = found.chain_id
        if self._genesis is not None:
            stored = self._genesis()
            expected = self.genesis_hash if stored is None else "0x" + stored.hex()
            if None not in (expected, found.genesis_hash) and expected != found.genesis_hash:
                raise WrongChain(
                    f"{source.name} has genesis {found.genesis_hash}, not {expected}: another chain with the same ID"
                )
        self._learn(source, found)

    def _learn(self, source: Source, found: Capabilities) -> None:
        """Store what a probe found, and log only what is new: without a transaction to test with, it is probed again
        with every block. What is only slower is reported by `degraded`."""
        before, source.capabilities = source.capabilities, found
        if found.sample is None and (before is None or before.sample is not None):
            self._log.info(
                "no transactions found yet: blocks are indexed, and traces tested with the first transaction",
                upstream=source.name,
            )
        if found.missing() and (before is None or before.missing() != found.missing()):
            self._log.warn("upstream lacks features", upstream=source.name, missing=found.missing())

    def _settle_required(self) -> None:
        """Decides which traces the index has, for good. IncompleteAnswer while that is not certain: traces that are
        sent incompletely are no reason to go without."""
        known = [it.capabilities for it in self.pool.usable() if it.capabilities is not None]
        tested = [it for it in known if it.sample is not None]  # tracers can only be tested on a transaction
        if self.required is not None or not tested:
            return
        required = RequiredTraces(any(it.calls_format for it in tested), any(it.diffs_format for it in tested))
        possible = RequiredTraces(any(it.may_have_calls for it in tested), any(it.may_have_diffs for it in tested))
        if required != possible:
            reasons = dict.fromkeys(it.reasons[field] for it in tested for field in it.incomplete)
            raise IncompleteAnswer(f"no upstream sends whole traces, which an index begins with: {'; '.join(reasons)}")
        self.required = required

    def back_off_source(self, name: str, why: str) -> None:
        """Leave the upstream of this name, which sent an invalid block, alone for a while: it may send a valid one
        later."""
        self._back_off(self._named(name), InvalidAnswer(why))

    def has_source(self, only: RequiredTraces | None = None) -> bool:
        """Return whether an upstream can be asked for blocks right now; `only`: with these traces."""
        return any(source.provides(only or self.required) for source in self.pool.usable())

    # -- blocks ------------------------------------------------------------------------------------------------

    async def head(self) -> int:
        """The number of the newest block."""

        return await self._with_failover(lambda source: read_head(source.client))

    async def block_hash(self, number: int) -> bytes | None:
        """The hash of the block of that number now; None if there is none."""
        try:
            return await self._with_failover(lambda source: read_block_hash(source.client, number))
        except NotThere:
            return None

    def views(self) -> list[UpstreamView]:
        """Return what each usable upstream reports by itself; first the one that is used now."""
        first = [self._current] if self._current is not None else []
        ordered = dict.fromkeys((*first, *self.pool.members))
        usable = self.pool.usable()
        return [UpstreamView(one.name, one.client, lambda: self.chain_id) for one in ordered if one in usable]

    def prefer(self, view: UpstreamView) -> None:
        """Use this upstream from now on, as long as it can be used."""
        self._current = self._named(view.name)

    def back_off_view(self, view: UpstreamView, failure: UpstreamFailure) -> None:
        self._back_off(self._named(view.name), failure)

    def _named(self, name: str) -> Source:
        return next(source for source in self.pool.members if source.name == name)

    async def fetch(self, numbers: Iterable[int]) -> AsyncGenerator[FetchedBlock, None]:
        """The blocks of those numbers, whole, in order, fetched ahead of the reader.

        NotThere where the chain has no such block, or no longer; NoState where every upstream has pruned the state that
        its traces need; otherwise the failure of the last upstream tried. The reader must check whether a block is the
        child of the one before: between them the chain may have changed.
        """
        if self.required is None:
            await self.pool.probe_all()
            self._settle_required()
        run = partial(self._run, only=self._only)
        prefetch = self.last_prefetch = Prefetcher(run, self._prefetch_limits, self._per_block)
        async with aclosing(prefetch.blocks(numbers)) as blocks:
            async for block in blocks:
                self._per_block = prefetch.per_block
                yield block

    async def fetch_without_diffs(self, numbers: Iterable[int], *, calls: bool) -> AsyncGenerator[FetchedBlock, None]:
        """Fetch blocks without diffs, and without calls unless they are wanted: what a stored block may lack."""
        required = RequiredTraces(calls=calls, diffs=False)
        prefetch = Prefetcher(partial(self._run, only=required), self._prefetch_limits, self._per_block)
        async with aclosing(prefetch.blocks(numbers)) as blocks:
            async for block in blocks:
                yield block

    async def _run(self, numbers: range, size: int, *, only: RequiredTraces | None = None) -> list[FetchedBlock]:
        """Fetch a run of blocks from an upstream that can; `only`: with these traces and no others, whatever the index
        has."""

        async def work(source: Source) -> list[FetchedBlock]:
            assert source.capabilities is not None
            capabilities = source.capabilities
            if only is None:
                self._settle_required()
                if self.required is not None and not self.required.diffs:  # of some blocks alone they would not do
                    capabilities = capabilities.limited_to(calls=True)
            else:
                capabilities = capabilities.limited_to(calls=only.calls)
            try:
                return await fetch_run(source.client, capabilities, numbers, ByteBudget(size), name=source.name)
            except TracerUntested as untested:
                self._learn(source, await probe(source.client, self.chain_id, sample=untested.number))
                raise IncompleteAnswer(f"{source.name} was probed again") from untested

        if self.pool.usable() and not self.has_source(only):
            await self.pool.probe_all()  # what they lacked when they were probed may have been a passing failure
        try:
            return await self._with_failover(work, able=lambda source: source.provides(only or self.required))
        except NoState as pruned:
            raise NoState(f"{pruned}: {_NEEDS_ARCHIVE}", pruned.code) from pruned

    # -- state -------------------------------------------------------------------------------------------------

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]:
        """Native balances in wei at a block, in order."""
        return await self._with_failover(lambda source: evm_state.balances(source.client, addresses, at))

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]:
        """The code at each address at a block, in order; empty where there is none."""
        return await self._with_failover(lambda source: evm_state.codes(source.client, addresses, at))

    async def results(self, calls: Sequence[StateCall]) -> list[bytes | Reverted]:
        """Return what contracts return, each at a block of its own, in order."""
        return await self._with_failover(lambda source: evm_state.results(source.client, calls))

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
        """Return what contracts return at a block, in order."""
        return await self._with_failover(lambda source: evm_state.answers(source.client, calls, at))

    async def logs(
        self, address: bytes, topics: Sequence[bytes | None], first: int, last: int
    ) -> list[evm_state.FoundLog]:
        """Return the logs that a contract emitted in the blocks from `first` to `last`, in chain order."""
        return await self._with_failover(lambda source: evm_state.logs(source.client, address, topics, first, last))

    async def outcomes(self, calls: Sequence[Call]) -> list[Outcome]:
        """Return the result or the refusal of each call, in order, all from one upstream. A refusal is no failure of
        it, unless it lacks the block or its state: then another one is asked."""
        return await self._with_failover(lambda source: evm_state.outcomes(source.client, calls))

    # -- failover ----------------------------------------------------------------------------------------------

    async def _with_failover(
        self, work: Callable[[Source], Awaitable[_T]], able: Callable[[Source], bool] = lambda source: True
    ) -> _T:
        """Run `work` with the current upstream, or with the next that can."""
        cannot: set[Source] = set()  # it does not have the block or the state: that is no failure
        attempts = 0
        while True:
            source = await self.pool.pick(
                self._current, able=lambda one: able(one) and one not in cannot, timeout_s=self._timeout_s
            )
            try:
                done = await work(source)
            except ByteBudgetExceeded:
                raise
            except (NotThere, NoState) as refusal:
                cannot.add(source)
                if not any(able(one) and one not in cannot for one in self.pool.usable()):
                    raise refusal
            except UpstreamFailure as failure:
                attempts += 1
                if attempts >= _ATTEMPTS * len(self.pool.members):
                    self._back_off(source, failure)
                    raise
                await self._after(source, failure, attempts)
            else:
                self._current = source
                self.pool.mark_ok(source)
                return done

    def _back_off(self, source: Source, failure: UpstreamFailure) -> None:
        if source in self.pool.usable():  # failures of other calls that were in flight at the same time do not add up
            self.pool.back_off(source, failure)

    async def _after(self, source: Source, failure: UpstreamFailure, attempts: int) -> None:
        """Retry an incomplete answer after a pause; otherwise the upstream backs off."""
        if isinstance(failure, IncompleteAnswer) and attempts % _ATTEMPTS:
            await self.clock.sleep(self._retry.pause_s(attempts, 0.0, self._chance()))
        else:
            self._back_off(source, failure)
