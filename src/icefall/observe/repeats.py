"""Counts repeated log lines instead of writing each of them."""

import time
from collections.abc import Callable

WINDOW_S = 10.0
_LINES_MAX = 64


class _Line:
    __slots__ = ("more", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.more = 0


class RepeatedLines:
    """The lines of the last seconds. A line is written once per window; further ones are counted.

    `report` is called with a line and how many more of it there were, when its window is over and anything is written.
    """

    def __init__(self, report: Callable[[str, str, int], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._lines: dict[tuple[str, str, bytes], _Line] = {}  # in the order of their windows

    def is_repeated(self, level: str, message: str, fields: bytes) -> bool:
        now = self._clock()
        while self._lines:
            oldest = next(iter(self._lines))
            if now - self._lines[oldest].since < WINDOW_S and len(self._lines) <= _LINES_MAX:
                break
            ended = self._lines.pop(oldest)
            if ended.more:
                self._report(oldest[0], oldest[1], ended.more)
        line = self._lines.get((level, message, fields))
        if line is None:
            self._lines[level, message, fields] = _Line(now)
            return False
        line.more += 1
        return True
