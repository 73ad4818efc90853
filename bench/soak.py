"""`icefall up` for long, under reads, issueTx and indexing; each minute one process ends by kill -9, all in turn.

It samples memory and file descriptors. `ICEFALL_BENCH_SECONDS` is how long (120 by default; 1800 by hand). Load, kills
and the checks that nothing is lost are those of `bench/chaos.py`. It fails if the last third of the run needs clearly
more than the first.
"""

import os
import statistics
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.e2e.program import Process

from bench.chaos import Plan, Program, disturb, role
from bench.chaos_clients import Call, Client, Counts

SECONDS = float(os.environ.get("ICEFALL_BENCH_SECONDS", "120"))
KILL_EVERY_S, BLOCKS_PER_S = 60.0, 1.0
SAMPLE_EVERY_S = 5.0
MEMORY_LIMIT, OPEN_LIMIT = 1.2, 1.1  # the last third divided by the first, of all processes together
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Use(NamedTuple):
    memory_mb: float
    open_files: int


class Watch:
    """Samples what processes use by role, how long the -wal files are, and how long health failed."""

    def __init__(self) -> None:
        self.by_role: dict[str, list[Use]] = defaultdict(list)
        self.totals: list[Use] = []  # while all processes run
        self.wal_mb = self.unhealthy_s = 0.0
        self._roles: set[str] = set()
        self._next = self._healthy_at = time.monotonic()

    def __call__(self, program: Program) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + SAMPLE_EVERY_S
        if Client(program.urls, Counts()).ask(Call("node", "/ext/health")).status == 200:
            self._healthy_at = now
        self.unhealthy_s = max(self.unhealthy_s, now - self._healthy_at)
        wals = list(program.server.data_dir.rglob("*-wal"))
        self.wal_mb = max(self.wal_mb, sum(one.stat().st_size for one in wals) / 1e6)
        self._sample(program)

    def _sample(self, program: Program) -> None:
        processes = program.processes()
        used: dict[str, Use] = {}
        for process in processes:
            with suppress(OSError, StopIteration):  # it ended meanwhile
                used[role(process, program, processes)] = _use(process)
        for name, use in used.items():
            self.by_role[name].append(use)
        self._roles |= used.keys()
        if used.keys() == self._roles:
            total = Use(sum(one.memory_mb for one in used.values()), sum(one.open_files for one in used.values()))
            self.totals.append(total)


def _use(process: Process) -> Use:
    folder = Path(f"/proc/{process.pid}")
    pages = int((folder / "statm").read_text().split()[1])
    return Use(pages * _PAGE_BYTES / 1e6, len(list((folder / "fd").iterdir())))


def run() -> None:
    watch = Watch()
    disturb(Plan("soak", SECONDS, KILL_EVERY_S, BLOCKS_PER_S, 1, 2, watch))
    print(f"  medians of each third of the time, and the maximum; {len(watch.totals)} samples of all processes")
    print(f"  {'':<22} {'memory, MB':>28}   {'open files':>24}")
    for name, samples in sorted(watch.by_role.items()):
        print(_line(name, samples))
    print(_line("all", watch.totals))
    print(f"  -wal files together at most {watch.wal_mb:.1f} MB; health failed for at most {watch.unhealthy_s:.0f} s")
    first, *_, last = _thirds(watch.totals)
    if last.memory_mb > first.memory_mb * MEMORY_LIMIT or last.open_files > first.open_files * OPEN_LIMIT:
        raise SystemExit(f"it grows: {first} in the first third, {last} in the last")


def _thirds(samples: list[Use]) -> list[Use]:
    size = -(-len(samples) // 3)
    parts = [samples[number : number + size] for number in range(0, len(samples), size)]
    return [
        Use(statistics.median(one.memory_mb for one in part), int(statistics.median(one.open_files for one in part)))
        for part in parts
    ]


def _line(name: str, samples: list[Use]) -> str:
    thirds = _thirds(samples)
    memory = [*(one.memory_mb for one in thirds), max(one.memory_mb for one in samples)]
    open_files = [*(one.open_files for one in thirds), max(one.open_files for one in samples)]
    return f"  {name:<22} {' '.join(f'{one:>6.0f}' for one in memory)}   {' '.join(f'{one:>5}' for one in open_files)}"
