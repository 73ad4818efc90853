"""The processes of one program: starts them, and restarts each that ends until the program is stopped.

Only a refusal ends the program: an engine that exits before it is ready, or a listener that keeps exiting by itself.
Any other child is restarted at once, and after several restarts within a minute with growing pauses.

`run/child.py` is the other side: arguments and messages go to the standard input of a child.
"""

import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable

import msgspec

from icefall.config.settings import Config
from icefall.errors import StartRefused
from icefall.run.child import DRAINING, ENGINE, ENGINE_READY, INDEXER, READY, REPLAY, TRY_AGAIN, ChildArguments
from icefall.run.listening import Address
from icefall.run.restarts import PAUSE_MAX_S, SERVING_PAUSE_MAX_S, RestartBudget

START_LIMIT_S = 120.0
_POLL_S = 0.05


class Child:
    """One child process, watched by a thread of its own."""

    def __init__(self, arguments: ChildArguments, ended: Callable[["Child"], None]) -> None:
        self.arguments = arguments
        self.stopping = False
        self.is_ready = False  # only the engine reports it
        self._process = subprocess.Popen(
            [sys.executable, "-m", "icefall.run.up", arguments.role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if arguments.role == ENGINE else None,
            start_new_session=True,  # a ^C in the terminal is ours to pass on, in the right order
            pass_fds=[arguments.listening] if arguments.listening else [],
        )
        self._write(msgspec.json.encode(arguments) + b"\n")
        threading.Thread(target=self._watch, args=(ended,), daemon=True).start()

    def _watch(self, ended: Callable[["Child"], None]) -> None:
        if self._process.stdout is not None:
            self.is_ready = self._process.stdout.readline() == READY
        self._process.wait()
        ended(self)

    def _write(self, line: bytes) -> None:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            pass  # it has ended, which the watcher reports

    def send(self, message: str) -> None:
        self._write(message.encode() + b"\n")

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, unless: Callable[[], bool]) -> bool:
        """Whether it became ready: not if it ended first, or `unless` came true."""
        while self.is_alive() and not self.is_ready and not unless():
            time.sleep(_POLL_S)
        return self.is_ready

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def how_it_ended(self) -> str:
        code = self._process.returncode
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    @property
    def exited(self) -> bool:
        """By itself and for good: not killed by a signal, and not because of what may pass."""
        code = self._process.returncode
        return code is not None and code >= 0 and code != TRY_AGAIN

    def stop(self, deadline: float) -> None:
        """SIGTERM, and at `deadline` SIGKILL."""
        self.stopping = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class Supervisor:
    """Starts the children in order, restarts those that end, and ends at a signal or a refusal.

    `on_engine` is called with each engine that was started, the first and those after it.
    """

    def __init__(
        self,
        verb: str,
        config: Config,
        report: Callable[[str], None],
        on_engine: Callable[[Child], None] = lambda _: None,
    ) -> None:
        self._verb = verb
        self._config = config
        self._report = report
        self._events: queue.SimpleQueue[Child | int] = queue.SimpleQueue()  # a signal handler may put into it
        self._engine: Child | None = None
        self._others: list[Child] = []
        self._budgets: dict[str, RestartBudget] = {}  # by role
        self._due: list[tuple[float, ChildArguments]] = []  # restarts to come
        self._on_engine = on_engine
        self.stop_requested = False

    def start(self, role: str, listening: socket.socket | None = None) -> Child:
        descriptor = listening.fileno() if listening else 0
        return self._start(ChildArguments(role, self._verb, self._config, descriptor))

    def await_engine(self) -> None:
        """Until it is ready. StartRefused without a text if it ended, which it has explained, or a signal came."""
        assert self._engine is not None
        if not self._engine.wait_ready(unless=lambda: self.stop_requested):
            raise StartRefused("")
        for child in self._others:
            child.send(ENGINE_READY)

    def _start(self, arguments: ChildArguments) -> Child:
        child = Child(arguments, self._events.put)
        if arguments.role == ENGINE:
            self._engine = child
            self._on_engine(child)
        else:
            self._others.append(child)
        return child

    def await_listeners(self, addresses: Iterable[Address]) -> None:
        """Until all have answered a request, a child ended or a signal came."""
        waiting = list(addresses)
        deadline = time.monotonic() + START_LIMIT_S
        while waiting and self._events.empty():
            waiting = [address for address in waiting if not _answers(address)]
            if time.monotonic() > deadline:
                raise StartRefused(f"nothing answers at {waiting[0].url} after {START_LIMIT_S:.0f} s")
            time.sleep(0.02)

    def catch_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop_signal)

    def _stop_signal(self, number: int, _frame: object) -> None:
        self.stop_requested = True
        self._events.put(number)

    def watch(self) -> int:
        """Blocks until the program is to end; its exit code."""
        while True:
            event = self._next_event()
            if isinstance(event, int):
                return 0
            if event is not None and not event.stopping and not self._plan_restart(event):
                return 1
            now = time.monotonic()
            for one in [one for one in self._due if one[0] <= now]:
                self._due.remove(one)
                self._start(one[1])

    def _next_event(self) -> Child | int | None:
        """None when a restart is due first."""
        wait_s = max(0.0, min(at for at, _ in self._due) - time.monotonic()) if self._due else None
        try:
            return self._events.get(timeout=wait_s)
        except queue.Empty:
            return None

    def _plan_restart(self, child: Child) -> bool:
        """False where the program has to end instead."""
        role, now = child.arguments.role, time.monotonic()
        if role == ENGINE and child.exited and not child.is_ready:
            self._report("the engine refused to start again: stopping")
            return False
        pause_max_s = PAUSE_MAX_S if role in (INDEXER, REPLAY) else SERVING_PAUSE_MAX_S
        budget = self._budgets.setdefault(role, RestartBudget(pause_max_s))
        pause_s = budget.pause_after_end(now)
        if budget.is_spent and child.exited and role not in (ENGINE, INDEXER, REPLAY):
            self._report(f"the {role} keeps ending ({child.how_it_ended()}): stopping")
            return False
        when = f" in {pause_s:.0f} s" if pause_s >= 1 else ""
        self._report(f"the {role} ended ({child.how_it_ended()}): starting it again{when}")
        if role != ENGINE:
            self._others.remove(child)
        self._due.append((now + pause_s, msgspec.structs.replace(child.arguments, restarted=True)))
        return True

    def stop(self) -> None:
        """The engine last, so that requests being answered can still reach it."""
        wait_s, limit_s = self._config.http_shutdown_wait / 1e9, self._config.http_shutdown_timeout / 1e9
        if wait_s and self._engine and self._engine.is_alive():
            self._engine.send(DRAINING)
            time.sleep(wait_s)
        deadline = time.monotonic() + limit_s
        threads = [threading.Thread(target=child.stop, args=(deadline,)) for child in self._others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._engine:
            self._engine.stop(max(deadline, time.monotonic() + 1.0))


def _answers(address: Address) -> bool:
    """Whether it answers a request, and not because it is still starting."""
    host = address.url.removeprefix("http://").rpartition(":")[0].strip("[]")
    try:
        with socket.create_connection((host, address.port), timeout=1) as connection:
            connection.sendall(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            status = connection.recv(1024)[:12]
    except OSError:
        return False
    return len(status) == 12 and status[-3:] != b"503"
