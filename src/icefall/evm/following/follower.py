"""Follows one chain: from the stored tip to the upstream's head, for ever; back where the chain itself went back.

Nothing is stored that was not proven and linked. What the upstream does wrong is retried, or taken from another; only
a chain that shares no block with the stored one stops the follower.
"""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from icefall.db.engine import StoreError
from icefall.errors import IcefallError
from icefall.evm.auditing.audit import Audit
from icefall.evm.following.decoder import DecoderDied
from icefall.evm.following.runs import BatchMaker, BlockBatch, InvalidBlock
from icefall.evm.storing.store import ChainStore, Tip
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import NoState, NotThere
from icefall.upstream.evm.parts import FetchedBlock
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.wire.evm.types import ParentMismatch

POLL_S = 1.0
PAUSE_S = (1.0, 30.0)  # after a round that failed: first, and at most
LAG_S = 15.0  # how long a head may stay below the stored tip before it counts as the chain's own
AUDIT_EVERY = 2_000  # blocks, while far behind the head
_NEAR = 64  # blocks behind the head: from here on every run is audited


class FollowerLog(Protocol):
    def info(self, message: str, **fields: Any) -> None: ...

    def warn(self, message: str, **fields: Any) -> None: ...


class NoCommonBlock(IcefallError):
    """The upstream's chain and the stored one have nothing in common."""


class BlockRange(msgspec.Struct, frozen=True):
    """Which blocks to index. `last` None: up to the head, for ever."""

    first: int = 0
    last: int | None = None
    confirmations: int = 0


class FollowerStatus(msgspec.Struct):
    """How far the follower is, for health, meters and the progress bar."""

    head: int | None = None  # newest block of the upstream; None: not known yet
    tip: int | None = None  # newest stored block
    audited_to: int = -1
    target: int | None = None  # block to reach: the head less the confirmations, or the end of the range
    heard_at: float = 0.0  # when the upstream last gave something, on the follower's clock
    problem: str = ""  # what went wrong in the last round
    stopped: bool = False
    blocks: int = 0  # stored since the start
    txs: int = 0
    transfers: int = 0
    skipped_logs: int = 0
    reorgs: int = 0
    reorged_blocks: int = 0
    fetched_bytes: int = 0

    @property
    def synced(self) -> bool:
        """Everything up to the target is stored, and what was folded was compared with state."""
        if self.target is None or self.tip is None or self.problem:
            return False
        if self.head is not None and self.head < self.tip:  # it lags, or the chain goes back: that is not known yet
            return False
        return self.tip >= self.target and self.audited_to >= self.tip


