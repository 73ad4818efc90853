"""What there is to say about the calls to one upstream: how many, how many failed lately, what is under way."""

import asyncio
import time
from collections import deque

WINDOW_S = 60.0
_WINDOW_CALLS_MAX = 10_000


class Clock:
    """Time as this package sees it, so that a test can hand in another."""

    def now(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Meter:
    """An attempt failed when no JSON-RPC answer came of it; an upstream that says no in JSON-RPC has answered."""

    def __init__(self, clock: Clock) -> None:
        self.calls = 0
        self.failures = 0
        self.last_sent_s: float | None = None
        self.last_received_s: float | None = None
        self.reachable = False  # by its latest attempt
        self._clock = clock
        self._under_way: dict[int, float] = {}
        self._ended: deque[tuple[float, bool]] = deque(maxlen=_WINDOW_CALLS_MAX)

    def begin(self) -> int:
        """A ticket to end the attempt with."""
        self.calls += 1
        self.last_sent_s = self._under_way[self.calls] = self._clock.now()
        return self.calls

    def end(self, ticket: int, *, failed: bool) -> None:
        now = self._clock.now()
        del self._under_way[ticket]
        self._ended.append((now, failed))
        self.reachable = not failed
        if failed:
            self.failures += 1
        else:
            self.last_received_s = now

    def abandon(self, ticket: int) -> None:
        """We lost interest: that says nothing about the upstream."""
        del self._under_way[ticket]

    def recent(self, window_s: float = WINDOW_S) -> tuple[int, int]:
        """Attempts that ended within the window, and how many of them failed."""
        since = self._clock.now() - window_s
        while self._ended and self._ended[0][0] < since:
            self._ended.popleft()
        return len(self._ended), sum(failed for _, failed in self._ended)

    @property
    def in_flight(self) -> int:
        return len(self._under_way)

    @property
    def longest_s(self) -> float:
        """For how long the oldest attempt has been under way."""
        return self._clock.now() - min(self._under_way.values()) if self._under_way else 0.0
