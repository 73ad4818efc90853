"""The outbox of a chain: events of webhooks, written with the blocks they are in and marked when those are rolled back.

`Outbox` runs in the process that indexes the chain. Before each batch it asks the access store whether webhooks have
changed, so a webhook that was created before a block is stored is matched with it. Where a webhook starts is written
down there before the first block is matched: a chain that is indexed again begins at the same block.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.encoding import above, position_of
from icefall.evm.packed import PackedBlock
from icefall.evm.storing.store import Tip
from icefall.evm.storing.writing import BlockIds
from icefall.webhooks.matching import Event, WatchList
from icefall.webhooks.model import Unfilled, Webhook

SQL = load("icefall.webhooks", "outbox.sql")
KEPT_S = 30 * 86400.0  # rows of the outbox
_DROP_EVERY_S = 3600.0


class WatchSource(Protocol):
    """The webhooks of a chain in the access store."""

    async def newest_version(self, chain_id: str) -> int: ...

    async def changed(self, chain_id: str, version: int) -> list[tuple[Webhook, int, list[bytes]]]:
        """The webhooks that changed after a version, each with its own and with its addresses; none of those that are
        inactive."""
        ...

    async def put_start(self, webhooks: Sequence[str], block: int) -> None: ...


class FillSource(Protocol):
    """The webhooks of a chain in the access store."""

    async def unfilled(self, chain_id: str) -> Unfilled | None: ...

    async def put_filled(self, webhook: str, block: int) -> None:
        """Note that the blocks before this one are matched."""
        ...


class Outbox:
    """The outbox of one chain. `source` None: only for rolling back. `close` closes what the source has opened."""

    def __init__(
        self,
        chain_id: str,
        source: WatchSource | None = None,
        clock: Callable[[], float] = time.time,
        close: Callable[[], None] = lambda: None,
        fills: FillSource | None = None,
    ) -> None:
        """`fills`: the source of webhooks that start at a block that is stored already."""
        self.close = close
        self.fills = fills
        self._chain_id = chain_id
        self._source = source
        self._clock = clock
        self._watched = WatchList(chain_id)
        self._version = 0
        self._next = 0  # the block after those that are stored, or about to be
        self._drop_at = 0.0

    async def has_webhooks(self) -> bool:
        """Whether blocks that are decoded now must come with their logs."""
        await self._refresh()
        return len(self._watched) > 0

    async def prepare(self, blocks: Sequence[PackedBlock]) -> None:
        """Read what has changed, and write down where new webhooks start: with the first block that has its logs."""
        if self._source is None or not blocks:
            return
        self._next = blocks[-1].block.number + 1
        without_logs = [one.block.number for one in blocks if one.raw.matched is None]
        if without_logs:  # they were decoded before a webhook that has started since: the filling matches them
            end = without_logs[-1] + 1
            await self._start(self._watched.started_in(range(blocks[0].block.number, end)), end)
        first = next((one.block.number for one in blocks if one.raw.matched is not None), None)
        if first is not None:
            await self._refresh()
            await self._start(self._watched.not_started(), first)

    async def start_older(self, tip: Callable[[], Tip | None]) -> None:
        """Start webhooks that begin at a stored block although no block follows it: on some chains none does for hours.
        The filling matches them up to the newest block."""
        if self._source is None:
            return
        await self._refresh()
        newest = tip()  # no other step of this process runs from here until the webhooks have started
        first = max(newest.number + 1 if newest is not None else 0, self._next)
        await self._start(self._watched.not_started(before=first), first)

    async def _start(self, webhooks: Sequence[str], block: int) -> None:
        if not webhooks or self._source is None:
            return
        for webhook in webhooks:
            self._watched.start(webhook, block)
        try:
            await self._source.put_start(webhooks, block)
        except BaseException:
            self._version = -1  # they are read again as they are stored
            raise

    async def _refresh(self) -> None:
        if self._source is None or await self._source.newest_version(self._chain_id) == self._version:
            return
        for webhook, version, addresses in await self._source.changed(self._chain_id, self._version):
            if webhook.is_active:
                self._watched.put(webhook, addresses)
            else:
                self._watched.drop(webhook.id)
            self._version = max(self._version, version)

    # -- in the transaction of the blocks ------------------------------------------------------------------------

    def put_batch(self, tx: Transaction, batch: Sequence[PackedBlock], _ids: Sequence[BlockIds]) -> None:
        """Write the events of consecutive blocks. Without webhooks it does nothing."""
        if not len(self._watched):
            return
        now = self._clock()
        events = [event for block in batch for event in self._watched.events(block)]
        if events:
            put_events(tx, events, int(now))
        if now >= self._drop_at:
            self._drop_at = now + _DROP_EVERY_S
            tx.run(SQL.drop_old_events, {"before": int(now - KEPT_S)})

    def roll_back_above(self, tx: Transaction, ancestor: int) -> None:
        """Mark the events of blocks that are rolled back: those that were sent are followed by another message."""
        self._next = ancestor + 1
        gone = tx.rows(SQL.events_above, {"low": above(ancestor)})
        if gone:
            sequence = _newest(tx)
            numbered = enumerate(gone, sequence + 1)
            tx.run_many(SQL.remove_event, [{"sequence": number, "id": one} for number, (one,) in numbered])


def put_events(tx: Transaction, events: Sequence[Event], now: int) -> None:
    if not tx.rows(SQL.outbox_id):
        tx.run(SQL.put_outbox_id, {"value": new_outbox_id()})
    rows = [
        {
            "id": event.id,
            "sequence": sequence,
            "webhook": event.webhook,
            "tx_at": position_of(event.block, event.tx_index),
            "block_hash": event.block_hash,
            "tx_hash": event.tx_hash,
            "created": now,
            "detail": event.detail,
        }
        for sequence, event in enumerate(events, _newest(tx) + 1)
    ]
    tx.run_many(SQL.put_event, rows)


def new_outbox_id() -> str:
    """Return an ID that no outbox had before: those who deliver read an outbox with another ID from its beginning."""
    return secrets.token_hex(8)


def _newest(tx: Transaction) -> int:
    return int(tx.rows(SQL.newest_sequence)[0][0])
