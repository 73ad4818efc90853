"""A clock that obeys: sleeping takes no time, and what was slept is remembered."""

import asyncio

from icefall.upstream.meter import Clock


class FakeClock(Clock):
    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)
