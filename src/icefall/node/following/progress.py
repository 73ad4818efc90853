"""How far a follower has come, how fast, and how long the rest will take."""

from collections import deque

import msgspec

_WINDOW_S = 30.0


class Progress(msgspec.Struct, frozen=True):
    """`of` is None while no upstream has told its tip, `eta_s` also while nothing moves."""

    done: int
    of: int | None
    per_second: float
    eta_s: float | None


class Pace:
    """The rate over the last half minute."""

    def __init__(self, now: float, count: int) -> None:
        self._samples = deque([(now, count)])

    def note(self, now: float, count: int) -> None:
        self._samples.append((now, count))
        while len(self._samples) > 2 and self._samples[1][0] < now - _WINDOW_S:
            self._samples.popleft()

    def progress(self, now: float, done: int, of: int | None) -> Progress:
        since, before = self._samples[0]
        rate = (done - before) / (now - since) if now > since else 0.0
        if of is None:
            return Progress(done, of, rate, None)
        missing = max(0, of - done)
        return Progress(done, of, rate, 0.0 if missing == 0 else missing / rate if rate > 0 else None)
