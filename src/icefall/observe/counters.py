"""Counters of calls of all processes, without a lock: one small memory-mapped file per process, written by it alone.

Totals are the sum of the files. Of a process that has ended the counts stay, its calls in flight do not. On a full disk
a process counts in its own memory, and its counts are missing from the totals.
"""

import mmap
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

FIELDS = ("calls", "failures", "duration_ns", "cached", "in_flight")
_COUNT, _IN_FLIGHT = len(FIELDS), len(FIELDS) - 1
_SUFFIX = ".counters"


class CallCounts(NamedTuple):
    """`cached`: calls answered with an answer that was cached."""

    calls: int
    failures: int
    duration_ns: int
    cached: int
    in_flight: int


class CallCounters:
    """This process's counters; `slot` is a row of the endpoint table."""

    def __init__(self, labels: Sequence[str], directory: Path | None) -> None:
        self.labels = list(labels)
        size = 8 * len(FIELDS) * len(self.labels)
        memory: mmap.mmap | None = None
        if directory is not None:
            memory = map_allocated(directory / f"{os.getpid()}{_SUFFIX}", size, truncate=True)
        self._words = memoryview(memory or bytearray(size))[:size].cast("Q")

    def begin(self, slot: int) -> int:
        self._words[_COUNT * slot + _IN_FLIGHT] += 1
        return time.perf_counter_ns()

    def end(self, slot: int, began_ns: int, *, failed: bool, cached: bool = False) -> None:
        words, at = self._words, _COUNT * slot
        words[at] += 1
        if failed:
            words[at + 1] += 1
        words[at + 2] += time.perf_counter_ns() - began_ns
        if cached:
            words[at + 3] += 1
        words[at + _IN_FLIGHT] -= 1

    def count_unrouted(self) -> None:
        """A request that no endpoint answers; the last label counts those."""
        words, at = self._words, _COUNT * (len(self.labels) - 1)
        words[at] += 1
        words[at + 1] += 1


def counters_directory(run_dir: Path, program: int, listener: str) -> Path:
    """Return the directory in which the workers of one listener of one program count."""
    directory = run_dir / "counters" / str(program) / listener
    with suppress(OSError):  # a full disk: then each counts in its own memory
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def clear(run_dir: Path) -> None:
    """Removes the counts of programs that have ended."""
    for directory in (run_dir / "counters").glob("[0-9]*"):
        if not alive(int(directory.name)):
            shutil.rmtree(directory, ignore_errors=True)


def processes(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob(f"*{_SUFFIX}") if path.stem.isdigit())


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def totals(directory: Path, count: int) -> list[CallCounts]:
    sums = [[0] * _COUNT for _ in range(count)]
    for pid in processes(directory):
        is_alive = alive(pid)
        for slot, counts in enumerate(_read(directory / f"{pid}{_SUFFIX}", count)):
            total = sums[slot]
            for field in range(_IN_FLIGHT):
                total[field] += counts[field]
            if is_alive:
                total[_IN_FLIGHT] += counts.in_flight
    return [CallCounts(*total) for total in sums]


def _read(path: Path, count: int) -> Iterator[CallCounts]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    words = memoryview(data)[: 8 * _COUNT * count].cast("Q")
    for slot in range(len(words) // _COUNT):
        yield CallCounts(*words[_COUNT * slot : _COUNT * (slot + 1)])


class ProcessStats(NamedTuple):
    cpu_seconds: float
    resident_bytes: int
    open_files: int
    started_unix: float


def process_stats(pid: int) -> ProcessStats | None:
    """What the kernel reports of a process; None if it has ended or there is no /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except (OSError, StopIteration):
        return None
    tick = os.sysconf("SC_CLK_TCK")
    return ProcessStats(
        cpu_seconds=(int(stat[11]) + int(stat[12])) / tick,
        resident_bytes=int(stat[21]) * os.sysconf("SC_PAGE_SIZE"),
        open_files=files,
        started_unix=int(boot.split()[1]) + int(stat[19]) / tick,
    )


def map_allocated(path: Path, size: int, *, truncate: bool = False) -> mmap.mmap | None:
    """A shared mapping of at least `size` bytes, created if needed; None where there is no space for it."""
    size = max(size, mmap.PAGESIZE)
    fd = -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if truncate else 0), 0o600)
        os.posix_fallocate(fd, 0, size)
        return mmap.mmap(fd, size)
    except OSError:
        return None
    finally:
        if fd >= 0:
            os.close(fd)


def map_existing(path: Path) -> mmap.mmap | None:
    """The first page of such a file, to be read; None if it was not made, or not with all of its space."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return mmap.mmap(fd, mmap.PAGESIZE, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)


_WINDOW_S = 30.0


class Rate:
    """Growth per second of a count that never falls, over the last half minute."""

    def __init__(self, now: float, count: int) -> None:
        self._samples = deque([(now, count)])

    def note(self, now: float, count: int) -> None:
        self._samples.append((now, count))
        while len(self._samples) > 2 and self._samples[1][0] < now - _WINDOW_S:
            self._samples.popleft()

    def per_second(self, now: float, count: int) -> float:
        since, before = self._samples[0]
        return (count - before) / (now - since) if now > since else 0.0