class EvmFollower:
    def __init__(
        self,
        blocks: BlockRange,
        store: ChainStore,
        upstream: EvmUpstream,
        maker: BatchMaker,
        audit: Audit,
        log: FollowerLog,
        *,
        final: Callable[[], bool] = lambda: False,
        remember: Callable[[], Mapping[str, str]] = dict,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        self.standing = FollowerStatus()
        self._blocks = blocks
        self._store = store
        self._upstream = upstream
        self._maker = maker
        self._audit = audit
        self._log = log
        self._final = final
        self._remember = remember
        self._on_step = on_step
        self._lower_since: float | None = None
        self._absent_since: float | None = None
        self._said: set[str] = set()
        self._see_store()

    @property
    def first_block(self) -> int:
        return self._blocks.first

    # -- rounds ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until the end of the range; for ever without one. Stranger if this cannot be the stored chain."""
        pause = PAUSE_S[0]
        while True:
            try:
                moved = await self._round()
                self.standing.problem = ""
                pause = PAUSE_S[0]
                if self._done():
                    self._on_step()
                    return
                wait = 0.0 if moved else POLL_S
            except (InvalidBlock, ParentMismatch):
                wait = 0.0  # acted upon; what is there now is seen in the next round
            except (UpstreamFailure, StoreError, DecoderDied) as error:  # a full disk too may have room again
                wait, pause = pause, min(pause * 2, PAUSE_S[1])
                self._tell(str(error) or type(error).__name__)
            except NoCommonBlock as error:
                self.standing.problem, self.standing.stopped = str(error), True
                self._on_step()
                raise
            self._on_step()
            if wait:
                await self._upstream.clock.sleep(wait)

    def _done(self) -> bool:
        last = self._blocks.last
        return last is not None and self.standing.tip is not None and self.standing.tip >= last and self._audited()

    def _audited(self) -> bool:
        return self.standing.audited_to >= (self.standing.tip or 0)

    def _tell(self, problem: str) -> None:
        if problem != self.standing.problem:
            self._log.warn("indexing waits", why=problem)
        self.standing.problem = problem

    async def _round(self) -> bool:
        """One look at the head, and everything up to it. Whether anything was stored."""
        head = await self._upstream.head()
        standing = self.standing
        standing.head, standing.heard_at = head, self._upstream.clock.now()
        target = head - self._blocks.confirmations
        standing.target = target if self._blocks.last is None else min(target, self._blocks.last)
        tip = self._store.tip()
        if tip is not None and not await self._still_there(tip, head):
            return False
        first = self._blocks.first if tip is None else tip.number + 1
        moved = False
        if first <= standing.target:
            moved = await self._take(range(first, standing.target + 1), tip)
        tip = self._store.tip()
        if tip is not None:
            await self._compare(tip)
        return moved

    async def _take(self, numbers: range, tip: Tip | None) -> bool:
        """Whether all of them could be had."""
        parent = tip.block_hash if tip is not None else None
        try:
            async with (
                aclosing(self._upstream.fetch(numbers)) as fetched,
                aclosing(self._maker.runs(fetched, parent, self._arrived)) as runs,
            ):
                async for run in runs:
                    await self._put(run)
        except ParentMismatch:
            self._maker.forget()
            tip = self._store.tip()
            if tip is not None:
                await self._go_back(tip.number)
            raise
        except InvalidBlock as lie:
            self._maker.forget()
            self._upstream.distrust(lie.block, str(lie))
            self._log.warn("an upstream lied", upstream=lie.block.source, block=lie.block.number, why=str(lie))
            raise
        except NotThere:
            self._maker.forget()
            if not self._is_passing():
                raise
            return False
        except BaseException:
            self._maker.forget()
            raise
        self._absent_since = None
        return True

    def _is_passing(self) -> bool:
        """A block that is gone again: the chain got shorter, or a node lags. For so long, and then it is a problem."""
        now = self._upstream.clock.now()
        if self._absent_since is None:
            self._absent_since = now
        return now - self._absent_since < LAG_S

    def _arrived(self, block: FetchedBlock) -> None:
        self.standing.fetched_bytes += block.size
        self.standing.heard_at = self._upstream.clock.now()

    async def _put(self, run: BlockBatch) -> None:
        await self._store.commit(run.blocks, run.kinds, run.baselines, self._remember())
        standing = self.standing
        for one in run.blocks:
            rows = one.rows
            standing.blocks += 1
            standing.txs += len(rows.txs)
            standing.transfers += len(rows.erc20_transfers) + len(rows.erc721_transfers) + len(rows.erc1155_transfers)
            standing.skipped_logs += sum(rows.skipped_logs.values())
        for problem in run.unproven:
            if problem not in self._said:  # once; a chain's own header layout does not change
                self._said.add(problem)
                self._log.warn("not everything can be proven", what=problem)
        self._see_store()
        self._on_step()
        behind = (standing.target or 0) - (standing.tip or 0)
        if behind < _NEAR or (standing.tip or 0) - standing.audited_to >= AUDIT_EVERY:
            tip = self._store.tip()
            if tip is not None:
                await self._compare(tip)

    async def _compare(self, tip: Tip) -> None:
        try:
            await self._audit.run(tip)
        except NoState as error:  # of an old block: the newest one's is there when we get to it
            self._log.info("an audit waits for a block whose state is kept", block=tip.number, why=str(error))
        self._see_store()

    def _see_store(self) -> None:
        tip = self._store.tip()
        self.standing.tip = tip.number if tip is not None else None
        self.standing.audited_to = self._audit.audited_to()

    # -- reorganisations ---------------------------------------------------------------------------------------

    async def _still_there(self, tip: Tip, head: int) -> bool:
        """Whether the stored tip is part of the upstream's chain; if not, the store has been rolled back."""
        at = min(tip.number, head)
        if self._store.lowest() is not None and at < (self._store.lowest() or 0):
            raise UpstreamFailure(f"the upstream is at block {head}, below the first indexed one")
        theirs = await self._upstream.block_hash(at)
        if theirs is None:
            return False  # it is changing under our eyes
        if theirs != self._store.block_hash(at):
            await self._go_back(at)
            return False
        if head >= tip.number:
            self._lower_since = None
            return True
        now = self._upstream.clock.now()
        if self._lower_since is None:
            self._lower_since = now
        elif now - self._lower_since >= LAG_S and not self._final():
            self._lower_since = None
            await self._drop_above(head)
        return False

    async def _go_back(self, above: int) -> None:
        """To the newest block that both have: steps that double, then halves."""
        lowest = self._store.lowest() or 0
        bad, step = above + 1, 1
        good = above
        while not await self._same(good):
            if good <= lowest and lowest > 0:  # begun inside the chain: the part that was there is gone
                await self._drop_above(lowest - 1)
                return
            if good <= lowest:
                raise NoCommonBlock(
                    f"the upstream's block {good} is not the stored one, and no earlier block is stored: this is "
                    "another chain. Check its address, or index into another --data-dir"
                )
            bad, good = good, max(lowest, good - step)
            step *= 2
        while bad - good > 1:
            middle = (good + bad) // 2
            if await self._same(middle):
                good = middle
            else:
                bad = middle
        await self._drop_above(good)

    async def _same(self, number: int) -> bool:
        return await self._upstream.block_hash(number) == self._store.block_hash(number)

    async def _drop_above(self, ancestor: int) -> None:
        tip = self._store.tip()
        if tip is None or tip.number <= ancestor:
            return
        self._maker.forget()
        await self._store.roll_back(ancestor)
        self.standing.reorgs += 1
        self.standing.reorged_blocks += tip.number - ancestor
        self._log.info("the chain was reorganised", ancestor=ancestor, dropped=tip.number - ancestor)
        self._see_store()
