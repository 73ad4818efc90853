"""Follows one chain from the stored tip to the upstream's head, and rolls the store back when the chain reorganises.

Only verified and linked blocks are stored. Failures of an upstream are retried, or another one is used; an invalid
block too is fetched again until an upstream sends a valid one. No answer of an upstream stops the follower: what it
cannot go on with is reported as a problem and asked again.
"""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from icefall.db.engine import StoreCorrupt, StoreError, StoreLost
from icefall.evm.indexing.batches import BatchMaker, BlockBatch, InvalidBlock, UnlinkedBlock
from icefall.evm.indexing.decoder import DecoderDied
from icefall.evm.indexing.reorgs import LAG_S, Confirmed, Reorganisations, ReorgRules, RollBack, Verdict, roll_back
from icefall.evm.storing.store import ChainStore, Tip
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.upstream.evm.errors import NotThere
from icefall.upstream.evm.upstream import EvmUpstream

POLL_S = 1.0
PAUSE_S = (1.0, 30.0)  # after a round that failed: first, and at most


class FollowerLog(Protocol):
    def info(self, message: str, **fields: Any) -> None: ...

    def warn(self, message: str, **fields: Any) -> None: ...


class BlockRange(msgspec.Struct, frozen=True):
    """The range of blocks to index. `last` None: up to the head, for ever."""

    first: int = 0
    last: int | None = None
    confirmations: int = 0


class FollowerStatus(msgspec.Struct):
    """The progress of the follower, for health, counters and the progress bar."""

    head: int | None = None  # newest block of the upstream; None: not known yet
    tip: int | None = None  # newest stored block
    target: int | None = None  # block to reach: the head less the confirmations, or the end of the range
    upstream_seen_at: float = 0.0  # when the upstream last answered, on the follower's clock
    is_confirmed: bool = True  # an upstream has the newest stored block; False: not known at the moment
    problem: str = ""  # what went wrong in the last round
    stopped: bool = False
    blocks: int = 0  # stored since the start
    txs: int = 0
    transfers: int = 0
    skipped_logs: int = 0
    reorgs: int = 0
    reorged_blocks: int = 0
    fetched_bytes: int = 0
    audits_dropped: int = 0  # by the auditor of the chain
    words_dropped: int = 0  # of the storage of tokens

    @property
    def synced(self) -> bool:
        """Tell whether everything up to the target is stored."""
        if self.target is None or self.tip is None or self.problem or not self.is_confirmed:
            return False
        if self.head is not None and self.head < self.tip:
            return False
        return self.tip >= self.target


