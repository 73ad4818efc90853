"""Profiles: where all processes spend CPU time, what fills the engine's heap, which locks it waits for.

Each profile is a pprof file in the profile directory, replaced as a whole. Refusals carry the texts of the Go node.
"""

import asyncio
import gc
import os
import random
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from icefall.node.admin.pprof import Measure, Profile, Sample, StackFrame, encode
from icefall.observe.cpu_samples import PERIOD_S, STACKS_MAX, ProcessSamples, SampledProgram, described

OBJECTS_LOOKED_AT_MAX = 250_000  # enough for a census, and a heap of any size takes well under 2 s
TRACES_LOOKED_AT_MAX = 50_000
TRACES_MEMORY_MAX = 32 << 20  # of tracemalloc's own tables; a snapshot costs several times that

CPU = Measure("cpu", "nanoseconds")
SPACE = Measure("inuse_space", "bytes")
CONTENTIONS = Measure("contentions", "count")
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW  # a link could name any file of ours
OTHER_STACKS = (StackFrame(f"(stacks after the first {STACKS_MAX})"),)

Thing = TypeVar("Thing")


class ProfileError(Exception):
    """A profile was refused or could not be written; the text is the node's."""


class Profiles:
    """The profiles of this process and, of CPU time, of all that `sampled` reaches. They are written into `directory`,
    which is made when first needed."""

    def __init__(self, directory: Path, locks: "LockStats", sampled: SampledProgram) -> None:
        self._directory = directory
        self._locks = locks
        self._sampled = sampled
        self._began: tuple[int, int] | None = None  # the time and the clock at which the CPU profile was begun
        self._turn = threading.Lock()  # calls may come from several threads

    def start_cpu(self) -> None:
        """Begin to sample every thread of every process. An empty cpu.profile marks the run."""
        with self._turn:
            if self._began is not None:
                raise ProfileError("cpu profiler already running")
            with self._opened_directory() as folder:
                try:
                    os.close(os.open("cpu.profile", _NEW_FILE, 0o640, dir_fd=folder))
                except OSError as failure:
                    raise _refusal("open", self._directory / "cpu.profile", failure) from failure
            try:
                self._sampled.begin()
            except OSError as failure:
                raise _refusal("open", Path(failure.filename or self._directory), failure) from failure
            self._began = time.time_ns(), time.perf_counter_ns()

    def stop_cpu(self) -> None:
        """End the sampling and write cpu.profile. The profiler is gone even when the file cannot be written."""
        with self._turn:
            if self._began is None:
                raise ProfileError("cpu profiler doesn't exist")
            (started_ns, began_ns), self._began = self._began, None
            duration_ns = time.perf_counter_ns() - began_ns
            self._write("cpu.profile", _cpu(self._sampled.end(), started_ns, duration_ns))

    def memory(self) -> None:
        """Write mem.profile: live objects by type or, while tracemalloc is tracing, memory by allocation site."""
        with self._turn:
            self._write("mem.profile", _heap())

    def lock(self) -> None:
        """Write lock.profile: who waited for which metered lock, and how long, since the locks were made."""
        with self._turn:
            self._write("lock.profile", self._locks.profile())

    @contextmanager
    def _opened_directory(self) -> Iterator[int]:
        """Make the directory, and open it so that files are put into it and not into what a link in its place names."""
        self._make_directory()
        try:
            folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as failure:
            if self._directory.is_symlink():
                raise ProfileError(f"open {self._directory}: is a symbolic link") from failure
            raise _refusal("open", self._directory, failure) from failure
        try:
            yield folder
        finally:
            os.close(folder)

    def _make_directory(self) -> None:
        try:
            self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as failure:
            for path in (*reversed(self._directory.parents), self._directory):
                if path.exists() and not path.is_dir():
                    raise ProfileError(f"mkdir {path}: not a directory") from failure
            raise _refusal("mkdir", self._directory, failure) from failure

    def _write(self, name: str, profile: Profile) -> None:
        fresh = f".{name}.new"
        with self._opened_directory() as folder:
            try:
                with os.fdopen(os.open(fresh, _NEW_FILE, 0o640, dir_fd=folder), "wb") as file:
                    file.write(encode(profile))
                os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as failure:
                with suppress(OSError):
                    os.unlink(fresh, dir_fd=folder)
                raise _refusal("open", self._directory / name, failure) from failure


def _refusal(verb: str, path: Path, failure: OSError) -> ProfileError:
    """Go writes the system's own text, in lower case."""
    return ProfileError(f"{verb} {path}: {(failure.strerror or str(failure)).lower()}")


# CPU


def _cpu(processes: Mapping[str, ProcessSamples], started_ns: int, duration_ns: int) -> Profile:
    """The samples of all processes; the outermost frame of each stack is its process."""
    samples = []
    for process, found in processes.items():
        frames = [StackFrame(*frame) for frame in found.frames]
        root = StackFrame(process)
        for stack, count, spent_ns in found.stacks:
            named = tuple([frames[number] for number in stack]) or OTHER_STACKS
            samples.append(Sample((*named, root), (count, spent_ns)))
    return Profile(
        measures=(Measure("samples", "count"), CPU),
        samples=samples,
        time_ns=started_ns,
        duration_ns=duration_ns,
        period_measure=CPU,
        period=int(PERIOD_S * 1e9),
        comments=(f"processes: {', '.join(processes)}",),
    )


