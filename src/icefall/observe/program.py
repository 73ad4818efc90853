"""The processes of one program: its supervisor and all that descend from it, with their roles."""

import os
from pathlib import Path
from typing import NamedTuple

PROGRAM = "_ICEFALL_PROGRAM"  # the supervisor's process ID, in the environment of every process below it


class ProgramProcess(NamedTuple):
    """`role`: `supervisor`, `engine`, `indexer`, `decoder`, or the name of the listener it works for."""

    pid: int
    parent: int
    role: str


def program_pid() -> int:
    return int(os.environ.get(PROGRAM) or os.getpid())


def program_processes(program: int) -> list[ProgramProcess]:
    """In the order of their IDs; none where there is no /proc."""
    seen: dict[int, tuple[int, list[bytes]]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            seen[int(entry.name)] = parent, (entry / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
    found: dict[int, ProgramProcess] = {}
    if program in seen:
        found[program] = ProgramProcess(program, seen[program][0], "supervisor")
    added = True
    while added:
        added = False
        for pid, (parent, command) in seen.items():
            if pid not in found and parent in found:
                found[pid] = ProgramProcess(pid, parent, _role(command, found[parent].role))
                added = True
    return [found[pid] for pid in sorted(found)]


def _role(command: list[bytes], parent_role: str) -> str:
    if b"icefall.run.up" in command:
        return command[command.index(b"icefall.run.up") + 1].decode(errors="replace")
    if parent_role == "indexer":
        return "decoder"
    return f"{parent_role}-helper"
