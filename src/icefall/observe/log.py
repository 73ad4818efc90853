"""Log lines: structured, to a file per logger and to the terminal, at levels that can be changed at run time.

The levels of all loggers are in one small page of shared memory. The engine writes it and every process reads it before
it formats a line, so a change holds everywhere at once and a line below the level costs one byte read.
"""

import logging
import mmap
import os
import sys
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import msgspec

LEVELS = {"VERBO": 1, "DEBUG": 2, "TRACE": 3, "INFO": 4, "WARN": 5, "ERROR": 6, "FATAL": 7, "OFF": 8}
_DEBUG = LEVELS["DEBUG"]
LEVEL_NAMES = {number: name for name, number in LEVELS.items()}
_COLOURS = {"WARN": "33", "ERROR": "31", "FATAL": "31", "DEBUG": "2", "VERBO": "2", "TRACE": "2"}
_REOPEN_S = 1.0


class LevelPage:
    """Two bytes per logger, in the order of their names: the level of the file and that of the terminal."""

    def __init__(self, names: Iterable[str], memory: "mmap.mmap | bytearray") -> None:
        self._slots = {name: 2 * position for position, name in enumerate(sorted(names))}
        self._memory = memory

    @classmethod
    def shared(cls, names: list[str], path: Path, *, create: bool) -> "LevelPage":
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        fd = os.open(path, flags, 0o600)
        try:
            if create:
                os.ftruncate(fd, mmap.PAGESIZE)
            return cls(names, mmap.mmap(fd, mmap.PAGESIZE))
        finally:
            os.close(fd)

    @classmethod
    def private(cls, names: list[str]) -> "LevelPage":
        return cls(names, bytearray(mmap.PAGESIZE))

    def names(self) -> list[str]:
        return list(self._slots)

    def put(self, logger: str, log_level: str, display_level: str) -> None:
        slot = self._slots[logger]
        self._memory[slot : slot + 2] = bytes((LEVELS[log_level], LEVELS[display_level]))

    def get(self, logger: str) -> tuple[str, str]:
        slot = self._slots[logger]
        return LEVEL_NAMES[self._memory[slot]], LEVEL_NAMES[self._memory[slot + 1]]

    def slot(self, logger: str) -> int:
        return self._slots[logger]

    def wants(self, slot: int, level: int) -> bool:
        return level >= self._memory[slot] or level >= self._memory[slot + 1]

    def sinks(self, logger: str, level: int) -> tuple[bool, bool]:
        slot = self._slots[logger]
        return level >= self._memory[slot], level >= self._memory[slot + 1]


class LogFile:
    """A file that is appended to, also after it was moved away (logrotate) and after a full disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._checked = 0.0
        self._torn = False

    def write(self, line: bytes) -> None:
        try:
            if time.monotonic() - self._checked > _REOPEN_S:
                self._reopen()
            whole = b"\n" + line if self._torn else line
            self._torn = os.write(self._fd, whole) < len(whole)  # a full disk takes part of a line
        except OSError:
            self._checked = 0.0  # a log that cannot be written must not stop the program

    def _reopen(self) -> None:
        if self._fd >= 0:
            try:
                if self._path.stat().st_ino == os.fstat(self._fd).st_ino:
                    self._checked = time.monotonic()
                    return
            except FileNotFoundError:
                pass
            os.close(self._fd)
            self._fd = -1
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._checked = time.monotonic()


class Log:
    """One logger. `fields` become JSON keys in the file and a JSON tail on the terminal."""

    def __init__(
        self, name: str, process: str, page: LevelPage, file: LogFile | None, terminal: TextIO, *, as_json: bool
    ) -> None:
        self.name = name
        self._slot = page.slot(name)
        self._process = process
        self._page = page
        self._file = file
        self._terminal = terminal
        self._as_json = as_json

    def is_debug(self) -> bool:
        """Whether a DEBUG line would be written: checked at every request, so it must be cheap."""
        return self._page.wants(self._slot, _DEBUG)

    def write(self, level: str, message: str, **fields: Any) -> None:
        to_file, to_terminal = self._page.sinks(self.name, LEVELS[level])
        if not (to_file or to_terminal):
            return
        now = datetime.now().astimezone()
        record = {"time": now.isoformat(), "level": level, "logger": self.name, "process": self._process}
        line = msgspec.json.encode({**record, "message": message, **fields}, enc_hook=str) + b"\n"
        if to_file and self._file is not None:
            self._file.write(line)
        if to_terminal:
            try:
                self._terminal.write(line.decode() if self._as_json else self._plain(now, level, message, fields))
                self._terminal.flush()
            except (OSError, ValueError):
                pass  # a closed terminal is no reason to stop

    def _plain(self, now: datetime, level: str, message: str, fields: dict[str, Any]) -> str:
        shown = f"{level:<5}"
        if level in _COLOURS and self._terminal.isatty():
            shown = f"\x1b[{_COLOURS[level]}m{shown}\x1b[0m"
        tail = " " + msgspec.json.encode(fields, enc_hook=str).decode() if fields else ""
        return f"[{now:%m-%d|%H:%M:%S}.{now.microsecond // 1000:03d}] {shown} <{self.name}> {message}{tail}\n"

    def debug(self, message: str, **fields: Any) -> None:
        self.write("DEBUG", message, **fields)

    def info(self, message: str, **fields: Any) -> None:
        self.write("INFO", message, **fields)

    def warn(self, message: str, **fields: Any) -> None:
        self.write("WARN", message, **fields)

    def error(self, message: str, **fields: Any) -> None:
        self.write("ERROR", message, **fields)

    def fatal(self, message: str, **fields: Any) -> None:
        self.write("FATAL", message, **fields)


class Logs:
    """All loggers of one process."""

    def __init__(self, process: str, page: LevelPage, log_dir: Path | None, format_name: str) -> None:
        terminal = sys.stderr
        as_json = format_name == "json" or (format_name == "auto" and not terminal.isatty())
        self.page = page
        self._by_name = {
            name: Log(
                name, process, page, LogFile(log_dir / f"{name}.log") if log_dir else None, terminal, as_json=as_json
            )
            for name in page.names()
        }

    def __getitem__(self, name: str) -> Log:
        return self._by_name[name]

    def capture_library_logs(self) -> None:
        """Lines that libraries log through the standard module go to `main`, from WARN up."""
        root = logging.getLogger()
        root.handlers[:] = [_Forward(self["main"])]
        root.setLevel(logging.WARNING)


class _Forward(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        level = "ERROR" if record.levelno >= logging.ERROR else "WARN"
        self._log.write(level, record.getMessage(), source=record.name)


def open_logs(
    process: str,
    names: list[str],
    log_dir: Path,
    levels: tuple[str, str],
    format_name: str,
    *,
    shared: Path | None = None,
    create: bool = False,
) -> Logs:
    """The loggers of a process. Only the process that creates the shared page, or one without it, sets the levels."""
    page = LevelPage.shared(names, shared, create=create) if shared else LevelPage.private(names)
    if create or not shared:
        for name in names:
            page.put(name, *levels)
    logs = Logs(process, page, log_dir, format_name)
    logs.capture_library_logs()
    return logs


def quiet() -> Log:
    """A logger that writes nothing."""
    page = LevelPage.private(["main"])
    page.put("main", "OFF", "OFF")
    return Logs("", page, None, "plain")["main"]
