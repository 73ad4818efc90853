"""Samples of the CPU time of every process of a program, for one profile of all of them.

The engine writes a request into a directory and sends SIGURG to the processes; where nothing watches for it the system
ignores that signal. A process that finds the request is interrupted by SIGPROF after each 10 ms of CPU time that its
threads took together, and credits the stack of each with the time that it took. When the request is gone it writes what
it has into the same directory. A process that ends before has no part in the profile. While there is no request nothing
runs.
"""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType

import msgspec

from icefall.observe.counters import alive

PERIOD_S = 0.01
STACKS_MAX = 20_000  # distinct stacks of a process; further ones are counted together
STACK_DEPTH_MAX = 256
SAMPLING_MAX_S = 600.0  # a profiler left running stops sampling then
COLLECT_MAX_S = 3.0  # how long a process may take to write its samples
_DIRECTORY = "_ICEFALL_CPU_SAMPLES"  # in the environment of every process of the program
_REQUEST = "request"

Frame = tuple[str, str, int, int]  # function, file, line, the function's first line


class ProcessSamples(msgspec.Struct, array_like=True):
    """The samples of one process: `stacks` are indices into `frames`, innermost first, with how often each was seen and
    its nanoseconds. An empty stack stands for all after the first `STACKS_MAX`."""

    frames: list[Frame]
    stacks: list[tuple[list[int], int, int]]


class CpuSampler:
    """Credits stacks of this process with CPU time from `start` to `stop`, which the main thread calls."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._frames: dict[tuple[CodeType, int], int] = {}
        self._described: list[Frame] = []
        self._credited: dict[tuple[int, ...], list[int]] = {}
        self._ends_at = time.monotonic() + SAMPLING_MAX_S
        self._is_busy = False
        self._cpu_ns = {native_id: cpu_ns(native_id) for native_id in _native_ids().values()}

    def start(self) -> None:
        signal.signal(signal.SIGPROF, self._interrupted)
        signal.siginterrupt(signal.SIGPROF, False)  # libraries need not expect interrupted calls
        signal.setitimer(signal.ITIMER_PROF, PERIOD_S, PERIOD_S)

    def stop(self) -> ProcessSamples:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)  # one may be on its way
        stacks = [(list(stack), seen, spent_ns) for stack, (seen, spent_ns) in self._credited.items()]
        return ProcessSamples(self._described, stacks)

    def _interrupted(self, _number: int, frame: FrameType | None) -> None:
        """Nothing may be raised here: it would be raised in whatever the main thread is doing."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            self.take(frame)
        except Exception:
            signal.setitimer(signal.ITIMER_PROF, 0)
        finally:
            self._is_busy = False

    def take(self, main: FrameType | None) -> None:
        """Take one sample; `main` is what the main thread is doing."""
        if time.monotonic() > self._ends_at:
            signal.setitimer(signal.ITIMER_PROF, 0)
        seen: dict[int, int | None] = {}
        own = threading.get_ident()
        native_ids = _native_ids()
        for ident, frame in sys._current_frames().items():
            native_id = native_ids.get(ident, 0)
            taken_ns = seen[native_id] = cpu_ns(native_id)
            if taken_ns is None:  # no clocks of threads: the main thread stands for all
                spent_ns = int(PERIOD_S * 1e9) if ident == own else 0
            else:
                spent_ns = taken_ns - (self._cpu_ns.get(native_id) or 0)
            if spent_ns > 0:
                self._credit(self._stack(main if ident == own else frame), spent_ns)
        self._cpu_ns = seen

    def _credit(self, stack: tuple[int, ...], spent_ns: int) -> None:
        if stack not in self._credited and len(self._credited) >= STACKS_MAX:
            stack = ()
        credit = self._credited.setdefault(stack, [0, 0])
        credit[0] += 1
        credit[1] += spent_ns

    def _stack(self, frame: FrameType | None) -> tuple[int, ...]:
        stack: list[int] = []
        while frame is not None and len(stack) < STACK_DEPTH_MAX:
            key = frame.f_code, frame.f_lineno or 0
            number = self._frames.get(key)
            if number is None:
                number = self._frames[key] = len(self._described)
                self._described.append(described(frame))
            stack.append(number)
            frame = frame.f_back
        return tuple(stack)


def described(frame: FrameType) -> Frame:
    """A frame as a profile names it."""
    code = frame.f_code
    function = f"{frame.f_globals.get('__name__', '?')}.{code.co_qualname}"
    return function, code.co_filename, frame.f_lineno or 0, code.co_firstlineno


def _native_ids() -> dict[int, int]:
    return {thread.ident or 0: thread.native_id or 0 for thread in threading.enumerate()}


