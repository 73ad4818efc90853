"""The engine's profiles: what they find, what they refuse, and what they leave behind when a file cannot be written."""

import errno
import gc
import gzip
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.counterparts import program

from icefall.node.admin import profiles
from icefall.node.admin.pprof import Profile, StackFrame, encode
from icefall.node.admin.profiles import OBJECTS_LOOKED_AT_MAX, LockStats, ProfileError, Profiles
from icefall.observe.cpu_samples import SampledProgram, _Watcher

SPIN = f"{__name__}.spin_for"
WAIT = "threading.Condition.wait"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "data" / "profiles"


@pytest.fixture
def locks() -> LockStats:
    return LockStats()


@pytest.fixture
def made(directory: Path, locks: LockStats, tmp_path: Path) -> Iterator[Profiles]:
    samples = tmp_path / "samples"
    before = signal.getsignal(signal.SIGURG)
    _Watcher(samples).start()
    made = Profiles(directory, locks, SampledProgram(samples, lambda: {os.getpid(): "test"}))
    yield made
    made._sampled.end()
    signal.signal(signal.SIGURG, before)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Profile]:
    """Every profile that is encoded, as a value."""
    seen: list[Profile] = []

    def spy(profile: Profile) -> bytes:
        seen.append(profile)
        return encode(profile)

    monkeypatch.setattr(profiles, "encode", spy)
    return seen


def leaf_names(profile: Profile) -> dict[str, tuple[int, ...]]:
    return {sample.stack[0].function: sample.values for sample in profile.samples}


def names_in(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes())


def spin_for(cpu_s: float) -> int:
    """Take CPU time, however long that lasts on a busy machine."""
    turns, end = 0, time.thread_time() + cpu_s
    while time.thread_time() < end:
        turns += 1
    return turns


# CPU


def test_cpu_profile_credits_the_stack_that_worked(made: Profiles, directory: Path, written: list[Profile]) -> None:
    asleep, idle = threading.Event(), threading.Event()

    def doze() -> None:
        asleep.set()
        idle.wait()

    sleeper = threading.Thread(target=doze)
    sleeper.start()
    asleep.wait()
    before_ns = time.thread_time_ns()
    made.start_cpu()
    assert (directory / "cpu.profile").read_bytes() == b""
    spin_for(0.3)
    made.stop_cpu()
    taken_ns = time.thread_time_ns() - before_ns
    idle.set()
    sleeper.join()

    (profile,) = written
    assert [tuple(measure) for measure in profile.measures] == [("samples", "count"), ("cpu", "nanoseconds")]
    assert profile.period == 10_000_000
    assert abs(profile.time_ns - time.time_ns()) < 60e9
    assert {sample.stack[-1].function for sample in profile.samples} == {f"test {os.getpid()}"}
    working = [sample for sample in profile.samples if any(frame.function == SPIN for frame in sample.stack)]
    assert sum(sample.values[0] for sample in working) >= 3
    assert profile.duration_ns >= sum(sample.values[1] for sample in working)
    assert working[0].stack[0].file == __file__
    if sys.platform == "linux":
        dozing = [sample for sample in profile.samples if any("doze" in frame.function for frame in sample.stack)]
        assert 150_000_000 <= sum(sample.values[1] for sample in working) <= taken_ns
        assert sum(sample.values[1] for sample in dozing) < 0.02e9
    assert b"test_profiles.spin" in names_in(directory / "cpu.profile")


def test_waiting_costs_nothing(made: Profiles, written: list[Profile]) -> None:
    """A process that mostly waits: a sampler by the clock would find it waiting."""
    made.start_cpu()
    for _ in range(20):
        spin_for(0.005)
        threading.Event().wait(0.02)
    made.stop_cpu()
    waiting = [sample for sample in written[0].samples if sample.stack[0].function == WAIT]
    assert sum(sample.values[1] for sample in waiting) <= 0.03e9


def test_a_thread_is_credited_with_its_own_time(made: Profiles, written: list[Profile]) -> None:
    worker = threading.Thread(target=spin_for, args=(0.3,))
    made.start_cpu()
    worker.start()
    while worker.is_alive():
        worker.join(0.01)
    made.stop_cpu()
    in_thread = [sample for sample in written[0].samples if any("Thread.run" in one.function for one in sample.stack)]
    assert sum(sample.values[1] for sample in in_thread) >= 0.1e9


def test_go_opens_a_cpu_profile(made: Profiles, directory: Path) -> None:
    program("go")
    made.start_cpu()
    spin_for(0.2)
    made.stop_cpu()
    command = ["go", "tool", "pprof", "-top", str(directory / "cpu.profile")]
    top = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "test_profiles.spin" in top


def test_cpu_profiler_runs_once(made: Profiles) -> None:
    with pytest.raises(ProfileError, match=r"^cpu profiler doesn't exist$"):
        made.stop_cpu()
    made.start_cpu()
    with pytest.raises(ProfileError, match=r"^cpu profiler already running$"):
        made.start_cpu()
    made.stop_cpu()
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    with pytest.raises(ProfileError, match=r"^cpu profiler doesn't exist$"):
        made.stop_cpu()
    made.start_cpu()
    made.stop_cpu()


