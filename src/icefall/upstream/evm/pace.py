"""How fast an upstream lets itself be asked: how many requests at a time, and how many calls in one of them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from icefall.upstream.meter import Clock

_GROWTH_WAIT = 4  # full batches that must fare well before the next is larger; doubled each time that was too bold
_GROWTH_WAIT_MAX = 1024


class AdaptiveLimit:
    """Lets `limit` requests through at a time. Halved when the upstream struggles, grown by one a round when not."""

    def __init__(self, clock: Clock, most: int) -> None:
        self.limit = float(most)
        self.inside = 0
        self._most = most
        self._clock = clock
        self._entered = 0
        self._cut_at = 0
        self._quiet_until = 0.0
        self._waiters: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        """Inside is whoever holds the ticket that comes of it."""
        while True:
            pause_s = self._quiet_until - self._clock.now()
            if pause_s > 0:
                await self._clock.sleep(pause_s)
            elif self.inside < int(self.limit):
                break
            else:
                await self._turn()
        self.inside += 1
        self._entered += 1
        try:
            yield self._entered
        finally:
            self.inside -= 1
            self._wake()

    def slower(self, ticket: int, pause_s: float = 0.0) -> None:
        """Half as many at a time, and none before the pause is over. Who entered before the last cut adds no other."""
        if ticket > self._cut_at:
            self._cut_at = self._entered
            self.limit = max(1.0, self.limit / 2)
        self._quiet_until = max(self._quiet_until, self._clock.now() + pause_s)

    def faster(self) -> None:
        """A request fared well."""
        self.limit = min(float(self._most), self.limit + 1 / self.limit)
        self._wake()

    async def _turn(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()  # the turn we were given is somebody else's
            raise

    def _wake(self) -> None:
        free = int(self.limit) - self.inside
        while free > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1


class BatchSize:
    """How many calls go into one request. `refused` is the least number ever refused for being one too many."""

    def __init__(self, most: int) -> None:
        self.size = most
        self.refused: int | None = None
        self._most = most
        self._well = 0
        self._wait = _GROWTH_WAIT
        self._grown = False

    def fared_well(self, count: int) -> None:
        """A batch of `count` came out right; only full ones say anything about larger ones."""
        if count < self.size:
            return
        self._well += 1
        if self._well >= self._wait:
            self._well = 0
            self._grown = True
            self.size = min(self._ceiling, self.size + max(1, self.size // 4))

    def halve(self, count: int) -> None:
        """A batch of `count` was too much to answer, this time."""
        self._well = 0
        if self._grown:
            self._wait, self._grown = min(self._wait * 2, _GROWTH_WAIT_MAX), False
        self.size = max(1, min(self.size, count // 2))

    def refuse(self, count: int) -> None:
        """A batch of `count` was refused for the number of its calls: never again that many."""
        self.refused = min(self.refused or count, count)
        self.halve(count)

    @property
    def _ceiling(self) -> int:
        return self._most if self.refused is None else max(1, min(self._most, self.refused - 1))
