"""Processes of a peer: started, measured, called and ended with all their children."""

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from bench.load import descendants

LIMIT_S = float(os.environ.get("ICEFALL_BENCH_PEER_LIMIT", "240"))
_POLL_S = 0.05


class Missing(Exception):
    """A peer that is not on this machine and cannot be installed."""


class PeerFailed(Exception):
    """A peer that ended with an error, took too long or stored something else."""


class Spent(NamedTuple):
    """Of the peer's own processes, from their start to the last row; `rss_mb` is the highest sum of all."""

    seconds: float
    cpu_s: float
    rss_mb: float

    def plus(self, later: "Spent") -> "Spent":
        return Spent(self.seconds + later.seconds, self.cpu_s + later.cpu_s, max(self.rss_mb, later.rss_mb))


@contextmanager
def started(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The process in a group of its own, which is killed at the end if any of it is left."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ICEFALL_")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=cwd, start_new_session=True,
            env={**kept, **(environment or {})},
        )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def to_the_end(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Spent:
    before, began, most = os.times(), time.monotonic(), 0.0
    with started(command, log, environment, cwd) as process:
        while process.poll() is None:
            if time.monotonic() - began > LIMIT_S:
                raise PeerFailed(f"not finished after {LIMIT_S:.0f} s")
            most = max(most, rss_mb(process.pid))
            time.sleep(_POLL_S)
        seconds = time.monotonic() - began
    if process.returncode:
        raise PeerFailed(f"ended with {process.returncode}: {last_words(log)}")
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Spent(seconds, cpu_s, most)


def rss_mb(pid: int) -> float:
    """Resident memory of the process and its children; 0 once it has ended."""
    total = 0
    with suppress(OSError, IndexError):
        for one in descendants(pid):
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total / 2**20


def last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " ".join(lines[-3:])[-300:]


def fetch(url: str, body: bytes | None = None) -> bytes:
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bytes(answer.read())