# Memory


class Kept:
    def __init__(self) -> None:
        self.self = self


class Unmeasurable:
    def __sizeof__(self) -> int:
        raise RuntimeError("no")


class UnhashableKind(type):
    __hash__ = None  # type: ignore[assignment]


class OfUnhashableKind(metaclass=UnhashableKind):
    pass


def test_memory_profile_counts_by_type(
    made: Profiles, directory: Path, written: list[Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "OBJECTS_LOOKED_AT_MAX", 10**9)  # this process may hold more than a census looks at
    kept = [Kept() for _ in range(1234)]
    odd = [Unmeasurable(), OfUnhashableKind()]
    made.memory()
    (profile,) = written
    assert [tuple(measure) for measure in profile.measures] == [("inuse_objects", "count"), ("inuse_space", "bytes")]
    module = Kept.__module__
    count, size = leaf_names(profile)[f"{module}.Kept"]
    assert (count, size) == (len(kept), sum(map(sys.getsizeof, kept)))
    assert leaf_names(profile)[f"{module}.Unmeasurable"] == (1, 0)
    assert leaf_names(profile)[f"{module}.OfUnhashableKind"][0] == len(odd) - 1
    sample = next(sample for sample in profile.samples if sample.stack[0].function == f"{module}.Kept")
    assert sample.stack[1:] == (StackFrame(module),)
    assert b"builtins.dict" in names_in(directory / "mem.profile")


def test_a_big_heap_is_sampled_and_scaled(
    made: Profiles, written: list[Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = [(Kept(), [one]) for one in range(20_000)]  # a beat that a fixed step could fall into
    monkeypatch.setattr(profiles, "OBJECTS_LOOKED_AT_MAX", len(gc.get_objects()) // 4)
    made.memory()
    count, size = leaf_names(written[0])[f"{Kept.__module__}.Kept"]
    assert count == pytest.approx(len(kept), rel=0.15)
    assert size == pytest.approx(len(kept) * sys.getsizeof(kept[0][0]), rel=0.15)
    assert "looked at" in written[0].comments[0]
    assert "1 in 1 " not in written[0].comments[0]


def test_memory_profile_looks_at_a_limited_number_of_objects(made: Profiles, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at, every = 0, profiles._every

    def counting(stride: int, objects: Sequence[object]) -> Iterator[object]:
        nonlocal looked_at
        for one in every(stride, objects):
            looked_at += 1
            yield one

    monkeypatch.setattr(profiles, "_every", counting)
    gc.disable()
    try:
        kept = [[one] for one in range(3 * OBJECTS_LOOKED_AT_MAX)]
        made.memory()
        assert OBJECTS_LOOKED_AT_MAX // 2 < looked_at <= OBJECTS_LOOKED_AT_MAX
        assert len(kept) == 3 * OBJECTS_LOOKED_AT_MAX
    finally:
        gc.enable()


def with_tracemalloc(work: Callable[[], None]) -> None:
    already = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        work()
    finally:
        if not already:
            tracemalloc.stop()


def test_memory_profile_by_allocation_site(made: Profiles, written: list[Profile]) -> None:
    kept: list[bytes] = []

    def work() -> None:
        kept.extend(bytes(1000) for _ in range(500))
        made.memory()

    with_tracemalloc(work)
    here = [sample for sample in written[0].samples if sample.stack[0].file == __file__]
    assert max(sample.values[1] for sample in here) >= 500_000
    assert here[0].stack[0].function == f"{__file__}:{here[0].stack[0].line}"


def test_too_many_traces_fall_back_to_types(
    made: Profiles, written: list[Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "TRACES_MEMORY_MAX", 0)
    with_tracemalloc(made.memory)
    assert "builtins.dict" in leaf_names(written[0])
    assert written[0].comments[0].endswith("by type, because tracemalloc holds too many traces to copy")


# Locks


def test_lock_profile(made: Profiles, directory: Path, locks: LockStats, written: list[Profile]) -> None:
    made.lock()
    locks.record("store", StackFrame("follow.run", "follow.py", 7, 1), 1_000)
    locks.record("store", StackFrame("follow.run", "follow.py", 7, 1), 500)
    locks.record("files", StackFrame("follow.run", "follow.py", 7, 1), 3)
    made.lock()
    empty, full = written
    assert list(empty.samples) == []
    assert [tuple(measure) for measure in full.measures] == [("contentions", "count"), ("delay", "nanoseconds")]
    assert leaf_names(full) == {"lock store": (2, 1_500), "lock files": (1, 3)}
    assert b"lock store" in names_in(directory / "lock.profile")


# Files

WRITERS = [("mem.profile", Profiles.memory), ("lock.profile", Profiles.lock), ("cpu.profile", Profiles.start_cpu)]


@pytest.fixture(autouse=True)
def small_heap(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "write" in request.node.name:
        monkeypatch.setattr(gc, "get_objects", list)


def refuse_to_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an unwritable directory does to a user who is not root."""

    real = os.open

    def refuse(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_write_into_a_file_as_directory(
    made: Profiles, directory: Path, name: str, write: Callable[[Profiles], None]
) -> None:
    directory.parent.mkdir()
    directory.write_text("")
    with pytest.raises(ProfileError) as refusal:
        write(made)
    assert str(refusal.value) == f"mkdir {directory}: not a directory"
    assert directory.is_file()


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_write_below_a_file(made: Profiles, directory: Path, name: str, write: Callable[[Profiles], None]) -> None:
    directory.parent.write_text("")
    with pytest.raises(ProfileError) as refusal:
        write(made)
    assert str(refusal.value) == f"mkdir {directory.parent}: not a directory"


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_write_over_a_directory(made: Profiles, directory: Path, name: str, write: Callable[[Profiles], None]) -> None:
    (directory / name).mkdir(parents=True)
    with pytest.raises(ProfileError) as refusal:
        write(made)
    assert str(refusal.value) == f"open {directory / name}: is a directory"
    assert [path.name for path in directory.iterdir()] == [name]


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_write_without_permission(
    made: Profiles,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    write: Callable[[Profiles], None],
) -> None:
    refuse_to_open(monkeypatch)
    with pytest.raises(ProfileError) as refusal:
        write(made)
    assert str(refusal.value) == f"open {directory / name}: permission denied"


def test_write_into_a_directory_that_cannot_be_made(
    made: Profiles, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(ProfileError) as refusal:
        made.lock()
    assert str(refusal.value) == f"mkdir {directory}: permission denied"


def test_write_is_whole_or_not_at_all(made: Profiles, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.lock()
    before = (directory / "lock.profile").read_bytes()

    def full_disk(profile: Profile) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(profiles, "encode", full_disk)
    with pytest.raises(ProfileError, match=r"lock\.profile: no space left on device$"):
        made.lock()
    assert (directory / "lock.profile").read_bytes() == before
    assert [path.name for path in directory.iterdir()] == ["lock.profile"]


def test_write_again_replaces(made: Profiles, directory: Path, locks: LockStats) -> None:
    made.lock()
    locks.record("late", StackFrame("f"), 1)
    made.lock()
    assert b"lock late" in names_in(directory / "lock.profile")
    assert (directory / "lock.profile").stat().st_mode & 0o777 == 0o640 & ~umask()


def umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_a_link_is_not_followed(made: Profiles, directory: Path) -> None:
    directory.mkdir(parents=True)
    victim = directory.parent / "victim"
    victim.write_text("keep me")
    for name in ("cpu.profile", ".mem.profile.new", ".lock.profile.new"):
        (directory / name).symlink_to(victim)
    for write in (made.start_cpu, made.memory, made.lock):
        with pytest.raises(ProfileError, match="too many levels of symbolic links"):
            write()
    assert victim.read_text() == "keep me"


def test_a_directory_that_is_a_link_is_refused(made: Profiles, directory: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    directory.parent.mkdir()
    directory.symlink_to(elsewhere)
    for write in (made.start_cpu, made.memory, made.lock):
        with pytest.raises(ProfileError) as refusal:
            write()
        assert str(refusal.value) == f"open {directory}: is a symbolic link"
    assert list(elsewhere.iterdir()) == []
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_a_start_that_fails_leaves_no_profiler(made: Profiles, directory: Path) -> None:
    (directory / "cpu.profile").mkdir(parents=True)
    with pytest.raises(ProfileError, match=r"is a directory$"):
        made.start_cpu()
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    with pytest.raises(ProfileError, match=r"^cpu profiler doesn't exist$"):
        made.stop_cpu()
    (directory / "cpu.profile").rmdir()
    made.start_cpu()
    made.stop_cpu()


def test_a_stop_that_fails_still_ends_the_profiler(made: Profiles, directory: Path) -> None:
    made.start_cpu()
    (directory / "cpu.profile").unlink()
    (directory / "cpu.profile").mkdir()
    with pytest.raises(ProfileError) as refusal:
        made.stop_cpu()
    assert str(refusal.value) == f"open {directory / 'cpu.profile'}: is a directory"
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    (directory / "cpu.profile").rmdir()
    with pytest.raises(ProfileError, match=r"^cpu profiler doesn't exist$"):
        made.stop_cpu()
    made.start_cpu()
    assert (directory / "cpu.profile").read_bytes() == b""
    made.stop_cpu()
    assert (directory / "cpu.profile").stat().st_size > 0


def test_a_directory_removed_meanwhile_is_made_again(made: Profiles, directory: Path) -> None:
    made.start_cpu()
    shutil.rmtree(directory)
    made.stop_cpu()
    assert (directory / "cpu.profile").stat().st_size > 0
