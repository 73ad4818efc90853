"""The events of webhooks in blocks of the primary network, written in the transaction of their block.

It runs in the engine. Before a chain commits blocks it asks the access store whether webhooks have changed, and writes
down there where a new one starts; without webhooks nothing else happens.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from icefall.db.engine import Transaction
from icefall.pchain.changes import Changes
from icefall.primary.webhook_facts import C, P, X, asset_block, core_block, platform_blocks
from icefall.webhooks.outbox import KEPT_S, SQL, WatchSource, put_events
from icefall.webhooks.primary_matching import PrimaryBlock, PrimaryWatchList
from icefall.wire.container.core_txs import CoreTx
from icefall.wire.ids import id_text
from icefall.xchain.model import AcceptedBlock
from icefall.xchain.store import Checkpoint

_DROP_EVERY_S = 3600.0


class PrimaryOutbox:
    """The outbox of P, X and C in the node's store. `chain_ids` are by name."""

    def __init__(
        self,
        chain_ids: dict[str, bytes],
        avax_asset_id: bytes,
        source: WatchSource,
        clock: Callable[[], float] = time.time,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.close = close
        self._ids = {name: id_text(chain_id) for name, chain_id in chain_ids.items()}
        self._avax = avax_asset_id
        self._source = source
        self._clock = clock
        self._watched = {name: PrimaryWatchList(text) for name, text in self._ids.items()}
        self._versions = dict.fromkeys(self._ids, 0)
        self._drop_at = 0.0

    def preparing(self, chain: str) -> Callable[[int], Awaitable[None]]:
        """What a chain awaits before it commits blocks."""
        return partial(self.prepare, chain)

    async def prepare(self, chain: str, first: int) -> None:
        """Read what has changed, and write down that new webhooks start with block `first`."""
        own, watched = self._ids[chain], self._watched[chain]
        if await self._source.newest_version(own) != self._versions[chain]:
            for webhook, version, keys in await self._source.changed(own, self._versions[chain]):
                if webhook.is_active:
                    watched.put(webhook, keys)
                else:
                    watched.drop(webhook.id)
                self._versions[chain] = max(self._versions[chain], version)
        fresh = watched.not_started()
        if fresh:
            await self._source.put_start(fresh, first)
            for one in fresh:
                watched.start(one, first)

    # -- in the transaction of the blocks ------------------------------------------------------------------------

    def put_platform(self, tx: Transaction, changes: Changes) -> None:
        """Write the events of executed blocks of P, after their rows."""
        if len(self._watched[P]) and changes.blocks:
            self._put(tx, P, platform_blocks(tx, changes, self._watched[P], self._avax))

    def put_asset(self, tx: Transaction, at: Checkpoint, accepted: AcceptedBlock) -> None:
        """Write the events of a block of X, before its rows."""
        if len(self._watched[X]):
            self._put(tx, X, [asset_block(tx, at.chain, accepted, self._watched[X], self._avax)])

    def put_core(
        self, tx: Transaction, height: int, block_id: bytes, at: int, txs: Sequence[tuple[CoreTx, Iterable[bytes]]]
    ) -> None:
        """Write the events of a block of C: of each atomic transaction with the addresses that it concerns."""
        if len(self._watched[C]):
            self._put(tx, C, [core_block(height, block_id, at, txs, self._watched[C])])

    def _put(self, tx: Transaction, chain: str, blocks: Sequence[PrimaryBlock]) -> None:
        now = self._clock()
        events = [event for block in blocks for event in self._watched[chain].events(block)]
        if events:
            put_events(tx, events, int(now))
        if now >= self._drop_at:
            self._drop_at = now + _DROP_EVERY_S
            tx.run(SQL.drop_old_events, {"before": int(now - KEPT_S)})
