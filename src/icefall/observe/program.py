"""The processes of one program: its supervisor and all that descend from it, with their roles."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from icefall.observe.counters import ProcessStats, process_stats

_READ_EVERY_S = 1.0
_NAME = "icefall"
PROGRAM = "_ICEFALL_PROGRAM"  # the supervisor's process ID, in the environment of every process below it


class ProgramProcess(NamedTuple):
    """`role`: `supervisor`, `engine`, `indexer`, `decoder`, or the name of the listener it works for."""

    pid: int
    parent: int
    role: str


def name_process(role: str = "") -> None:
    """Names this process for `ps`, `top` and ourselves: `icefall`, or `icefall-engine` for a child with that role."""
    with suppress(OSError):  # no /proc
        Path("/proc/self/comm").write_text(f"{_NAME}-{role}" if role else _NAME)  # the kernel keeps 15 characters


def program_pid() -> int:
    return int(os.environ.get(PROGRAM) or os.getpid())


def program_processes(program: int) -> list[ProgramProcess]:
    """List the processes of a program in the order of their IDs; none where there is no /proc."""
    seen: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            start, _, fields = (entry / "stat").read_text(errors="replace").rpartition(")")
            seen[int(entry.name)] = int(fields.split()[1]), start.partition("(")[2]
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
    found: dict[int, ProgramProcess] = {}
    if program in seen:
        found[program] = ProgramProcess(program, seen[program][0], "supervisor")
    added = True
    while added:
        added = False
        for pid, (parent, name) in seen.items():
            if pid not in found and parent in found:
                found[pid] = ProgramProcess(pid, parent, _role(name, found[parent].role))
                added = True
    return [found[pid] for pid in sorted(found)]


def _role(name: str, parent_role: str) -> str:
    if name.startswith(f"{_NAME}-"):
        return name.removeprefix(f"{_NAME}-")
    return "decoder" if parent_role == "indexer" else f"{parent_role}-helper"


Processes = list[tuple[ProgramProcess, ProcessStats]]


class ProcessReader:
    """What the kernel reports of the program's processes. It reads the files of every process of the machine, which may
    be thousands: in a thread, once for all who ask at the same time, and at most once a second."""

    def __init__(self, program: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._program = program
        self._clock = clock
        self._read_at = 0.0
        self._reading: asyncio.Future[Processes] | None = None

    async def read(self) -> Processes:
        reading = self._reading
        if reading is None or (reading.done() and self._clock() - self._read_at >= _READ_EVERY_S):
            self._read_at = self._clock()
            reading = self._reading = asyncio.ensure_future(asyncio.to_thread(_read, self._program))
        return await asyncio.shield(reading)  # others may wait for it too


def _read(program: int) -> Processes:
    return [(one, stats) for one in program_processes(program) if (stats := process_stats(one.pid))]
