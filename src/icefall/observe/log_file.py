"""Log files: several processes append to one, and the process that fills it begins a new one. Lines that repeat are
counted instead of written.
"""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

_REOPEN_S = 1.0
MIB = 1 << 20


class Rotation(msgspec.Struct, frozen=True):
    """A file of more than `bytes_max` bytes becomes `.1`, the one before it `.2` and so on; at most `files_max` old
    ones are kept, 0 keeps all."""

    bytes_max: int = 8 * MIB
    files_max: int = 7


class LogFile:
    """A file that is appended to, also after it was moved away (rotated) and after a full disk."""

    def __init__(self, path: Path, rotation: Rotation = Rotation()) -> None:  # noqa: B008 - a frozen value
        self._path = path
        self._rotation = rotation
        self._fd = -1
        self._size = 0
        self._checked = 0.0
        self._torn = False

    def write(self, line: bytes) -> None:
        try:
            if time.monotonic() - self._checked > _REOPEN_S:
                self._reopen()
            if self._size > self._rotation.bytes_max:
                self._rotate()
                self._reopen()
            whole = b"\n" + line if self._torn else line
            written = os.write(self._fd, whole)
            self._torn = written < len(whole)  # a full disk takes part of a line
            self._size += written
        except OSError:
            self._checked = 0.0  # a log that cannot be written must not stop the program

    def _reopen(self) -> None:
        if self._fd >= 0 and not self._is_current():
            os.close(self._fd)
            self._fd = -1
        if self._fd < 0:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self._fd).st_size  # other processes append too
        self._checked = time.monotonic()

    def _is_current(self) -> bool:
        try:
            return self._path.stat().st_ino == os.fstat(self._fd).st_ino
        except FileNotFoundError:
            return False

    def _rotate(self) -> None:
        """One process of several does it: the first to lock the file that is still at its path."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            if self._is_current():
                self._move_away()
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _move_away(self) -> None:
        last = 1
        while self._old(last).exists() and last != self._rotation.files_max:
            last += 1
        for number in range(last, 1, -1):
            self._old(number - 1).replace(self._old(number))
        self._path.replace(self._old(1))

    def _old(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


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
