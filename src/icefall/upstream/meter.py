"""Counts the calls to one upstream: how many, how many failed lately, how many are in flight."""

import asyncio
import time
from collections import deque

WINDOW_S = 60.0
_WINDOW_CALLS_MAX = 10_000


class Clock:
    """The time, passed in so that a test can replace it."""

    def now(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Meter:
    """The counts of one upstream. An attempt failed if it got no JSON-RPC answer; a JSON-RPC error is an answer."""

    def __init__(self, clock: Clock) -> None:
        self.calls = 0
        self.failures = 0
        self.last_sent_s: float | None = None
        self.last_received_s: float | None = None
        self.reachable = False  # by its latest attempt
        self._clock = clock
        self._in_flight: dict[int, float] = {}
        self._ended: deque[tuple[float, bool]] = deque(maxlen=_WINDOW_CALLS_MAX)

    def begin(self) -> int:
        """Count an attempt and return a ticket to end it with."""
        self.calls += 1
        self.last_sent_s = self._in_flight[self.calls] = self._clock.now()
        return self.calls

    def end(self, ticket: int, *, failed: bool) -> None:
        now = self._clock.now()
        del self._in_flight[ticket]
        self._ended.append((now, failed))
        self.reachable = not failed
        if failed:
            self.failures += 1
        else:
            self.last_received_s = now

    def abandon(self, ticket: int) -> None:
        """End an attempt that was cancelled on our side: counted neither as success nor as failure."""
        del self._in_flight[ticket]

    def recent(self, window_s: float = WINDOW_S) -> tuple[int, int]:
        """Return how many attempts ended within the window, and how many of them failed."""
        since = self._clock.now() - window_s
        while self._ended and self._ended[0][0] < since:
            self._ended.popleft()
        return len(self._ended), sum(failed for _, failed in self._ended)

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def longest_s(self) -> float:
        """The time for which the oldest attempt has been in flight."""
        return self._clock.now() - min(self._in_flight.values()) if self._in_flight else 0.0
