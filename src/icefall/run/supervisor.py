"""The processes of one program: an engine whose end ends the program, and listeners that are restarted.

`run/child.py` is the other side: arguments and messages go to the standard input of a child.
"""

import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from icefall.config.settings import Config
from icefall.errors import StartRefused
from icefall.run.child import DRAINING, ENGINE, READY, ChildArguments

START_LIMIT_S = 120.0
_RESTARTS_MAX, _RESTARTS_WINDOW_S = 5, 60.0
_RESTART_PAUSE_S = 0.2
_POLL_S = 0.05


class Address(NamedTuple):
    host: str
    port: int

    @property
    def url(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self.port}"


class PortClaim(NamedTuple):
    """An address that is ours. The guard is bound but never listens: it keeps the port from being given to others."""

    address: Address
    guard: socket.socket


def claim(what: str, address: Address) -> PortClaim:
    """StartRefused if the address is in use. Port 0 becomes a free one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    guard = socket.socket(family, socket.SOCK_STREAM)
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address.host, address.port))
            probe.listen(1)  # without SO_REUSEPORT, so that a port in use fails here
            port = probe.getsockname()[1]
        guard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        guard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # the listeners bind to it too
        guard.bind((address.host, port))
    except (OSError, OverflowError) as error:
        guard.close()
        raise StartRefused(
            f"cannot listen on {address.host}:{address.port} for the {what} interface: "
            f"{getattr(error, 'strerror', None) or error}; use another --{what.replace('node', 'http')}-port"
        ) from None
    return PortClaim(Address(address.host, port), guard)


class Child:
    """One child process, watched by a thread of its own."""

    def __init__(self, arguments: ChildArguments, ended: Callable[["Child"], None]) -> None:
        self.arguments = arguments
        self.stopping = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "icefall.run.up", arguments.role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if arguments.role == ENGINE else None,
            start_new_session=True,  # a ^C in the terminal is ours to pass on, in the right order
        )
        self._write(msgspec.json.encode(arguments) + b"\n")
        threading.Thread(target=self._watch, args=(ended,), daemon=True).start()

    def _watch(self, ended: Callable[["Child"], None]) -> None:
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
        assert self._process.stdout is not None
        while not select.select([self._process.stdout], [], [], _POLL_S)[0]:
            if unless():
                return False
        return self._process.stdout.readline() == READY

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def how_it_ended(self) -> str:
        code = self._process.returncode
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

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
    """Starts the children in order, restarts listeners, and ends at a signal or when the engine has ended."""

    def __init__(self, verb: str, config: Config, report: Callable[[str], None]) -> None:
        self._verb = verb
        self._config = config
        self._report = report
        self._events: queue.SimpleQueue[Child | int] = queue.SimpleQueue()  # a signal handler may put into it
        self._engine: Child | None = None
        self._others: list[Child] = []
        self._restarts: list[float] = []
        self.stop_requested = False

    def start(self, role: str, port: int = 0) -> Child:
        child = Child(ChildArguments(role, self._verb, self._config, port), self._events.put)
        if role == ENGINE:
            self._engine = child
            if not child.wait_ready(unless=lambda: self.stop_requested):
                raise StartRefused("")  # the engine has printed why, or a signal came
        else:
            self._others.append(child)
        return child

    def await_listeners(self, addresses: Iterable[Address]) -> None:
        """Until all accept connections, a child ended or a signal came."""
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
            event = self._events.get()
            if isinstance(event, int):
                return 0
            if event.stopping:
                continue
            if event is self._engine:
                self._report(f"the engine ended unexpectedly ({event.how_it_ended()}): stopping")
                return 1
            if not self._restart(event):
                return 1

    def _restart(self, child: Child) -> bool:
        now = time.monotonic()
        self._restarts = [then for then in self._restarts if now - then < _RESTARTS_WINDOW_S] + [now]
        role = child.arguments.role
        if len(self._restarts) > _RESTARTS_MAX:
            self._report(f"the {role} keeps ending ({child.how_it_ended()}): stopping")
            return False
        self._report(f"the {role} ended ({child.how_it_ended()}): starting it again")
        time.sleep(_RESTART_PAUSE_S)
        self._others.remove(child)
        self.start(role, child.arguments.port)
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
    host = address.url.removeprefix("http://").rpartition(":")[0].strip("[]")
    try:
        socket.create_connection((host, address.port), timeout=1).close()
    except OSError:
        return False
    return True
