"""Shows the progress of indexing: a line per chain that is redrawn on a terminal, and lines now and then elsewhere."""

import shutil
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple, TextIO

from icefall.evm.indexing.follower import FollowerStatus
from icefall.observe.counters import Rate

_LINE_EVERY_S = 10.0
_BAR = 20
_NAME_MAX = 16  # on a terminal
_WAITING = "waiting for the upstream"


class ChainProgress(NamedTuple):
    """The progress of one chain. `source`: the upstream that blocks are fetched from; empty while there is none."""

    status: FollowerStatus
    per_second: float
    source: str = ""

    @property
    def done(self) -> int:
        """The number of blocks up to the newest stored one."""
        return 0 if self.status.tip is None else self.status.tip + 1

    @property
    def whole(self) -> int:
        return max(1, (self.status.target or 0) + 1)

    @property
    def share(self) -> float:
        """The part of the blocks up to the target that is done, 0 to 1; 0 while no target is known."""
        return 0.0 if self.status.target is None else min(1.0, self.done / self.whole)

    @property
    def left_s(self) -> float | None:
        left = self.whole - self.done
        return left / self.per_second if self.per_second > 0 and left > 0 else None

    @property
    def lag(self) -> int | None:
        """The number of blocks behind the head of the upstream."""
        return None if self.status.head is None else max(0, self.status.head + 1 - self.done)


def describe(name: str, progress: ChainProgress) -> str:
    """Describe one chain in one line, for a log."""
    status, source = progress.status, f", from {progress.source}" if progress.source else ""
    if status.target is None:
        return f"{name}: {status.problem or _WAITING}"
    if status.synced:
        behind = f", {progress.lag} behind the head" if progress.lag else ""
        return f"{name}: block {status.tip} of {status.target}, synced{behind}{source}"
    where = f"block {status.tip} of {status.target}" if status.tip is not None else f"no block of {status.target} yet"
    eta = f", {duration_text(progress.left_s)} left" if progress.left_s is not None else ""
    text = f"{name}: {where} ({100 * progress.share:.1f} %), {progress.per_second:,.0f} blocks/s{eta}"
    text += f", {progress.lag} behind the head{source}"
    return f"{text}; {status.problem}" if status.problem else text


def terminal_line(name: str, progress: ChainProgress, width: int) -> str:
    """Describe one chain in at most `width` columns. What matters least is left out first."""
    status = progress.status
    short = name if len(name) <= _NAME_MAX else name[: _NAME_MAX - 1] + "~"
    if status.problem or status.target is None:
        text = status.problem or _WAITING
        whole = f"{short} {_bar(progress)} {text}"
        return whole if len(whole) <= width else f"{short} {text}"[:width]
    if status.synced:
        parts = [(short, 9), ("synced", 8), (f"block {status.tip:,}", 7)]
    else:
        eta = duration_text(progress.left_s) + " left" if progress.left_s is not None else ""
        parts = [(short, 9), (_bar(progress), 1), (f"{100 * progress.share:.1f} %", 8), (f"{progress.done:,}", 5)]
        parts += [(f"{progress.per_second:,.0f}/s", 7), (eta, 6)]
    parts += [(f"lag {progress.lag:,}" if progress.lag is not None else "", 4), (progress.source, 3)]
    parts = [part for part in parts if part[0]]
    while len(parts) > 1 and len(" ".join(text for text, _ in parts)) > width:
        parts.remove(min(parts, key=lambda part: part[1]))
    return " ".join(text for text, _ in parts)[:width]


def duration_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days:,} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _bar(progress: ChainProgress) -> str:
    filled = int(_BAR * progress.share)
    return "[" + "#" * filled + "." * (_BAR - filled) + "]"


class Display:
    """The display of progress. It redraws in place on a terminal. Elsewhere it writes a line when something changed, at
    most every ten seconds.

    Log lines are written through it too (`write`, `flush` and `isatty`, like a file): on a terminal they appear above
    the bars and stay.
    """

    def __init__(
        self, out: TextIO = sys.stderr, columns: Callable[[], int] = lambda: shutil.get_terminal_size().columns
    ) -> None:
        self._out = out
        self._columns = columns
        self._live = out.isatty()
        self._rates: dict[str, Rate] = {}
        self._lines: list[str] = []  # those on the terminal
        self._last: dict[str, tuple[float, str]] = {}

    def show(self, now: float, statuses: Mapping[str, FollowerStatus], sources: Mapping[str, str]) -> None:
        known = {}
        for name, status in statuses.items():
            rate = self._rates.setdefault(name, Rate(now, status.blocks))
            rate.note(now, status.blocks)
            known[name] = ChainProgress(status, rate.per_second(now, status.blocks), sources.get(name, ""))
        if self._live:
            width = max(1, self._columns() - 1)  # in the last column some terminals wrap
            self._redraw([terminal_line(name, progress, width) for name, progress in known.items()])
            return
        for name, progress in known.items():
            when, before = self._last.get(name, (-_LINE_EVERY_S, ""))
            text = describe(name, progress)
            if text != before and now - when >= _LINE_EVERY_S:
                self._last[name] = now, text
                self._put(text + "\n")

    def finish(self, now: float, statuses: Mapping[str, FollowerStatus], sources: Mapping[str, str]) -> None:
        self._last = {name: (now - _LINE_EVERY_S, text) for name, (_, text) in self._last.items()}  # only what is new
        self.show(now, statuses, sources)
        self._lines = []  # they stay

    def write(self, text: str) -> int:
        """Write a log line."""
        lines, self._lines = self._lines, []
        self._put(f"{_erase(len(lines))}{text}" + "".join(f"{line}\n" for line in lines))
        self._lines = lines
        return len(text)

    def flush(self) -> None:
        self._out.flush()

    def isatty(self) -> bool:
        return self._live

    def _redraw(self, lines: list[str]) -> None:
        erase, self._lines = _erase(len(self._lines)), lines
        self._put(erase + "".join(f"{line}\n" for line in lines))

    def _put(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):
            pass  # indexing goes on when the terminal is closed


def _erase(count: int) -> str:
    """The codes that move up by that many lines and clear everything below."""
    return f"\x1b[{count}F\x1b[J" if count else ""
