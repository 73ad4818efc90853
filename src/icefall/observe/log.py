"""Log lines: structured, to a file per logger and to the terminal, at levels that can be changed at run time.

The levels of all loggers are in one small page of shared memory. The engine writes it and every process reads it before
it formats a line, so a change holds everywhere at once and a line below the level costs one byte read.
"""

import logging
import mmap
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from icefall.observe.counters import map_allocated
from icefall.observe.log_file import LogFile, RepeatedLines, Rotation

LEVELS = {"VERBO": 1, "DEBUG": 2, "TRACE": 3, "INFO": 4, "WARN": 5, "ERROR": 6, "FATAL": 7, "OFF": 8}
_DEBUG = LEVELS["DEBUG"]
_COUNTED = LEVELS["INFO"]  # from here up repeated lines are counted; who asks for DEBUG wants all of them
LEVEL_NAMES = {number: name for name, number in LEVELS.items()}
_COLOURS = {"WARN": "33", "ERROR": "31", "FATAL": "31", "DEBUG": "2", "VERBO": "2", "TRACE": "2"}


class Terminal(Protocol):
    """The place where lines are shown: standard error, or what draws on it."""

    def write(self, text: str, /) -> int: ...

    def flush(self) -> None: ...

    def isatty(self) -> bool: ...


class LevelPage:
    """Two bytes per logger, in the order of their names: the level of the file and that of the terminal."""

    def __init__(self, names: Iterable[str], memory: "mmap.mmap | bytearray") -> None:
        self._slots = {name: 2 * position for position, name in enumerate(sorted(names))}
        self._memory = memory

    @classmethod
    def shared(cls, names: list[str], path: Path, levels: tuple[str, str], *, create: bool) -> "LevelPage":
        """`create`: by the process that sets the levels. On a full disk each process has a page of its own."""
        has_levels = path.exists() and path.stat().st_size >= mmap.PAGESIZE
        memory = map_allocated(path, mmap.PAGESIZE) if create or has_levels else None
        page = cls(names, memory if memory is not None else bytearray(mmap.PAGESIZE))
        if create or memory is None:
            page.put_all(levels)
        return page

    @classmethod
    def private(cls, names: list[str]) -> "LevelPage":
        return cls(names, bytearray(mmap.PAGESIZE))

    def put_all(self, levels: tuple[str, str]) -> None:
        for name in self._slots:
            self.put(name, *levels)

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


class Log:
    """One logger. `fields` become JSON keys in the file and a JSON tail on the terminal."""

    def __init__(
        self, name: str, process: str, page: LevelPage, file: LogFile | None, terminal: Terminal, *, as_json: bool
    ) -> None:
        self.name = name
        self._slot = page.slot(name)
        self._process = process
        self._page = page
        self._file = file
        self._terminal = terminal
        self._as_json = as_json
        self._repeats = RepeatedLines(self._report_repeats)

    def is_debug(self) -> bool:
        """Whether a DEBUG line would be written: checked at every request, so it must be cheap."""
        return self._page.wants(self._slot, _DEBUG)

    def write(self, level: str, message: str, **fields: Any) -> None:
        to_file, to_terminal = self._page.sinks(self.name, LEVELS[level])
        if not (to_file or to_terminal):
            return
        if LEVELS[level] >= _COUNTED and self._repeats.is_repeated(level, message, _encoded(fields)):
            return
        self._put(level, message, fields, to_file=to_file, to_terminal=to_terminal)

    def _report_repeats(self, level: str, message: str, more: int) -> None:
        to_file, to_terminal = self._page.sinks(self.name, LEVELS[level])
        self._put(level, f"{message} ({more} more)", {}, to_file=to_file, to_terminal=to_terminal)

    def _put(self, level: str, message: str, fields: dict[str, Any], *, to_file: bool, to_terminal: bool) -> None:
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
        tail = " " + _encoded(fields).decode() if fields else ""
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


def _encoded(fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode(fields, enc_hook=str)


class Logs:
    """All loggers of one process."""

    def __init__(
        self,
        process: str,
        page: LevelPage,
        log_dir: Path | None,
        format_name: str,
        rotation: Rotation = Rotation(),  # noqa: B008 - a frozen value
        terminal: Terminal | None = None,
    ) -> None:
        terminal = terminal if terminal is not None else sys.stderr
        as_json = format_name == "json" or (format_name == "auto" and not terminal.isatty())
        self.page = page
        self._by_name = {
            name: Log(
                name,
                process,
                page,
                LogFile(log_dir / f"{name}.log", rotation) if log_dir else None,
                terminal,
                as_json=as_json,
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
    rotation: Rotation = Rotation(),  # noqa: B008 - a frozen value
    shared: Path | None = None,
    create: bool = False,
    terminal: Terminal | None = None,
) -> Logs:
    """The loggers of a process. Only the process that creates the shared page, or one without it, sets the levels."""
    if shared:
        page = LevelPage.shared(names, shared, levels, create=create)
    else:
        page = LevelPage.private(names)
        page.put_all(levels)
    logs = Logs(process, page, log_dir, format_name, rotation, terminal)
    logs.capture_library_logs()
    return logs


def quiet() -> Log:
    """A logger that writes nothing."""
    page = LevelPage.private(["main"])
    page.put("main", "OFF", "OFF")
    return Logs("", page, None, "plain")["main"]
