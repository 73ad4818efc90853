"""An upstream that is slow to answer delays the start, but not liveness and health; what it reports still counts."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.ports import hold_port, port_of
from tests.server import Server, serving
from tests.upstream.replay import Replay
from tests.upstream.threaded import in_thread
from tests.waiting import LIMIT_S, until


class Gate:
    """Accepts connections to an upstream and passes nothing on until it is opened."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.asked = threading.Event()
        self.opened = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection = self._listening.accept()[0]
                self.asked.set()
                self._threads.append(threading.Thread(target=self._pass_on, args=(connection,), daemon=True))
                self._threads[-1].start()

    def _pass_on(self, connection: socket.socket) -> None:
        self.opened.wait(LIMIT_S)
        with suppress(OSError), connection, socket.create_connection(self._target) as upstream:
            back = threading.Thread(target=_copy, args=(upstream, connection), daemon=True)
            back.start()
            _copy(connection, upstream)
            back.join(LIMIT_S)

    def close(self) -> None:
        """After the program and before the upstream: each connection ends with one of them."""
        self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self.opened.set()
        for thread in self._threads:
            thread.join(LIMIT_S)
        self._listening.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def starting(upstream: Replay, directory: Path, *settings: str, code: int = 0) -> Iterator[tuple[Server, Gate]]:
    """`icefall up` that waits for its upstream's first answer."""
    held = {listener: hold_port() for listener in ("node", "data", "metrics")}
    ports = {listener: port_of(port) for listener, port in held.items()}
    flags = [f"--{name.replace('node', 'http')}-port={port}" for name, port in ports.items()]
    gate = Gate(upstream.url)
    flags += [f"--upstream={gate.url}", "--index-enabled=true", *settings]
    try:
        with serving("up", directory, *flags, started=False, ready=False, code=code) as server:
            server.process_info = {f"{name}Uri": f"http://127.0.0.1:{port}" for name, port in ports.items()}
            assert gate.asked.wait(LIMIT_S), server.output()
            yield server, gate
    finally:
        gate.close()
        for port in held.values():
            port.close()


def is_alive(server: Server) -> bool:
    with suppress(ConnectionError):
        return server.ask("GET", "/ext/health/liveness").status == 200
    return False


def test_liveness_and_health_answer_before_the_upstream_does(tmp_path: Path) -> None:
    with in_thread(Replay()) as upstream, starting(upstream, tmp_path) as (server, gate):
        until(lambda: is_alive(server), "liveness")
        assert server.call("/ext/health", "health.liveness")["result"] == {"checks": {}, "healthy": True}
        health = server.ask("GET", "/ext/health")
        assert (health.status, health.json()["healthy"]) == (503, False)
        assert "starting" in health.json()["checks"]["engine"]["error"]
        assert server.ask("GET", "/ext/health/readiness").status == 503
        call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "info.getNetworkID"}).encode()
        for path, listener in (("/ext/info", "node"), ("/v1/chains", "data"), ("/v1/metrics", "metrics")):
            until(lambda at=listener: server.ask("GET", "/", listener=at).status != 0, "a listener")  # type: ignore[misc]
            reply = server.ask("POST" if listener == "node" else "GET", path, call, listener=listener)
            assert (reply.status, reply.header("retry-after")) == (503, "1"), path
            assert b"is starting" in reply.body
        for path, listener in (
            ("/v1/health-check", "data"),
            ("/v1/live-check", "data"),
            ("/v2/health-check", "metrics"),
        ):
            assert server.ask("GET", path, listener=listener).json()["status"] == "ok", path
        assert "is up" not in server.output()
        gate.opened.set()
        server.await_start()
        assert server.call("/ext/info", "info.getNetworkID")["result"] == {"networkID": "12345"}
        assert server.ask("GET", "/v1/chains", listener="data").status == 200
        assert server.ask("GET", "/v1/metrics", listener="metrics").status == 200
        server.await_ready()


def test_an_upstream_of_another_network_still_ends_the_program(tmp_path: Path) -> None:
    other = Replay()
    other.network_id = 54321
    with in_thread(other) as upstream, starting(upstream, tmp_path, code=1) as (server, gate):
        until(lambda: is_alive(server), "liveness")
        gate.opened.set()
        assert server.process.wait(LIMIT_S) == 1
        assert "is of network 54321" in server.output()
        assert "is up" not in server.output()
