"""The processes of one program: an engine that must live, listeners that are restarted, a supervisor that watches.

A child reads its orders as one line of JSON from its standard input; the end of that input means that the supervisor is
gone and the child stops too. The engine says `ready` on its standard output.
"""

import os
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

from icefall.config.load import Config
from icefall.errors import StartRefused

READY = b"ready\n"
START_LIMIT_S = 120.0
_RESTARTS_MAX, _RESTARTS_WINDOW_S = 5, 60.0
_RESTART_PAUSE_S = 0.2
_LOOK_S = 0.05


class ChildArguments(msgspec.Struct, frozen=True):
    """What a child is told: its role (`engine`, or the name of a listener), the configuration, and for a role that
    has no setting for it the port it listens on."""

    role: str
    verb: str
    config: Config
    port: int = 0


class Address(NamedTuple):
    host: str
    port: int

    @property
    def url(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{self.port}"


class PortClaim(NamedTuple):
    """An address that is ours. The guard is bound but never listens: it only keeps others from being given the port."""

    address: Address
    guard: socket.socket


def claim(what: str, address: Address) -> PortClaim:
    """Refuse an address somebody listens on. Port 0 becomes a free one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    guard = socket.socket(family, socket.SOCK_STREAM)
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address.host, address.port))
            probe.listen(1)  # without SO_REUSEPORT, so that sharing a port with somebody fails here and now
            port = probe.getsockname()[1]
        guard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        guard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # the listeners bind beside it
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

    def __init__(self, orders: ChildArguments, ended: Callable[["Child"], None]) -> None:
        self.orders = orders
        self.stopping = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "icefall.run.up", orders.role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if orders.role == "engine" else None,
            start_new_session=True,  # a ^C in the terminal is ours to pass on, in the right order
        )
        self._told(msgspec.json.encode(orders) + b"\n")
        threading.Thread(target=self._watch, args=(ended,), daemon=True).start()

    def _watch(self, ended: Callable[["Child"], None]) -> None:
        self._process.wait()
        ended(self)

    def _told(self, line: bytes) -> None:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            pass  # it is gone; the watcher will say so

    def tell(self, line: str) -> None:
        self._told(line.encode() + b"\n")

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, unless: Callable[[], bool]) -> bool:
        """Whether it has said so: not if it ended first, or `unless` came true."""
        assert self._process.stdout is not None
        while not select.select([self._process.stdout], [], [], _LOOK_S)[0]:
            if unless():
                return False
        return self._process.stdout.readline() == READY

    def lives(self) -> bool:
        return self._process.poll() is None

    def how_it_ended(self) -> str:
        code = self._process.returncode
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def stop(self, deadline: float) -> None:
        """Ask, wait until `deadline`, then insist."""
        self.stopping = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class Supervisor:
    """Starts the children in order, keeps the listeners alive, and ends when told to or when the engine dies."""

    def __init__(self, verb: str, config: Config, say: Callable[[str], None]) -> None:
        self._verb = verb
        self._config = config
        self._say = say
        self._events: queue.SimpleQueue[Child | int] = queue.SimpleQueue()  # a signal handler may put into it
        self._engine: Child | None = None
        self._others: list[Child] = []
        self._restarts: list[float] = []
        self.told_to_stop = False

    def start(self, role: str, port: int = 0) -> Child:
        child = Child(ChildArguments(role, self._verb, self._config, port), self._events.put)
        if role == "engine":
            self._engine = child
            if not child.wait_ready(unless=lambda: self.told_to_stop):
                raise StartRefused("")  # the engine has said why, or somebody wants us to stop
        else:
            self._others.append(child)
        return child

    def await_listeners(self, addresses: Iterable[Address]) -> None:
        """Until all accept connections, or something ended, or somebody wants us to stop."""
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
        self.told_to_stop = True
        self._events.put(number)

    def watch(self) -> int:
        """Blocks until the end; the program's exit code."""
        while True:
            event = self._events.get()
            if isinstance(event, int):
                return 0
            if event.stopping:
                continue
            if event is self._engine:
                self._say(f"the engine ended unexpectedly ({event.how_it_ended()}): stopping")
                return 1
            if not self._restart(event):
                return 1

    def _restart(self, child: Child) -> bool:
        now = time.monotonic()
        self._restarts = [then for then in self._restarts if now - then < _RESTARTS_WINDOW_S] + [now]
        role = child.orders.role
        if len(self._restarts) > _RESTARTS_MAX:
            self._say(f"the {role} keeps ending ({child.how_it_ended()}): stopping")
            return False
        self._say(f"the {role} ended ({child.how_it_ended()}): starting it again")
        time.sleep(_RESTART_PAUSE_S)
        self._others.remove(child)
        self.start(role, child.orders.port)
        return True

    def stop(self) -> None:
        """The engine last, so that what listeners are answering can still reach it."""
        wait_s, limit_s = self._config.http_shutdown_wait / 1e9, self._config.http_shutdown_timeout / 1e9
        if wait_s and self._engine and self._engine.lives():
            self._engine.tell("draining")
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


def orders() -> ChildArguments:
    """A child's first line of standard input. Read unbuffered: a thread goes on with the rest."""
    return msgspec.json.decode(_line(), type=ChildArguments)


def _line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            break
        line += piece
    return line


def when_orphaned(heard: Callable[[str], None]) -> None:
    """Hear what the supervisor says from a thread; an empty line when it is gone."""

    def listen() -> None:
        while line := _line():
            heard(line.decode().strip())
        heard("")

    threading.Thread(target=listen, daemon=True).start()


def die_with_parent(parent_pid: int) -> None:
    """For processes whose standard input is not ours: end when the parent has, also if it already has."""

    def look() -> None:
        while os.getppid() == parent_pid:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
