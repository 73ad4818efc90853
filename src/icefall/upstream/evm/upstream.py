"""The upstreams of one EVM chain, as one: blocks in order, and state, from whichever of them is sound."""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import TypeVar

import msgspec

from icefall.upstream.client import RETRY, ByteBudget, ByteBudgetExceeded, Limits, Retry, UpstreamFailure
from icefall.upstream.evm import state as evm_state
from icefall.upstream.evm.ahead import AHEAD, GUESS, Prefetcher, PrefetchLimits
from icefall.upstream.evm.client import CALLS_PER_BATCH, EVM_LIMITS, Call, EvmClient, Lane
from icefall.upstream.evm.errors import IncompleteAnswer, NoState, NotThere, Reverted, WrongChain
from icefall.upstream.evm.fetch import TracerUntested, fetch_run, nothing_there
from icefall.upstream.evm.parts import FetchedBlock, sketch
from icefall.upstream.evm.probe import Capabilities, lacks, probe, quantity
from icefall.upstream.evm.state import At, ContractCall
from icefall.upstream.meter import Clock
from icefall.upstream.pool import Pool, PoolLog

_T = TypeVar("_T")
_PATIENCE_S = 60.0
_ATTEMPTS = 4  # of one thing, by one upstream that is up but gives it in pieces


class Needs(msgspec.Struct, frozen=True):
    """What every fetched block must have: an index begun with traces is not continued without."""

    calls: bool
    diffs: bool


class Source:
    """One upstream of the chain."""

    def __init__(self, client: EvmClient) -> None:
        self.name = client.name
        self.client = client
        self.can: Capabilities | None = None

    def meets(self, needs: Needs | None) -> bool:
        if self.can is None or needs is None:
            return self.can is not None
        return bool(self.can.calls_by or not needs.calls) and bool(self.can.diffs_by or not needs.diffs)


