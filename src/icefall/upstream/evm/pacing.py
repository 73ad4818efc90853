"""Finds out how much an upstream takes: requests at a time, calls in a request, transactions of a block to trace at
once."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from icefall.upstream.meter import Clock

_GROWTH_WAIT = 4  # full batches that must succeed before the size grows; doubled each time a grown size failed
_GROWTH_WAIT_MAX = 1024
_SPLIT_BLOCKS = 64  # traced by transaction, before larger ones are tried as a whole again


class AdaptiveLimit:
    """A limit on requests at a time: halved when the upstream is overloaded, otherwise one more per round."""

    def __init__(self, clock: Clock, limit_max: int) -> None:
        self.limit = float(limit_max)
        self.in_use = 0
        self._limit_max = limit_max
        self._clock = clock
        self._tickets = 0
        self._cut_at = 0
        self._paused_until = 0.0
        self._waiters: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[int]:
        """Wait for a free slot and hold it. The ticket numbers slots in order, for `reduce`."""
        try:
            await self._await_slot()
        except asyncio.CancelledError:
            self._wake()  # its turn may have come: pass the slot on
            raise
        self.in_use += 1
        self._tickets += 1
        try:
            yield self._tickets
        finally:
            self.in_use -= 1
            self._wake()

    def reduce(self, ticket: int, pause_s: float = 0.0) -> None:
        """Allow half as many at a time, and none before the pause is over. Requests that began before the last cut do
        not cut again."""
        if ticket > self._cut_at:
            self._cut_at = self._tickets
            self.limit = max(1.0, self.limit / 2)
        self._paused_until = max(self._paused_until, self._clock.now() + pause_s)

    def increase(self) -> None:
        """Allow more at a time, because a request succeeded."""
        self.limit = min(float(self._limit_max), self.limit + 1 / self.limit)
        self._wake()

    async def _await_slot(self) -> None:
        while True:
            pause_s = self._paused_until - self._clock.now()
            if pause_s > 0:
                await self._clock.sleep(pause_s)
            elif self.in_use < int(self.limit):
                return
            else:
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
                await waiter

    def _wake(self) -> None:
        free = int(self.limit) - self.in_use
        while free > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1


class BatchSize:
    """The number of calls that go into one request. `refused` is the smallest number that was refused for being too
    many."""

    def __init__(self, size_max: int) -> None:
        self.size = size_max
        self.refused: int | None = None
        self._size_max = size_max
        self._successes = 0
        self._growth_wait = _GROWTH_WAIT
        self._grown = False

    def succeeded(self, count: int) -> None:
        """Count a batch of `count` that succeeded; only full ones let the size grow."""
        if count < self.size:
            return
        self._successes += 1
        if self._successes >= self._growth_wait:
            self._successes = 0
            self._grown = True
            self.size = min(self._ceiling, self.size + max(1, self.size // 4))

    def halve(self, count: int) -> None:
        """Reduce the size after a batch of `count` was too much to answer, this time."""
        self._successes = 0
        if self._grown:
            self._growth_wait, self._grown = min(self._growth_wait * 2, _GROWTH_WAIT_MAX), False
        self.size = max(1, min(self.size, count // 2))

    def refuse(self, count: int) -> None:
        """Reduce the size for good after a batch of `count` was refused for the number of its calls."""
        self.refused = min(self.refused or count, count)
        self.halve(count)

    @property
    def _ceiling(self) -> int:
        return self._size_max if self.refused is None else max(1, min(self._size_max, self.refused - 1))


class WholeBlocks:
    """The size of blocks, in transactions, that an upstream can trace in one request. Larger ones are traced one
    transaction at a time; after some of them a larger one is tried again as a whole."""

    def __init__(self) -> None:
        self.refused: int | None = None  # transactions of the smallest block that was too heavy
        self._split = 0

    def fits(self, txs: int) -> bool:
        """Tell whether a block of so many transactions is to be traced in one request."""
        if self.refused is not None and self._split >= _SPLIT_BLOCKS:
            self.refused, self._split = 2 * self.refused, 0
        if self.refused is None or txs < self.refused:
            return True
        self._split += 1
        return False

    def refuse(self, txs: int) -> None:
        """Note a block that was too heavy."""
        self.refused, self._split = txs if self.refused is None else min(txs, self.refused), 0
