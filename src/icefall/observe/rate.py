"""How fast a count grows."""

from collections import deque

_WINDOW_S = 30.0


class Rate:
    """Growth per second of a count that never falls, over the last half minute."""

    def __init__(self, now: float, count: int) -> None:
        self._samples = deque([(now, count)])

    def note(self, now: float, count: int) -> None:
        self._samples.append((now, count))
        while len(self._samples) > 2 and self._samples[1][0] < now - _WINDOW_S:
            self._samples.popleft()

    def per_second(self, now: float, count: int) -> float:
        since, before = self._samples[0]
        return (count - before) / (now - since) if now > since else 0.0
