"""Shows the progress of indexing: a bar on a terminal, lines elsewhere."""

import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

from icefall.evm.following.follower import FollowerStatus
from icefall.observe.rate import Rate

_LINE_EVERY_S = 10.0
_BAR = 24


def describe(name: str, status: FollowerStatus, per_second: float) -> str:
    """One chain in one line."""
    if status.target is None:
        return f"{name}: {status.problem or 'waiting for the upstream'}"
    done = (status.tip if status.tip is not None else -1) + 1
    whole = status.target + 1
    if status.synced:
        return f"{name}: block {status.tip} of {status.target}, synced"
    left = max(0, whole - done)
    eta = f", {_duration_text(left / per_second)} left" if per_second > 0 and left else ""
    share = 100.0 * done / whole if whole > 0 else 100.0
    text = f"{name}: block {done - 1} of {status.target} ({share:.1f} %), {per_second:,.0f} blocks/s{eta}"
    return f"{text}; {status.problem}" if status.problem else text


def _duration_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def bar(status: FollowerStatus) -> str:
    whole = (status.target or 0) + 1
    filled = min(_BAR, _BAR * ((status.tip if status.tip is not None else -1) + 1) // max(1, whole))
    return "[" + "#" * filled + "." * (_BAR - filled) + "]"


class Display:
    """Redraws in place on a terminal. Elsewhere it writes a line when something changed, at most every ten seconds."""

    def __init__(self, out: TextIO = sys.stderr) -> None:
        self._out = out
        self._live = out.isatty()
        self._rates: dict[str, Rate] = {}
        self._drawn = 0
        self._last: dict[str, tuple[float, str]] = {}

    def show(self, now: float, statuses: Mapping[str, FollowerStatus]) -> None:
        lines = []
        for name, status in statuses.items():
            rate = self._rates.setdefault(name, Rate(now, status.blocks))
            rate.note(now, status.blocks)
            lines.append((name, status, describe(name, status, rate.per_second(now, status.blocks))))
        if self._live:
            self._redraw([f"{bar(status)} {text}" for _, status, text in lines])
            return
        for name, _, text in lines:
            when, before = self._last.get(name, (-_LINE_EVERY_S, ""))
            if text != before and now - when >= _LINE_EVERY_S:
                self._last[name] = now, text
                self._write(text + "\n")

    def finish(self, now: float, statuses: Mapping[str, FollowerStatus]) -> None:
        self._last.clear()
        self.show(now, statuses)

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
            pass  # indexing goes on when the terminal is closed
