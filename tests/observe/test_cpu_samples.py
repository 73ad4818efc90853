"""The CPU samples of one process and of several: bounds, who takes part, and what is lost with a process."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

import pytest
from tests.waiting import until

from icefall.observe import cpu_samples
from icefall.observe.cpu_samples import CpuSampler, ProcessSamples, SampledProgram, cpu_ns, samples_directory

WORK = """
import sys, time
from icefall.observe.cpu_samples import watch_requests
watch_requests()
print("watches", flush=True)
def toil():
    sum(range(1000))
while True:
    toil()
"""


def frame_of_depth(depth: int) -> FrameType:
    return frame_of_depth(depth - 1) if depth else sys._getframe()


def test_deep_recursion_is_cut() -> None:
    sampler = CpuSampler("one")
    sampler._cpu_ns = {}
    sampler.take(frame_of_depth(400))
    assert max(len(stack) for stack, _, _ in sampler.stop().stacks) == cpu_samples.STACK_DEPTH_MAX


def test_a_sampler_left_running_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_samples, "STACKS_MAX", 3)
    sampler = CpuSampler("one")
    for number in range(50):
        sampler._credit((number,), 1)
    stacks = sampler.stop().stacks
    assert len(stacks) == 4
    assert stacks[-1] == ([], 47, 47)


def test_a_sampler_left_running_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_samples, "SAMPLING_MAX_S", -1.0)
    sampler = CpuSampler("one")
    sampler.start()
    assert signal.getitimer(signal.ITIMER_PROF)[1] > 0
    sampler.take(sys._getframe())
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    sampler.stop()


def test_without_thread_clocks_the_main_thread_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot_tell(native_id: int) -> None:
        return None

    monkeypatch.setattr(cpu_samples, "cpu_ns", cannot_tell)
    idle = threading.Event()
    sleeper = threading.Thread(target=idle.wait)
    sleeper.start()
    sampler = CpuSampler("one")
    sampler.take(sys._getframe())
    idle.set()
    sleeper.join()
    assert [credit for _, *credit in sampler.stop().stacks] == [[1, 10_000_000]]


def test_a_failing_sample_is_not_raised_in_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(native_id: int) -> int:
        raise RuntimeError

    sampler = CpuSampler("one")
    sampler.start()
    monkeypatch.setattr(cpu_samples, "cpu_ns", fails)
    sampler._interrupted(signal.SIGPROF, None)
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    sampler.stop()


def test_threads_clock_is_the_systems_own() -> None:
    if sys.platform != "linux":
        pytest.skip("thread clocks by number are Linux's")
    ours = (~threading.get_native_id() << 3) | 6
    assert ours == time.pthread_getcpuclockid(threading.get_ident())
    before_ns = time.thread_time_ns()
    seen_ns = cpu_ns(threading.get_native_id())
    assert seen_ns is not None
    assert before_ns <= seen_ns <= time.thread_time_ns()


def test_a_thread_that_ended_has_no_clock() -> None:
    ended = threading.Thread(target=int)
    ended.start()
    ended.join()
    # the system may take a moment longer than Python to let it go
    until(lambda: cpu_ns(ended.native_id or 0) is None, "an ended thread has no clock")


# Several processes


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return samples_directory(tmp_path, os.getpid())


@pytest.fixture
def workers(directory: Path) -> Iterator[list["subprocess.Popen[bytes]"]]:
    environment = os.environ | {cpu_samples._DIRECTORY: str(directory)}
    started = [
        subprocess.Popen([sys.executable, "-c", WORK], env=environment, stdout=subprocess.PIPE) for _ in range(2)
    ]
    for worker in started:
        assert worker.stdout
        assert worker.stdout.readline() == b"watches\n"
    yield started
    for worker in started:
        worker.kill()
        worker.communicate()


def is_sampling(directory: Path, pid: int) -> bool:
    return bool(list(directory.glob(f"*.{pid}.running")))


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def let_work(pids: Iterable[int]) -> None:
    ends = {pid: cpu_ticks(pid) + 20 for pid in pids}
    until(lambda: all(cpu_ticks(pid) > end for pid, end in ends.items()), "0.2 s of CPU time of each")


def toiled_ns(samples: ProcessSamples) -> int:
    toil = {number for number, frame in enumerate(samples.frames) if frame[0] == "__main__.toil"}
    return sum(spent_ns for stack, _, spent_ns in samples.stacks if not toil.isdisjoint(stack))


def test_processes_are_sampled_while_there_is_a_request(
    directory: Path, workers: list["subprocess.Popen[bytes]"]
) -> None:
    pids = {worker.pid: f"worker-{at}" for at, worker in enumerate(workers)}
    sampled = SampledProgram(directory, lambda: pids)
    for _ in range(2):
        sampled.begin()
        until(lambda: all(is_sampling(directory, pid) for pid in pids), "all processes sample")
        let_work(pids)
        found = sampled.end()
        assert set(found) == {f"{name} {pid}" for pid, name in pids.items()}
        assert all(toiled_ns(samples) > 0.05e9 for samples in found.values())
        assert not directory.exists()


def test_a_killed_process_loses_its_samples_only(directory: Path, workers: list["subprocess.Popen[bytes]"]) -> None:
    pids = {worker.pid: "worker" for worker in workers}
    sampled = SampledProgram(directory, lambda: pids)
    sampled.begin()
    until(lambda: all(is_sampling(directory, pid) for pid in pids), "all processes sample")
    workers[0].kill()
    workers[0].wait()
    assert set(sampled.end()) == {f"worker {workers[1].pid}"}


def test_samples_that_cannot_be_read_are_left_out(directory: Path) -> None:
    sampled = SampledProgram(directory, dict)
    sampled.begin()
    token = (directory / "request").read_text()
    for name, content in (("1", b"\xc1"), ("2", b""), ("x", b"\x92\x90\x90"), ("3", b"\x92\x90\x90")):
        (directory / f"{token}.{name}.samples").write_bytes(content)
    assert sampled.end() == {"process 3": ProcessSamples([], [])}


def test_an_engine_ends_what_another_has_left_running(
    directory: Path, workers: list["subprocess.Popen[bytes]"]
) -> None:
    pids = {worker.pid: "worker" for worker in workers}
    SampledProgram(directory, lambda: pids).begin()
    until(lambda: all(is_sampling(directory, pid) for pid in pids), "all processes sample")
    again = SampledProgram(directory, lambda: pids)
    assert not directory.exists()
    again.begin()
    until(lambda: all(is_sampling(directory, pid) for pid in pids), "all processes sample anew")
    assert len(again.end()) == 2