class EvmUpstream:
    """Several addresses, one chain. `needs` is what the best of them can give, unless the caller knows better."""

    def __init__(
        self,
        urls: Sequence[str],
        chain_id: int | None,
        log: PoolLog,
        *,
        needs: Needs | None = None,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
        limits: Limits = EVM_LIMITS,
        retry: Retry = RETRY,
        calls_per_batch: dict[Lane, int] = CALLS_PER_BATCH,
        ahead: PrefetchLimits = AHEAD,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self.clock = clock or Clock()
        self.chain_id = chain_id
        self.genesis_hash: str | None = None
        self.needs = needs
        self.last_look: Prefetcher | None = None
        self._retry = retry
        self._chance = chance
        self._ahead = ahead
        self._patience_s = patience_s
        self._log = log
        self._per_block = float(GUESS)
        sources = [
            Source(
                EvmClient(
                    url, clock=self.clock, chance=chance, limits=limits, retry=retry, calls_per_batch=calls_per_batch
                )
            )
            for url in urls
        ]
        self.pool = Pool(sources, self._greet, log, clock=self.clock, chance=chance)
        self._current: Source | None = None

    async def close(self) -> None:
        await self.pool.close()
        for source in self.pool.members:
            await source.client.close()

    # -- who they are ------------------------------------------------------------------------------------------

    async def greet(self) -> dict[str, str]:
        """Try each upstream once. What stands against any of them, by name; WrongChain if that is all there is."""
        against = await self.pool.greet_all()
        if len(self.pool.lies()) == len(self.pool.members):
            raise WrongChain("; ".join(self.pool.lies().values()))
        self._settle_needs()
        return against

    def capabilities(self) -> dict[str, Capabilities]:
        return {source.name: source.can for source in self.pool.members if source.can is not None}

    def degraded(self) -> list[str]:
        """What none of the sound upstreams can do, for people."""
        return lacks([source.can for source in self.pool.sound() if source.can is not None])

    async def _greet(self, source: Source) -> str | None:
        try:
            can = await probe(source.client, self.chain_id)
        except WrongChain as error:
            return str(error)
        if self.chain_id not in (None, can.chain_id):  # learnt from another while this one was asked
            return f"it serves chain {can.chain_id}, not {self.chain_id}"
        self.chain_id = can.chain_id
        if None not in (self.genesis_hash, can.genesis_hash) and self.genesis_hash != can.genesis_hash:
            return f"it begins with {can.genesis_hash}, not with {self.genesis_hash}: another chain of the same number"
        self.genesis_hash = self.genesis_hash or can.genesis_hash
        source.can = can
        if can.missing():  # what is merely slow is told by `degraded`, to who asks
            self._log.warn("an upstream cannot do everything", upstream=source.name, lacks=can.missing())
        return None

    def _settle_needs(self) -> None:
        able = [one.can for one in self.pool.sound() if one.can is not None and one.can.sample is not None]
        if self.needs is None and able:  # what was tried on no transaction is not known yet
            self.needs = Needs(any(can.calls_by for can in able), any(can.diffs_by for can in able))

    def distrust(self, block: FetchedBlock, why: str) -> None:
        """Whoever gave this block lied: its bytes do not come to its hash."""
        for source in self.pool.members:
            if source.name == block.source:
                self.pool.drop(source, f"block {block.number}: {why}")

    # -- blocks ------------------------------------------------------------------------------------------------

    async def head(self) -> int:
        """The number of the newest block."""

        async def work(source: Source) -> int:
            return quantity((await source.client.ask([Call("eth_blockNumber", ())]))[0], "eth_blockNumber")

        return await self._ask(work)

    async def block_hash(self, number: int) -> bytes | None:
        """The hash of the block of that number now; None if there is none."""

        async def work(source: Source) -> bytes:
            try:
                found = sketch(await source.client.one("eth_getBlockByNumber", hex(number), False))
            except NotThere:
                await nothing_there(source.client, number)
            if int(found.number, 16) != number:
                raise IncompleteAnswer(f"asked for block {number}, got block {int(found.number, 16)}")
            return bytes.fromhex(found.hash[2:])

        try:
            return await self._ask(work)
        except NotThere:
            return None

    async def fetch(self, numbers: Iterable[int]) -> AsyncGenerator[FetchedBlock, None]:
        """The blocks of those numbers, whole, in order, fetched ahead of the reader.

        NotThere where the chain has no such block, or no longer; NoState where every upstream has forgotten what its
        traces need; where nobody can be made to answer, what the last one said. Whether a block is the child of the one
        before is for the reader to see: between them the chain may have changed.
        """
        if self.needs is None:
            await self.pool.greet_all()
            self._settle_needs()
        look = self.last_look = Prefetcher(self._run, self._ahead, self._per_block)
        async with aclosing(look.blocks(numbers)) as blocks:
            async for block in blocks:
                self._per_block = look.per_block
                yield block

    async def _run(self, numbers: range, size: int) -> list[FetchedBlock]:
        async def work(source: Source) -> list[FetchedBlock]:
            assert source.can is not None
            self._settle_needs()
            try:
                return await fetch_run(source.client, source.can, numbers, ByteBudget(size), name=source.name)
            except TracerUntested as untried:
                source.can = await probe(source.client, self.chain_id, sample=untried.number)
                raise IncompleteAnswer(f"{source.name} has just shown what it can do") from untried

        return await self._ask(work, able=lambda source: source.meets(self.needs))

    # -- state -------------------------------------------------------------------------------------------------

    async def balances(self, addresses: Sequence[bytes], at: At) -> list[int]:
        """Native balances in wei at a block, in order."""
        return await self._ask(lambda source: evm_state.balances(source.client, addresses, at))

    async def codes(self, addresses: Sequence[bytes], at: At) -> list[bytes]:
        """The code at each address at a block, in order; empty where there is none."""
        return await self._ask(lambda source: evm_state.codes(source.client, addresses, at))

    async def answers(self, calls: Sequence[ContractCall], at: At) -> list[bytes | Reverted]:
        """What contracts answer at a block, in order."""
        return await self._ask(lambda source: evm_state.answers(source.client, calls, at))

    # -- whoever is sound --------------------------------------------------------------------------------------

    async def _ask(
        self, work: Callable[[Source], Awaitable[_T]], able: Callable[[Source], bool] = lambda source: True
    ) -> _T:
        """Have it done by the current upstream, or by the next that can."""
        cannot: set[Source] = set()  # it lacks the block or the state: that is no failure
        attempts = 0
        while True:
            source = await self.pool.pick(
                self._current, able=lambda one: able(one) and one not in cannot, patience_s=self._patience_s
            )
            try:
                done = await work(source)
            except ByteBudgetExceeded:
                raise
            except (NotThere, NoState) as refusal:
                cannot.add(source)
                if not any(able(one) and one not in cannot for one in self.pool.sound()):
                    raise refusal
            except UpstreamFailure as failure:
                attempts += 1
                if attempts >= _ATTEMPTS * len(self.pool.members):
                    self.pool.rest(source, failure)
                    raise
                await self._after(source, failure, attempts)
            else:
                self._current = source
                self.pool.praise(source)
                return done

    async def _after(self, source: Source, failure: UpstreamFailure, attempts: int) -> None:
        """What came in pieces may come whole in a moment; who has failed altogether is left alone."""
        if isinstance(failure, IncompleteAnswer) and attempts % _ATTEMPTS:
            await self.clock.sleep(self._retry.pause_s(attempts, 0.0, self._chance()))
        else:
            self.pool.rest(source, failure)
