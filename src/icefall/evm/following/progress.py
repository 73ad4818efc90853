"""How indexing goes, for people: a bar on a terminal, a line now and then elsewhere."""

import shutil
import sys
from collections import deque
from collections.abc import Mapping
from typing import TextIO

from icefall.evm.following.follower import FollowerStatus

_WINDOW_S = 30.0
_LINE_EVERY_S = 10.0
_BAR = 24


class Rate:
    """Of something that only grows, over the last half minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, now: float, count: int) -> float:
        self._seen.append((now, count))
        while len(self._seen) > 2 and self._seen[1][0] < now - _WINDOW_S:
            self._seen.popleft()
        since, before = self._seen[0]
        return (count - before) / (now - since) if now > since else 0.0


def describe(name: str, standing: FollowerStatus, per_second: float) -> str:
    """One chain in one line."""
    if standing.target is None:
        return f"{name}: {standing.problem or 'waiting for the upstream'}"
    done = (standing.tip if standing.tip is not None else -1) + 1
    whole = standing.target + 1
    if standing.synced:
        return f"{name}: block {standing.tip} of {standing.target}, in step"
    left = max(0, whole - done)
    eta = f", {_spelt(left / per_second)} left" if per_second > 0 and left else ""
    share = 100.0 * done / whole if whole > 0 else 100.0
    text = f"{name}: block {done - 1} of {standing.target} ({share:.1f} %), {per_second:,.0f} blocks/s{eta}"
    return f"{text}; {standing.problem}" if standing.problem else text


def _spelt(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def bar(standing: FollowerStatus) -> str:
    whole = (standing.target or 0) + 1
    filled = min(_BAR, _BAR * ((standing.tip if standing.tip is not None else -1) + 1) // max(1, whole))
    return "[" + "#" * filled + "." * (_BAR - filled) + "]"


class Display:
    """Redraws in place on a terminal. Elsewhere a line when something changed, at most every ten seconds."""

    def __init__(self, out: TextIO = sys.stderr) -> None:
        self._out = out
        self._live = out.isatty()
        self._rates: dict[str, Rate] = {}
        self._drawn = 0
        self._last: dict[str, tuple[float, str]] = {}

    def show(self, now: float, standings: Mapping[str, FollowerStatus]) -> None:
        lines = []
        for name, standing in standings.items():
            rate = self._rates.setdefault(name, Rate()).note(now, standing.blocks)
            lines.append((name, standing, describe(name, standing, rate)))
        if self._live:
            self._redraw([f"{bar(standing)} {text}" for _, standing, text in lines])
            return
        for name, _, text in lines:
            when, before = self._last.get(name, (-_LINE_EVERY_S, ""))
            if text != before and now - when >= _LINE_EVERY_S:
                self._last[name] = now, text
                self._write(text + "\n")

    def finish(self, now: float, standings: Mapping[str, FollowerStatus]) -> None:
        self._last.clear()
        self.show(now, standings)

    def _redraw(self, lines: list[str]) -> None:
        width = shutil.get_terminal_size().columns
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        self._drawn = len(lines)
        self._write(up + "".join(f"\x1b[2K{line[: width - 1]}\n" for line in lines))

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):
            pass  # a closed terminal is no reason to stop
