"""Matches webhooks that start at an older block with the blocks that were stored before: a few at a time, upwards.

Contracts match by their logs, so blocks are fetched again, and must be the stored ones. The rest is read from the lists
of addresses. Events have the same IDs as if they had been matched with their block, so a step that is repeated after a
kill, or a block that is stored again meanwhile, adds nothing.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing

from icefall.db.engine import Store, Transaction
from icefall.evm.encoding import block_of, index_of, position_of
from icefall.evm.indexing.decoder import BlockDecoder
from icefall.evm.model import RawBlock, StoredRaw
from icefall.evm.storing.raw import SQL as RAW
from icefall.upstream.client import InvalidAnswer
from icefall.upstream.evm.upstream import EvmUpstream
from icefall.webhooks.matching import WatchList
from icefall.webhooks.model import Unfilled
from icefall.webhooks.outbox import SQL, FillSource, put_events

BLOCKS_MAX = 100_000  # below the newest block that a webhook may start
ADDRESSES_MAX = 1_000  # of a webhook that starts at an older block
STEP_BLOCKS = 128
_MATCHED = StoredRaw(matched=True)


class WebhookFilling:
    """The filling of one chain."""

    def __init__(
        self,
        chain_id: str,
        store: Store,
        source: FillSource,
        upstream: EvmUpstream,
        decoder: BlockDecoder,
        *,
        verify_roots: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._chain_id = chain_id
        self._store = store
        self._source = source
        self._upstream = upstream
        self._decoder = decoder
        self._verify_roots = verify_roots
        self._clock = clock

    async def step(self) -> bool:
        """Match a few blocks. Return whether there was anything to do. UpstreamFailure where blocks cannot be fetched
        or are invalid."""
        gap = await self._source.unfilled(self._chain_id)
        if gap is None:
            return False
        lowest, highest = self._store.read(RAW.bounds)[0]
        if highest is None or highest + 1 < gap.first:
            return False  # the blocks were rolled back, and those that replace them are not stored yet
        first = max(gap.first, lowest)
        end = min(gap.end, first + STEP_BLOCKS, highest + 1)
        if first == end < gap.end:
            return False
        if first < end:
            blocks = await self._fetched(first, end)
            if not await self._store.write(lambda tx: self._put(tx, gap, blocks)):
                return True  # the stored blocks have changed meanwhile
        await self._source.put_filled(gap.webhook.id, max(end, first))
        return True

    async def _fetched(self, first: int, end: int) -> Sequence[RawBlock]:
        async with aclosing(self._upstream.fetch_without_diffs(range(first, end), calls=False)) as blocks:
            fetched = [block async for block in blocks]
        chunk = await self._decoder.raw(fetched, roots=self._verify_roots, raw=_MATCHED)
        if chunk.rejected is not None:
            invalid, reason = fetched[chunk.rejected.index], chunk.rejected.reason
            self._upstream.back_off_source(invalid.source, reason)
            raise InvalidAnswer(f"block {invalid.number} from {invalid.source} is invalid: {reason}")
        return chunk.blocks

    def _put(self, tx: Transaction, gap: Unfilled, blocks: Sequence[RawBlock]) -> bool:
        first, end = blocks[0].number, blocks[-1].number + 1
        stored = [(number, bytes(one)) for number, one in tx.rows(RAW.hashes, {"first": first, "end": end})]
        if stored != [(one.number, one.block_hash) for one in blocks]:
            return False
        watched = WatchList(self._chain_id)
        watched.put(gap.webhook, gap.addresses)
        touched = _touched(tx, gap.addresses, first, end)
        events = []
        for block in blocks:
            assert block.rows.matched is not None
            hashes = {}
            if touched.get(block.number) or watched.has_emitter(block.rows.matched):
                span = {"low": position_of(block.number, 0), "high": position_of(block.number + 1, 0)}
                hashes = {index_of(at): bytes(one) for at, one in tx.rows(SQL.tx_hashes, span)}
            events += watched.events_of(
                block.number, block.block_hash, block.rows.matched, touched.get(block.number, ()), hashes
            )
        if events:
            put_events(tx, events, int(self._clock()))
        return True


def _touched(tx: Transaction, addresses: Sequence[bytes], first: int, end: int) -> dict[int, set[int]]:
    """The transactions of blocks that one of the addresses takes part in, by block: their indexes."""
    found: dict[int, set[int]] = {}
    span = {"low": position_of(first, 0), "high": position_of(end, 0)}
    for (number,) in tx.rows_of_each(SQL.address_numbers, [(one,) for one in addresses]):
        for statement in (SQL.native_txs, SQL.touching_txs):
            for (at,) in tx.rows(statement, {**span, "id": number}):
                found.setdefault(block_of(at), set()).add(index_of(at))
    return found