class EvmFollower:
    def __init__(
        self,
        blocks: BlockRange,
        store: ChainStore,
        upstream: EvmUpstream,
        maker: BatchMaker,
        log: FollowerLog,
        *,
        rules: ReorgRules,
        poll_s: float = POLL_S,
        meta: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.status = FollowerStatus()
        self._blocks = blocks
        self._store = store
        self._upstream = upstream
        self._maker = maker
        self._log = log
        self._reorgs = Reorganisations(store, upstream, rules)
        self._poll_s = poll_s
        self._meta = meta
        self._absent_since: float | None = None
        self._warned: set[str] = set()
        self._update_from_store()

    @property
    def first_block(self) -> int:
        return self._blocks.first

    # -- rounds ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the chain until the end of the range; for ever without one."""
        pause = PAUSE_S[0]
        while True:
            try:
                moved = await self._round()
                self._report_problem(self._reorgs.dispute)
                pause = PAUSE_S[0]
                if self._done():
                    return
                wait = 0.0 if moved else self._poll_s
            except InvalidBlock as error:
                if self._reject(error):
                    wait = 0.0  # the next round fetches the block from another upstream
                else:
                    wait, pause = pause, min(pause * 2, PAUSE_S[1])
            except (StoreCorrupt, StoreLost):
                raise
            except (UpstreamFailure, StoreError, DecoderDied) as error:  # a full disk too may have room again
                wait, pause = pause, min(pause * 2, PAUSE_S[1])
                self._report_problem(str(error) or type(error).__name__)
            if wait:
                await self._upstream.clock.sleep(wait)

    def _done(self) -> bool:
        last = self._blocks.last
        return last is not None and self.status.tip is not None and self.status.tip >= last

    def _report_problem(self, problem: str) -> None:
        if problem and problem != self.status.problem:
            self._log.warn("indexing paused, retrying", reason=problem)
        self.status.problem = problem

    async def _round(self) -> bool:
        """Read the head and store everything up to it. Return whether anything was stored."""
        head = await self._upstream.head()
        status = self.status
        status.upstream_seen_at = self._upstream.clock.now()
        tip = self._store.tip()
        verdict = Confirmed(head) if tip is None else await self._reorgs.check(tip, head)
        status.is_confirmed = isinstance(verdict, Confirmed)
        self._set_head(verdict.head if isinstance(verdict, Confirmed) else head)
        if not status.is_confirmed:
            return await self._carry_out(verdict)
        assert status.target is not None
        first = self._blocks.first if tip is None else tip.number + 1
        if first > status.target:
            return await self._compare_upstreams(first, tip)
        return await self._store_blocks(range(first, status.target + 1), tip)

    async def _compare_upstreams(self, first: int, tip: Tip | None) -> bool:
        """Ask the others, as there is nothing to store here. Return whether another upstream has the next block, or has
        replaced stored ones."""
        assert self.status.head is not None
        assert self.status.target is not None
        verdict = await self._reorgs.check_others(tip, self.status.head)
        self.status.is_confirmed = isinstance(verdict, Confirmed)
        if not isinstance(verdict, Confirmed):
            return await self._carry_out(verdict)
        self._set_head(verdict.head)
        return first <= self.status.target

    def _set_head(self, head: int) -> None:
        target = head - self._blocks.confirmations
        self.status.head = head
        self.status.target = target if self._blocks.last is None else min(target, self._blocks.last)

    async def _store_blocks(self, numbers: range, tip: Tip | None) -> bool:
        """Store blocks. Return whether all of them were."""
        parent = tip.block_hash if tip is not None else None
        try:
            async with (
                aclosing(self._upstream.fetch(numbers)) as fetched,
                aclosing(self._maker.batches(fetched, parent, self._on_fetched)) as batches,
            ):
                async for batch in batches:
                    await self._put(batch)
        except UnlinkedBlock:
            self._maker.forget()
            tip = self._store.tip()
            if tip is None or not await self._carry_out(await self._reorgs.compare(tip)):
                raise  # the stored blocks are still part of the chain
        except NotThere:
            self._maker.forget()
            if not self._absence_is_temporary():
                raise
            return False
        except BaseException:
            self._maker.forget()
            raise
        self._absent_since = None
        return True

    def _reject(self, error: InvalidBlock) -> bool:
        """Make the upstream that sent an invalid block back off. Return whether another can be asked for it now."""
        reason = str(error)
        self._log.warn("invalid block from upstream", upstream=error.source, block=error.number, reason=reason)
        self._upstream.back_off_source(error.source, reason)
        if self._upstream.has_source():
            return True
        self._report_problem(f"{error.source} sent an invalid block, which is fetched again: {reason}")
        return False

    def _absence_is_temporary(self) -> bool:
        """Tell whether an absent block may come. One below the head may be absent during a reorganisation or while a
        node lags, but not for long."""
        now = self._upstream.clock.now()
        if self._absent_since is None:
            self._absent_since = now
        return now - self._absent_since < LAG_S

    def _on_fetched(self, block: FetchedBlock) -> None:
        self.status.fetched_bytes += block.size
        self.status.upstream_seen_at = self._upstream.clock.now()

    async def _put(self, batch: BlockBatch) -> None:
        await self._store.commit(batch.blocks, batch.probed, batch.baselines, self._meta(), batch.layouts)
        status = self.status
        status.words_dropped = self._store.words_dropped
        for one in batch.blocks:
            rows = one.rows
            status.blocks += 1
            status.txs += rows.block.tx_count
            status.transfers += rows.transfers
            status.skipped_logs += sum(rows.skipped_logs.values())
        for problem in batch.unverified:
            if problem not in self._warned:  # once; a chain's own header layout does not change
                self._warned.add(problem)
                self._log.warn("block not fully verified", reason=problem)
        self._update_from_store()

    def _update_from_store(self) -> None:
        tip = self._store.tip()
        self.status.tip = tip.number if tip is not None else None

    # -- reorganisations ---------------------------------------------------------------------------------------

    async def _carry_out(self, verdict: Verdict) -> bool:
        """Roll back if that is the verdict. Return whether blocks were rolled back."""
        tip = self._store.tip()
        if not isinstance(verdict, RollBack) or tip is None:
            return False
        self._maker.forget()
        before_first = (self._store.lowest() or 0) - 1
        dropped = tip.number - (before_first if verdict.ancestor is None else verdict.ancestor)
        await roll_back(self._store, self._upstream, verdict)
        self.status.reorgs += 1
        self.status.reorged_blocks += dropped
        self._log.info("chain reorganised", ancestor=verdict.ancestor, dropped=dropped)
        self._update_from_store()
        return True
