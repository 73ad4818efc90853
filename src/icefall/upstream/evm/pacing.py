"""Adapts to an upstream: how many requests run at the same time, and how many calls go into one of them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from icefall.upstream.meter import Clock

_GROWTH_WAIT = 4  # full batches that must succeed before the size grows; doubled each time a grown size failed
_GROWTH_WAIT_MAX = 1024


class AdaptiveLimit:
    """At most `limit` requests at a time: halved when the upstream is overloaded, otherwise one more per round."""

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
        """Half as many at a time, and none before the pause is over. Requests that began before the last cut do not cut
        again."""
        if ticket > self._cut_at:
            self._cut_at = self._tickets
            self.limit = max(1.0, self.limit / 2)
        self._paused_until = max(self._paused_until, self._clock.now() + pause_s)

    def increase(self) -> None:
        """A request succeeded."""
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
    """How many calls go into one request. `refused` is the smallest number that was refused for being too many."""

    def __init__(self, size_max: int) -> None:
        self.size = size_max
        self.refused: int | None = None
        self._size_max = size_max
        self._successes = 0
        self._growth_wait = _GROWTH_WAIT
        self._grown = False

    def succeeded(self, count: int) -> None:
        """A batch of `count` succeeded; only full ones let the size grow."""
        if count < self.size:
            return
        self._successes += 1
        if self._successes >= self._growth_wait:
            self._successes = 0
            self._grown = True
            self.size = min(self._ceiling, self.size + max(1, self.size // 4))

    def halve(self, count: int) -> None:
        """A batch of `count` was too much to answer, this time."""
        self._successes = 0
        if self._grown:
            self._growth_wait, self._grown = min(self._growth_wait * 2, _GROWTH_WAIT_MAX), False
        self.size = max(1, min(self.size, count // 2))

    def refuse(self, count: int) -> None:
        """A batch of `count` was refused for the number of its calls: that many are never sent again."""
        self.refused = min(self.refused or count, count)
        self.halve(count)

    @property
    def _ceiling(self) -> int:
        return self._size_max if self.refused is None else max(1, min(self._size_max, self.refused - 1))
