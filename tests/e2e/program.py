"""The processes of a running program as the kernel sees them, and runs of it that end by themselves."""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.forked import run_program
from tests.server import Server
from tests.waiting import LIMIT_S, until

from icefall.config.settings import BY_NAME


class Process(NamedTuple):
    """Its start time distinguishes it from a later process with the same ID."""

    pid: int
    parent: int
    started: str
    name: str

    @property
    def role(self) -> str:
        """`engine` or a listener's name; workers have their listener's."""
        return self.name.removeprefix("icefall-") if self.name.startswith("icefall-") else ""

    def runs(self) -> bool:
        now = _process(self.pid)
        return now is not None and now.started == self.started


def _process(pid: int) -> Process | None:
    try:
        start, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except OSError:
        return None
    stat = rest.split()
    return None if stat[0] == "Z" else Process(pid, int(stat[1]), stat[19], start.partition("(")[2])


def family(pid: int) -> list[Process]:
    """The process and all that descend from it."""
    seen = [p for entry in Path("/proc").iterdir() if entry.name.isdigit() and (p := _process(int(entry.name)))]
    found = [process for process in seen if process.pid == pid]
    for one in found:
        found += [process for process in seen if process.parent == one.pid]
    return found


def workers(server: Server, listener: str = "node") -> list[Process]:
    return [process for process in family(server.process.pid) if process.role == listener]


def kill_all(server: Server) -> None:
    """kill -9 to every process of the program at once; returns when they have ended, and with them their locks."""
    everybody = family(server.process.pid)
    for process in everybody:
        with suppress(ProcessLookupError):  # some follow their parent by themselves
            os.kill(process.pid, signal.SIGKILL)
    all_gone(everybody)


def all_gone(processes: list[Process]) -> None:
    until(lambda: not any(p.runs() for p in processes), f"the end of {processes}")


def _obey_modes() -> None:
    """Drops the capability of root to ignore file modes."""
    if os.getuid() == 0:
        drop_from_bounding_set, dac_override = 24, 1
        ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override)


class Outcome(NamedTuple):
    code: int
    said: str


def outcome(verb: str, data_dir: Path, *settings: str, bound_by_modes: bool = False) -> Outcome:
    """A run that is expected to end by itself."""
    ports = [f"--{port}=0" for port in ("http-port", "data-port", "metrics-port") if verb in BY_NAME[port].verbs]
    arguments = (verb, f"--data-dir={data_dir}", *ports, *settings)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ICEFALL_")}
    if bound_by_modes:  # capabilities are dropped when a program is loaded
        ended = subprocess.run(
            [sys.executable, "-m", "icefall.cli", *arguments],
            capture_output=True,
            text=True,
            env=kept,
            timeout=LIMIT_S,
            check=False,
            preexec_fn=_obey_modes,
        )
    else:
        ended = run_program(*arguments, environment=kept)
    return Outcome(ended.returncode, ended.stdout + ended.stderr)
