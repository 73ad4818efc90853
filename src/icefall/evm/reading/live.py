"""The newest blocks of a chain as the streams of one worker read them: once for all of them, not once for each."""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from icefall.evm.reading.model import BlockRead

TIP_AGE_S = 0.5  # of a tip that is given to several
_KEPT_MAX = 4  # made events of blocks, some megabytes where blocks are full
EventKey = tuple[bytes, str]  # the hash of a block, and what is made of it


class LiveBlocks:
    """Shared by all streams of a chain at a worker. What is kept of a block is found by its hash, so that it is never
    that of a block that was rolled back."""

    def __init__(self, read_tip: Callable[[], Awaitable[BlockRead | None]]) -> None:
        self._read_tip = read_tip
        self._tip: BlockRead | None = None
        self._read_at = float("-inf")
        self._is_reading = False
        self._made: OrderedDict[EventKey, list[bytes]] = OrderedDict()

    async def tip(self, clock: Callable[[], float] = time.monotonic) -> BlockRead | None:
        """Return the newest block, which another stream may have read a moment ago. Unavailable while the chain is not
        indexed."""
        if self._is_reading or clock() - self._read_at < TIP_AGE_S:
            return self._tip
        self._is_reading = True
        try:
            self._tip = await self._read_tip()
            self._read_at = clock()
        finally:
            self._is_reading = False
        return self._tip

    def made(self, key: EventKey) -> list[bytes] | None:
        """The events that another stream has made of a block."""
        return self._made.get(key)

    def keep(self, made: dict[EventKey, list[bytes]]) -> None:
        """Keep events for the streams that come to the block next."""
        self._made.update(made)
        while len(self._made) > _KEPT_MAX:
            self._made.popitem(last=False)
