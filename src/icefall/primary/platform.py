"""P as it is followed: its containers are stored, and its blocks executed, in one transaction.

A data directory of an older release has containers that were never executed. They are executed in the background; until
that is done, new containers are only stored, and calls to P are refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

from icefall.db.engine import Store, StoreError, Transaction
from icefall.node.sync.foreign import ForeignChain, ForeignContainer
from icefall.node.sync.verify import ChainStopped, VerifiedContainer
from icefall.observe.counters import Rate
from icefall.observe.log import Log
from icefall.pchain.ledger import BlockRefused, PlatformLedger, ReceivedBlock
from icefall.primary.chains import FollowedForeignChain
from icefall.primary.listed import ListedCore, ListedPlatform
from icefall.primary.network import Network
from icefall.primary.outbox import PrimaryOutbox
from icefall.primary.shared_memory import CoreMoves, PlatformMoves
from icefall.wire.container.platform import block_in_container
from icefall.wire.errors import WireError
from icefall.wire.genesis.network import p_genesis_of
from icefall.wire.pvm.codec import unpack_block

# Blocks of one batch share pages of the store, which are written once: the longer the chain, the more that is worth.
_BATCH, _BATCH_BYTES = 8192, 16 << 20
_PIECE = 512  # read before the event loop may run something else
_STORE_RETRY_S = 1.0


class ExecutionStats(NamedTuple):
    """How far the blocks of P are executed: `of` containers are stored. `why` is set when it cannot go on."""

    executed: int
    of: int
    per_second: float
    why: str | None


class PlatformChain(FollowedForeignChain):
    """`why` is the reason if execution has stopped; what was executed before is still served. `core` is what C moves to
    P, which is part of what P answers.
    """

    def __init__(
        self,
        chain: ForeignChain,
        x_chain_id: bytes,
        ledger: PlatformLedger,
        log: Log,
        now: Callable[[], float],
        core: CoreMoves | None = None,
    ) -> None:
        super().__init__(chain, x_chain_id)
        self._of_c = core
        self.ledger = ledger
        self.why: str | None = None
        self._log = log
        self._now = now
        self._lock = asyncio.Lock()
        self._is_started = False
        self._rate = Rate(now(), 0)

    @property
    def height(self) -> int:
        return self.ledger.height

    @property
    def is_executed(self) -> bool:
        """Whether all stored containers are executed."""
        return self.ledger.height >= self.count and (self._of_c is None or self._of_c.is_current)

    @property
    def takes_calls(self) -> bool:
        """Whether calls can be answered: of the newest block, or where execution has stopped, of the last executed."""
        return self.is_executed or self.why is not None

    def stats(self) -> ExecutionStats:
        rate = self._rate.per_second(self._now(), self.ledger.height)
        return ExecutionStats(self.ledger.height, self.count, rate, self.why)

    async def start(self) -> None:
        """Load the chain, or begin it with its genesis; once."""
        if not self._is_started:
            await self.ledger.start()
            self._rate = Rate(self._now(), self.ledger.height)
            self._is_started = True

    async def accept(self, batch: Sequence[VerifiedContainer]) -> None:
        """Store containers and execute their blocks. ChainStopped: one cannot be executed; its container is stored."""
        async with self._lock:
            await self.start()
            is_kept = self._chain.is_indexed or not any(row.unread for row in batch)
            if self.why is not None or self.ledger.height < self.count or not is_kept:
                await super().accept(batch)
                return
            rows = [ForeignContainer(row.container_id, row.raw, row.block_id, row.height) for row in batch]
            after, put = self._chain.appended(rows)
            put_exports = self._exports_of(batch)

            def also(tx: Transaction) -> None:
                put(tx)
                put_exports(tx)

            indexed = self._chain.is_indexed
            blocks = [ReceivedBlock(row.container_id, row.raw, row.inner, indexed) for row in batch]
            await self.ledger.begin_at(batch[0].parent_block_id)
            try:
                await self.ledger.accept(blocks, also)
            except BlockRefused as refused:
                self._chain.position = after
                self.stop(str(refused))
                raise ChainStopped(str(refused)) from refused
            self._chain.position = after
            self._rate.note(self._now(), self.ledger.height)

    async def catch_up(self) -> None:
        """Execute the containers that are stored and not executed, in the background. Returns when all are."""
        await self._in_turn(self.start)
        if self.is_executed:
            return
        while not self.is_executed and self.why is None:
            await self._in_turn(self._step)
            await asyncio.sleep(0)
        if self.why is None:
            self._log.info("all stored blocks are executed", height=self.ledger.height)

    async def _in_turn(self, step: Callable[[], Awaitable[None]]) -> None:
        """Do a step while no containers are accepted. It is tried again while the store refuses it: a full disk."""
        while True:
            try:
                async with self._lock:
                    return await step()
            except StoreError as error:
                self._log.error("blocks could not be executed; trying again", error=str(error))
                await asyncio.sleep(_STORE_RETRY_S)

    async def _step(self) -> None:
        if self._of_c is not None and await self._of_c.step():
            return
        height = self.ledger.height
        if height >= self.count:
            return
        blocks = await self._stored(height)
        if not blocks:
            self.stop(
                f"container {height} was not kept, because the index was off: to have the P-Chain, follow it in a "
                "--data-dir of its own"
            )
            return
        try:
            if height == 0:
                await self.ledger.begin_at(unpack_block(blocks[0].inner).parent_id)
            await self.ledger.accept(blocks)
        except (BlockRefused, WireError) as refused:
            self.stop(str(refused))
        self._rate.note(self._now(), self.ledger.height)

    async def _stored(self, height: int) -> list[ReceivedBlock]:
        """A batch of stored blocks behind `height`; none if the next one was not kept."""
        blocks: list[ReceivedBlock] = []
        size = 0
        while len(blocks) < _BATCH and size < _BATCH_BYTES:
            at = height + len(blocks)
            rows = self._chain.stored(at, min(_PIECE, _BATCH - len(blocks)))
            if not rows or rows[0][0] != at:
                break
            size += sum([len(raw) for _, _, raw in rows])
            blocks += [ReceivedBlock(container_id, raw, block_in_container(raw), True) for _, container_id, raw in rows]
            await asyncio.sleep(0)
        return blocks

    def stop(self, reason: str) -> None:
        """Execute no further block, because of `reason`. Containers are still stored."""
        self.why = reason
        self._log.error("the P-Chain has stopped", reason=self.why, height=self.ledger.height)


def executed_chains(
    network: Network,
    store: Store,
    foreign: dict[str, ForeignChain],
    log: Log,
    now: Callable[[], float],
    outbox: PrimaryOutbox | None = None,
) -> tuple[dict[str, FollowedForeignChain], PlatformChain | None]:
    """P and C as they are followed, and P again if it can be executed, which needs the network's genesis. `outbox`:
    webhooks are matched with their blocks."""
    x_id = network.genesis.x_chain_id
    core = CoreMoves(store, foreign["C"])
    chains = {"C": FollowedForeignChain(foreign["C"], x_id, core, ListedCore(store, foreign["C"], outbox))}
    if network.learned:
        return {"P": FollowedForeignChain(foreign["P"], x_id), **chains}, None
    find = partial(p_genesis_of, network.genesis_config, network.genesis.network_id)
    moves = PlatformMoves(x_id, ListedPlatform(store), outbox)
    prepare = outbox.preparing("P") if outbox is not None else None
    ledger = PlatformLedger(store, network.platform, network.genesis.p_genesis, find, moves, prepare)
    platform = PlatformChain(foreign["P"], x_id, ledger, log, now, core)
    return {"P": platform, **chains}, platform
