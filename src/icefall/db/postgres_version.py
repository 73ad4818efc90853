"""The version of a schema, asked of the server for many requests at once.

A request may use the result of a check that was sent after it had come, and of no other: so its answer is as new as one
that is read from the store. Those that come while a check is on its way share the next one. Under load one round trip
serves all requests that came during the one before.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from icefall.db.engine import StoreError

_LIMIT_S = 2.0  # of one check; requests that wait for it go on without
_PAUSE_S = 5.0  # after a failure: else every request would wait for one, and a server log every missing column


class VersionCheck:
    """Of one schema, in one event loop. `ask` sends the question."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        ask: Callable[[], Awaitable[int | None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.loop = loop
        self._ask = ask
        self._clock = clock
        self._paused_until = 0.0
        self._waiting: list[asyncio.Future[int | None]] = []
        self._task: asyncio.Task[None] | None = None

    async def result(self) -> int | None:
        """None if there is no version, or it cannot be had: reading the store tells why."""
        if self._clock() < self._paused_until:
            return None
        own: asyncio.Future[int | None] = self.loop.create_future()  # a request may be cancelled without the others
        self._waiting.append(own)
        if self._task is None:
            self._task = self.loop.create_task(self._check_all())
        return await own

    async def _check_all(self) -> None:
        """One check after the other, while there are requests that wait."""
        served: list[asyncio.Future[int | None]] = []
        try:
            while self._waiting:
                served, self._waiting = self._waiting, []
                _tell(served, await self._check())
        finally:
            self._task = None
            _tell(served + self._waiting, None)  # none are left, unless the loop ends

    async def _check(self) -> int | None:
        try:
            async with asyncio.timeout(_LIMIT_S):
                return await self._ask()
        except (StoreError, TimeoutError):
            self._paused_until = self._clock() + _PAUSE_S
            return None


def _tell(waiting: list[asyncio.Future[int | None]], version: int | None) -> None:
    for one in waiting:
        if not one.done():  # cancelled
            one.set_result(version)