def cpu_ns(native_id: int) -> int | None:
    """CPU time a thread has taken so far, None if it is not available.

    The clock's number is what pthread_getcpuclockid makes on Linux. That function reads the thread's memory and may
    crash if the thread has just ended; the kernel only refuses the number.
    """
    if sys.platform != "linux" or not native_id:
        return None
    try:
        return time.clock_gettime_ns((~native_id << 3) | 6)
    except OSError:
        return None


# The side of every process


def samples_directory(run_dir: Path, program: int) -> Path:
    """Return the directory of the requests and samples of one program."""
    return run_dir / "cpu-samples" / str(program)


def watch_requests(directory: Path | None = None) -> None:
    """Has this process, and those forked from it, take part in profiles. Called in the main thread. Without `directory`
    it is the one of the program that has started this process; where that has none nothing is done."""
    if directory is not None:
        os.environ[_DIRECTORY] = str(directory)
    elif not os.environ.get(_DIRECTORY):
        return
    _Watcher(Path(os.environ[_DIRECTORY])).start()


class _Watcher:
    """Starts and stops the sampler of this process as the request says."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sampler: CpuSampler | None = None

    def start(self) -> None:
        signal.signal(signal.SIGURG, lambda *_: self._follow_request())
        os.register_at_fork(after_in_child=self._forked)
        self._follow_request()

    def _forked(self) -> None:
        """Begins anew in a child: the samples are its parent's, which has the timer too."""
        self._sampler = None
        self._follow_request()

    def _follow_request(self) -> None:
        """Nothing may be raised here, as above."""
        with suppress(Exception):
            token = _read_token(self._directory)
            if self._sampler is not None and self._sampler.token != token:
                sampler, self._sampler = self._sampler, None
                _put_samples(self._directory / f"{sampler.token}.{os.getpid()}", sampler.stop())
            if token and self._sampler is None:
                (self._directory / f"{token}.{os.getpid()}.running").touch()
                self._sampler = CpuSampler(token)
                self._sampler.start()
                if _read_token(self._directory) != token:  # withdrawn, and the signal came while we were starting
                    self._follow_request()


def _read_token(directory: Path) -> str:
    try:
        return (directory / _REQUEST).read_text()
    except OSError:
        return ""


def _put_samples(path: Path, samples: ProcessSamples) -> None:
    """Store the samples of a process; they are lost where they cannot be stored, as on a full disk."""
    running = path.with_name(f"{path.name}.running")
    try:
        unfinished = path.with_name(f"{path.name}.part")
        unfinished.write_bytes(msgspec.msgpack.encode(samples))
        unfinished.replace(path.with_name(f"{path.name}.samples"))
    finally:
        running.unlink(missing_ok=True)


# The engine's side


class SampledProgram:
    """Requests samples of all processes of the program, and collects them. `processes` names them by their IDs."""

    def __init__(self, directory: Path, processes: Callable[[], Mapping[int, str]]) -> None:
        self._directory = directory
        self._processes = processes
        self._names: dict[int, str] = {}  # also of those that have ended since
        self._token = ""
        if directory.exists():  # of an engine that ended while a profile ran
            shutil.rmtree(directory, ignore_errors=True)
            self._signal()

    def begin(self) -> None:
        """Raises an OSError if the request cannot be written."""
        self._token = str(time.time_ns())
        self._names.clear()
        self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        beside = self._directory / f"{_REQUEST}.new"
        beside.write_text(self._token)
        beside.replace(self._directory / _REQUEST)
        self._signal()

    def end(self) -> dict[str, ProcessSamples]:
        """Return the samples by the name and ID of the process. One that does not write them in time has none."""
        (self._directory / _REQUEST).unlink(missing_ok=True)
        self._signal()
        deadline = time.monotonic() + COLLECT_MAX_S
        while self._still_running() and time.monotonic() < deadline:
            time.sleep(PERIOD_S)
        found = {}
        for path in sorted(self._directory.glob(f"{self._token}.*.samples")):
            with suppress(OSError, msgspec.MsgspecError, ValueError):
                samples = msgspec.msgpack.decode(path.read_bytes(), type=ProcessSamples)
                pid = int(path.name.split(".")[1])
                found[f"{self._names.get(pid, 'process')} {pid}"] = samples
        shutil.rmtree(self._directory, ignore_errors=True)
        return found

    def _still_running(self) -> bool:
        names = [path.name.split(".") for path in self._directory.glob(f"{self._token}.*.running")]
        return any(alive(int(pid)) for _, pid, _ in names)

    def _signal(self) -> None:
        processes = self._processes()
        self._names.update(processes)
        for pid in processes:
            with suppress(OSError):  # it has ended meanwhile
                os.kill(pid, signal.SIGURG)
