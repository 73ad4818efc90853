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


class PollingClock(FakeClock):
    """Sleeping takes next to no time, and yet leaves the processor to those that have something to do: a follower at
    the tip would ask its upstream a thousand times while another one catches up."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await asyncio.sleep(0.02)