# Memory


def _heap() -> Profile:
    started_ns = time.time_ns()
    tracing = tracemalloc.is_tracing()
    if tracing and tracemalloc.get_tracemalloc_memory() <= TRACES_MEMORY_MAX:
        samples, comment = _by_site()
    else:
        samples, comment = _by_type()
        if tracing:
            comment += "; by type, because tracemalloc holds too many traces to copy"
    return Profile(
        measures=(Measure("inuse_objects", "count"), SPACE),
        samples=samples,
        time_ns=started_ns,
        duration_ns=0,
        period_measure=SPACE,
        period=1,
        comments=(comment,),
    )


def _by_type() -> tuple[list[Sample], str]:
    """A census of what the collector tracks. Texts, bytes and numbers are not tracked and do not show."""
    objects = gc.get_objects()
    stride = -(-len(objects) // OBJECTS_LOOKED_AT_MAX) or 1
    found: dict[int, list[Any]] = {}  # by id of the type: a type need not be hashable
    for one in _every(stride, objects):
        kind = type(one)
        tally = found.get(id(kind))
        if tally is None:
            tally = found[id(kind)] = [kind, 0, 0]
        try:
            size = sys.getsizeof(one)
        except Exception:  # __sizeof__ may be third-party code
            size = 0
        tally[1] += 1
        tally[2] += size
    samples = []
    for kind, count, size in found.values():
        module = str(getattr(kind, "__module__", "?"))
        stack = StackFrame(f"{module}.{kind.__qualname__}"), StackFrame(module)
        samples.append(Sample(stack, (count * stride, size * stride)))
    return samples, f"{len(objects)} objects tracked by the collector, 1 in {stride} looked at"


def _by_site() -> tuple[list[Sample], str]:
    traces = tracemalloc.take_snapshot().traces
    stride = -(-len(traces) // TRACES_LOOKED_AT_MAX) or 1
    found: dict[tracemalloc.Traceback, list[int]] = {}
    for trace in _every(stride, traces):
        tally = found.setdefault(trace.traceback, [0, 0])
        tally[0] += 1
        tally[1] += trace.size
    samples = []
    for site, (count, size) in found.items():
        lines = tuple(
            StackFrame(f"{line.filename}:{line.lineno}", line.filename, line.lineno) for line in reversed(site)
        )
        samples.append(Sample(lines, (count * stride, size * stride)))
    return samples, f"{len(traces)} allocations traced, 1 in {stride} looked at"


def _every(stride: int, things: Sequence[Thing]) -> Iterable[Thing]:
    """One of each `stride` things, at random: heaps repeat themselves, and a fixed step would fall into their beat."""
    if stride == 1:
        return things
    pick = random.Random(0).random  # noqa: S311
    return (things[start + int(pick() * stride)] for start in range(0, len(things) - stride + 1, stride))


# Locks


class LockStats:
    """How often, and how long, each call site waited for each lock. One object serves all locks of a process."""

    def __init__(self) -> None:
        self._waits: dict[tuple[str, StackFrame], list[int]] = {}
        self._guard = threading.Lock()
        self._started_ns = time.time_ns()
        self._began_ns = time.perf_counter_ns()

    def record(self, lock_name: str, site: StackFrame, delay_ns: int) -> None:
        """Count one wait that has ended."""
        with self._guard:
            waits = self._waits.setdefault((lock_name, site), [0, 0])
            waits[0] += 1
            waits[1] += delay_ns

    def profile(self) -> Profile:
        """All waits since the start, the lock as the innermost frame."""
        with self._guard:
            samples = [
                Sample((StackFrame(f"lock {name}"), site), (count, delay_ns))
                for (name, site), (count, delay_ns) in self._waits.items()
            ]
        return Profile(
            measures=(CONTENTIONS, Measure("delay", "nanoseconds")),
            samples=samples,
            time_ns=self._started_ns,
            duration_ns=time.perf_counter_ns() - self._began_ns,
            period_measure=CONTENTIONS,
            period=1,
        )


class MeteredLock(asyncio.Lock):
    """An asyncio lock that reports who had to wait for it. A wait that is cancelled counts too."""

    def __init__(self, name: str, stats: LockStats) -> None:
        super().__init__()
        self._name = name
        self._stats = stats
        self._waiting = 0

    async def acquire(self) -> Literal[True]:
        """Take the lock, waiting in turn."""
        if not self._waiting and not self.locked():
            return await super().acquire()
        site, began_ns = _call_site(), time.perf_counter_ns()
        self._waiting += 1
        try:
            return await super().acquire()
        finally:
            self._waiting -= 1
            self._stats.record(self._name, site, time.perf_counter_ns() - began_ns)


def _call_site() -> StackFrame:
    """The line outside this file and asyncio's own that acquires the lock."""
    frame = sys._getframe()
    while frame.f_code.co_filename in _LOCK_FILES and frame.f_back is not None:
        frame = frame.f_back
    return StackFrame(*described(frame))


_LOCK_FILES = {_call_site.__code__.co_filename, asyncio.Lock.acquire.__code__.co_filename}
