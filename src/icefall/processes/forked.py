"""A child process as the supervisor sees it. It is forked, so what the supervisor has imported need not be imported
again: most of the time of a start, and most of the memory of a worker.

A fork copies one thread. The supervisor therefore has no other, and no open store.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress

from icefall.compose.child import READY, ChildArguments
from icefall.observe.program import name_process

_CLOSED = -1
CAUGHT = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)  # signals that the supervisor handles


class Child:
    """`run` is what it runs, whose result is its exit code. `close` closes what belongs to the supervisor alone."""

    def __init__(
        self, arguments: ChildArguments, run: Callable[[ChildArguments], int], close: Callable[[], None]
    ) -> None:
        self.arguments = arguments
        self.is_ready = False  # only the engine reports it
        self.code: int | None = None
        messages, self._messages = os.pipe()
        self._reports, reports = os.pipe()
        os.set_blocking(self._reports, False)

        def run_child() -> int:
            close()
            self.close()
            os.dup2(messages, 0)
            if arguments.is_engine:
                os.dup2(reports, 1)
            for unused in (messages, reports):
                os.close(unused)
            name_process(arguments.role)
            return run(arguments)

        try:
            self.pid = _fork(run_child)
        except OSError:
            self.close()
            raise
        finally:
            for theirs in (messages, reports):
                os.close(theirs)

    def close(self) -> None:
        """The supervisor's ends of the pipes. Their numbers may be those of other files then."""
        for ours in (self._messages, self._reports):
            if ours != _CLOSED:
                os.close(ours)
        self._messages = self._reports = _CLOSED

    def send(self, message: str) -> None:
        with suppress(OSError):  # it has ended
            os.write(self._messages, message.encode() + b"\n")

    def is_alive(self) -> bool:
        if self.code is None:
            self._note_end(os.WNOHANG)
        return self.code is None

    def read_reports(self) -> None:
        with suppress(OSError):  # nothing was reported, or it has ended
            self.is_ready = self.is_ready or os.read(self._reports, len(READY)) == READY

    def stop(self) -> None:
        if self.is_alive():
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self.is_alive():
            os.kill(self.pid, signal.SIGKILL)
            self._note_end(0)

    def _note_end(self, options: int) -> None:
        pid, status = os.waitpid(self.pid, options)
        if pid:
            self.read_reports()
            self.code = os.waitstatus_to_exitcode(status)
            self.close()

    def how_it_ended(self) -> str:
        code = self.code or 0
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _fork(run: Callable[[], int]) -> int:
    """The ID of a process that runs `run`. Signals wait until it has its own handlers instead of the supervisor's."""
    _flush()  # else it would be written twice
    before = signal.pthread_sigmask(signal.SIG_BLOCK, CAUGHT)
    try:
        pid = os.fork()
        if pid == 0:
            _run_and_exit(run, before)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_and_exit(run: Callable[[], int], signals: Iterable[int]) -> None:
    """Ends without the `finally` blocks and exit handlers that lie above it: those are the supervisor's."""
    code = 1
    try:
        os.setsid()  # a ^C in the terminal is the supervisor's to pass on, in the right order
        signal.set_wakeup_fd(-1)
        for number in CAUGHT:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        code = run()
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a closed pipe
            stream.flush()
