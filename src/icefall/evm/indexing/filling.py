"""Fills in the raw logs and calls of blocks that were stored without them, a few at a time, from the newest down."""

from contextlib import aclosing
from functools import partial

from icefall.db.engine import Store
from icefall.evm.indexing.decoder import BlockDecoder
from icefall.evm.model import StoredRaw
from icefall.evm.storing.raw import Gap, drop_some, fill, newest_gap
from icefall.upstream.client import InvalidAnswer
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.upstream.evm.upstream import EvmUpstream

STEP_BYTES = 2 << 20  # as fetched: what one step aims at
STEP_BLOCKS = (1, 16, 256)  # of a step: at least, of the first one, and at most


class RawFilling:
    """The filling of one chain. `kinds`: what is to be stored; of the rest, what an earlier run stored is deleted."""

    def __init__(
        self, store: Store, upstream: EvmUpstream, decoder: BlockDecoder, kinds: StoredRaw, *, verify_roots: bool
    ) -> None:
        self._store = store
        self._upstream = upstream
        self._decoder = decoder
        self._kinds = kinds
        self._verify_roots = verify_roots
        self._blocks = STEP_BLOCKS[1]
        self._has_unwanted = True  # maybe

    async def step(self) -> bool:
        """Fill a few blocks. Return whether there was anything to do. UpstreamFailure where blocks cannot be fetched or
        are invalid."""
        if self._has_unwanted:
            self._has_unwanted = await self._store.write(partial(drop_some, kinds=self._kinds))
            return True
        gap = newest_gap(self._store.read, self._kinds, self._blocks)
        if gap is None:
            return False
        fetched = await self._fetched(gap)
        chunk = await self._decoder.raw(fetched, roots=self._verify_roots, raw=gap.kinds)
        if chunk.rejected is not None:
            invalid, reason = fetched[chunk.rejected.index], chunk.rejected.reason
            self._upstream.back_off_source(invalid.source, reason)
            raise InvalidAnswer(f"block {invalid.number} from {invalid.source} is invalid: {reason}")
        await self._store.write(partial(fill, gap=gap, blocks=chunk.blocks))
        return True

    async def _fetched(self, gap: Gap) -> list[FetchedBlock]:
        numbers = range(gap.first, gap.end)
        async with aclosing(self._upstream.fetch_without_diffs(numbers, calls=gap.kinds.calls)) as blocks:
            found = [block async for block in blocks]
        size = sum(block.size for block in found) / len(found)
        self._blocks = max(STEP_BLOCKS[0], min(STEP_BLOCKS[2], int(STEP_BYTES // max(1, size))))
        return found
