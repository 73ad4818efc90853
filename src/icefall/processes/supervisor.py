"""The processes of one program: starts them, and restarts each that ends until the program is stopped.

Only a refusal ends the program: an engine that exits before it is ready, or a listener that keeps exiting by itself.
Any other child is restarted at once, and after several restarts within a minute with growing pauses.

It has one thread, because its children are forked from it (`processes/forked.py`).
"""

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from icefall.compose.child import (
    DRAINING,
    ENGINE,
    ENGINE_READY,
    EXPORTS,
    INDEXER,
    LIMITS,
    REPLAY,
    TRY_AGAIN,
    WEBHOOKS,
    ChildArguments,
)
from icefall.config.settings import Config
from icefall.errors import StartRefused
from icefall.processes.forked import CAUGHT, Child
from icefall.processes.listening import Address

START_LIMIT_S = 120.0
LIMITS_WAIT_S = 3.0
_POLL_S = 0.02


class Supervisor:
    """Starts the children in order, restarts those that end, and ends at a signal or a refusal.

    `run` is what a child runs. Each of `sockets` stays open only in children that are given it. `on_engine` is called
    with each engine that was started, the first and those after it.
    """

    def __init__(
        self,
        verb: str,
        config: Config,
        run: Callable[[ChildArguments], int],
        sockets: Iterable[socket.socket],
        report: Callable[[str], None],
        on_engine: Callable[[Child], None] = lambda _: None,
    ) -> None:
        self._verb = verb
        self._config = config
        self._run = run
        self._sockets = list(sockets)
        self._report = report
        self._children: list[Child] = []
        self._budgets: dict[str, RestartBudget] = {}  # by role
        self._due: list[tuple[float, ChildArguments]] = []  # restarts to come
        self._on_engine = on_engine
        self.stop_requested = False
        self._signals, self._signalled = os.pipe()

    def catch_signals(self) -> None:
        for pipe in (self._signals, self._signalled):
            os.set_blocking(pipe, False)
        signal.set_wakeup_fd(self._signalled, warn_on_full_buffer=False)
        for number in CAUGHT:
            signal.signal(number, self._note_signal)

    def _note_signal(self, number: int, _frame: object) -> None:
        self.stop_requested = self.stop_requested or number != signal.SIGCHLD

    def start(self, role: str, listening: socket.socket | None = None) -> Child:
        try:
            return self._start(ChildArguments(role, self._verb, self._config, listening))
        except OSError as error:
            raise StartRefused(f"the {role} cannot be started: {error.strerror}") from error

    def _start(self, arguments: ChildArguments) -> Child:
        def close_in_child() -> None:
            for ours in (self._signals, self._signalled):
                os.close(ours)
            for other in self._children:
                other.close()
            for listening in self._sockets:
                if listening is not arguments.listening:
                    listening.close()

        child = Child(arguments, self._run, close_in_child)
        self._children.append(child)
        if arguments.is_engine:
            self._on_engine(child)
        return child

    def await_engine(self) -> None:
        """Wait until the engine is ready. StartRefused if it ended, without a text where it has explained that, or a
        signal came."""
        engine = next(child for child in self._children if child.arguments.is_engine)
        while engine.is_alive() and not engine.is_ready and not self.stop_requested:
            self._wait(_POLL_S)
            engine.read_reports()
        if not engine.is_ready:
            was_killed = engine.code is not None and engine.code < 0 and not self.stop_requested
            raise StartRefused(f"the engine ended before it was ready ({engine.how_it_ended()})" if was_killed else "")

    def await_limits(self, path: Path) -> None:
        """Wait until the owner of the budgets listens at its socket `path`, which may be a process of another program.
        Not for long: without an owner each worker grants its share."""
        deadline = time.monotonic() + LIMITS_WAIT_S
        while not _listens(path) and not self.stop_requested:
            if time.monotonic() > deadline:
                self._report("rate limits are not shared yet: nothing has opened their store so far")
                return
            self._wait(_POLL_S)

    def use_engine(self) -> None:
        """Workers, which have served health only, serve everything."""
        for child in self._children:
            if not child.arguments.is_engine:
                child.send(ENGINE_READY)

    def await_listeners(self, addresses: Iterable[Address]) -> None:
        """Wait until all listeners have answered a request, a child ended or a signal came."""
        waiting = list(addresses)
        deadline = time.monotonic() + START_LIMIT_S
        while waiting and not self.stop_requested and all(child.is_alive() for child in self._children):
            waiting = [address for address in waiting if not _answers(address)]
            if time.monotonic() > deadline:
                raise StartRefused(f"nothing answers at {waiting[0].url} after {START_LIMIT_S:.0f} s")
            if waiting:
                self._wait(_POLL_S)

    def watch(self) -> int:
        """Blocks until the program is to end; its exit code."""
        while not self.stop_requested:
            for child in [child for child in self._children if not child.is_alive()]:
                self._children.remove(child)
                if not self._plan_restart(child):
                    return 1
            self._start_due()
            self._wait(max(0.0, min(at for at, _ in self._due) - time.monotonic()) if self._due else None)
        return 0

    def _wait(self, limit_s: float | None) -> None:
        """Wait until a signal comes, which the end of a child sends too; not if one came since the last wait."""
        signalled = select.poll()
        signalled.register(self._signals, select.POLLIN)
        if signalled.poll(None if limit_s is None else limit_s * 1000):
            os.read(self._signals, 1024)
        self._reap_orphans()

    def _reap_orphans(self) -> None:
        """Reap orphans. As the first process of a container the supervisor is also the parent of processes whose own
        parent has ended: the decoders of an indexer that was killed. They would stay zombies."""
        ours = {child.pid: child for child in self._children if child.code is None}
        with suppress(ChildProcessError):  # it has no children
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                child = ours.pop(ended.si_pid, None)
                if child is not None:
                    child.is_alive()  # notes how it ended
                else:
                    os.waitpid(ended.si_pid, 0)

    def _start_due(self) -> None:
        now = time.monotonic()
        for one in [one for one in self._due if one[0] <= now]:
            self._due.remove(one)
            try:
                self._start(one[1])
            except OSError as error:  # too many processes, no memory
                self._report(f"the {one[1].role} cannot be started: {error.strerror}; trying again")
                self._due.append((now + SERVING_PAUSE_MAX_S, one[1]))

    def _plan_restart(self, child: Child) -> bool:
        """False where the program has to end instead."""
        role, now = child.arguments.role, time.monotonic()
        exited = child.code is not None and child.code >= 0 and child.code != TRY_AGAIN  # by itself and for good
        if child.arguments.is_engine and exited and not child.is_ready:
            self._report("the engine refused to start again: stopping")
            return False
        in_background = role in (INDEXER, REPLAY, WEBHOOKS, EXPORTS)
        budget = self._budgets.setdefault(role, RestartBudget(PAUSE_MAX_S if in_background else SERVING_PAUSE_MAX_S))
        pause_s = budget.pause_after_end(now)
        if budget.is_spent and exited and not in_background and not child.arguments.is_engine:
            self._report(f"the {role} keeps ending ({child.how_it_ended()}): stopping")
            return False
        when = f" in {pause_s:.0f} s" if pause_s >= 1 else ""
        self._report(f"the {role} ended ({child.how_it_ended()}): starting it again{when}")
        self._due.append((now + pause_s, msgspec.structs.replace(child.arguments, restarted=True)))
        return True

    def stop(self) -> None:
        """What workers call last, the engine or the owner of the budgets: requests being answered and the usage of the
        last second can still reach it."""
        wait_s, limit_s = self._config.http_shutdown_wait / 1e9, self._config.http_shutdown_timeout / 1e9
        called = [child for child in self._children if child.arguments.role in (ENGINE, LIMITS)]
        if wait_s and any(child.is_alive() for child in called):
            called[0].send(DRAINING)
            time.sleep(wait_s)
        deadline = time.monotonic() + limit_s
        self._stop([child for child in self._children if child not in called], deadline)
        self._stop(called, max(deadline, time.monotonic() + 1.0))

    def _stop(self, children: list[Child], deadline: float) -> None:
        """SIGTERM, and at `deadline` SIGKILL."""
        deadline = max(deadline, time.monotonic() + 0.1)
        for child in children:
            child.stop()
        while any(child.is_alive() for child in children) and (left_s := deadline - time.monotonic()) > 0:
            self._wait(left_s)
        for child in children:
            child.kill()


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


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


WINDOW_S = 60.0
QUICK_MAX = 5  # restarts within the window before pauses grow
QUICK_PAUSE_S = 0.2
PAUSE_MAX_S = 30.0
SERVING_PAUSE_MAX_S = 2.0  # of what clients wait for: listeners and the engine


class RestartBudget:
    """The restarts of one role. Those within the budget are quick; after it each pause is twice the one before.

    Once the process has run for a whole window, the budget is full again.
    """

    def __init__(self, pause_max_s: float = PAUSE_MAX_S) -> None:
        self._pause_max_s = pause_max_s
        self._ends: list[float] = []
        self._slow = 0

    @property
    def is_spent(self) -> bool:
        return self._slow > 0

    def pause_after_end(self, now: float) -> float:
        """The process ended at `now`; the seconds to wait."""
        if self._ends and now - self._ends[-1] >= WINDOW_S:
            self._slow = 0
        self._ends = [then for then in self._ends if now - then < WINDOW_S] + [now]
        if not self._slow and len(self._ends) <= QUICK_MAX:
            return QUICK_PAUSE_S
        self._slow += 1
        return float(min(2 ** (self._slow - 1), self._pause_max_s))
