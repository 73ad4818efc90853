"""The program with interfaces switched off, with its timeouts, and with single verbs."""

import socket
import time
from pathlib import Path

import pytest
from tests.e2e.program import family
from tests.server import Wire, serving
from tests.waiting import LIMIT_S, until

from icefall.wire.ids import id_text

VM_TEXT = id_text(b"v" * 32)


def test_readiness_does_not_wait_for_a_period(tmp_path: Path) -> None:
    with serving("node", tmp_path, "--health-check-frequency=1h", ready=False) as server:
        until(lambda: server.ask("GET", "/ext/health/readiness").status == 200, "readiness")
        until(lambda: server.ask("GET", "/ext/health").status == 200, "health")
        checks = server.ask("GET", "/ext/health").json()["checks"]
        assert list(checks) == sorted(checks)
        assert {"C", "P", "X", "bootstrapped", "database", "diskspace", "network", "router"} <= set(checks)


def test_disabled_interfaces_are_not_found(tmp_path: Path) -> None:
    off = [f"--api-{name}-enabled=false" for name in ("admin", "info", "health", "metrics")]
    with serving("node", tmp_path, *off, ready=False) as server:
        for path in ("/ext/admin", "/ext/info", "/ext/health", "/ext/health/liveness", "/ext/metrics"):
            for method in ("GET", "POST"):
                assert server.ask(method, path, b"{}" if method == "POST" else b"").status == 404, path
        assert server.ask("GET", "/docs").status == 200


def test_admin_is_off_by_default(tmp_path: Path) -> None:
    with serving("node", tmp_path) as server:
        assert server.ask("POST", "/ext/admin", b'{"jsonrpc":"2.0","id":1,"method":"admin.loadVMs"}').status == 404
        assert server.ask("GET", "/ext/info").status == 405


def read_all(connection: socket.socket) -> bytes:
    """All bytes until the server closes."""
    connection.settimeout(LIMIT_S)
    read = b""
    while piece := connection.recv(4096):
        read += piece
    return read


def test_slow_clients_time_out(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / f"{VM_TEXT}.py").write_text("import time\ntime.sleep(1.2)\nclass vm:\n    version = '1'\n")
    limits = ("--http-read-timeout=700ms", "--http-read-header-timeout=800ms", "--http-idle-timeout=1s")
    settings = (*limits, "--api-admin-enabled", f"--plugin-dir={plugins}")
    with serving("node", tmp_path, *settings) as server:
        address = Wire(server.url()).address
        head = b"POST /ext/info HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        began = time.monotonic()  # always before the first byte: the server cannot have begun to wait earlier
        with socket.create_connection(address) as slow:  # a body that never comes
            slow.sendall(head + b'Content-Length: 100\r\n\r\n{"jsonrpc"')
            slow.settimeout(LIMIT_S)
            assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")
            assert time.monotonic() - began > 0.5
        with socket.create_connection(address) as slow:  # a chunk now, the rest never
            slow.sendall(head + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"jso\r\n')
            slow.settimeout(LIMIT_S)
            assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")
        began = time.monotonic()
        with socket.create_connection(address) as half:
            half.sendall(b"GET /ext/health/liveness HTTP/1.1\r\nHost: loc")
            read_all(half)
            assert time.monotonic() - began > 0.5
        began = time.monotonic()
        with socket.create_connection(address) as idle:
            idle.sendall(b"GET /ext/health/liveness HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_all(idle).startswith(b"HTTP/1.1 200 ")
            assert time.monotonic() - began > 0.5
        slow_answer = server.call("/ext/admin", "admin.loadVMs")  # longer than all of these
        assert slow_answer["result"] == {"newVMs": {VM_TEXT: []}}


def test_a_timeout_of_zero_is_none(tmp_path: Path) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"info.getNetworkID"}'
    lines = [
        b"POST /ext/info HTTP/1.1",
        b"Host: localhost",
        b"Content-Type: application/json",
        b"Content-Length: 53",
        b"",
    ]
    pieces = [line + b"\r\n" for line in lines] + [body[:10], body[10:]]
    settings = ("--http-read-timeout=0s", "--http-idle-timeout=0s")
    with serving("node", tmp_path, *settings) as server, socket.create_connection(Wire(server.url()).address) as slow:
        for piece in pieces:
            slow.sendall(piece)
            time.sleep(0.03)
        slow.settimeout(LIMIT_S)
        assert b'"networkID":"12345"' in slow.recv(4096)


@pytest.mark.parametrize("verb", ["data", "metrics"])
def test_a_worker_verb_runs_alone_and_takes_no_lock(tmp_path: Path, verb: str) -> None:
    with serving(verb, tmp_path) as server:
        assert server.ask("GET", "/openapi.json", listener=verb).status == 200
        assert server.ask("GET", "/nothing", listener=verb).status == 404
        assert not (server.data_dir / "node.lock").exists()
        assert not (server.data_dir / "node.sqlite").exists()
        assert [process.role for process in family(server.process.pid)].count("engine") == 0


def test_worker_verbs_share_the_directory_of_a_node(tmp_path: Path) -> None:
    with serving("node", tmp_path) as node:
        process_info = (node.data_dir / "process.json").read_bytes()
        with serving("data", tmp_path) as data, serving("metrics", tmp_path) as metrics:
            assert data.ask("GET", "/docs", listener="data").status == 200
            assert metrics.ask("GET", "/docs", listener="metrics").status == 200
            assert (node.data_dir / "process.json").read_bytes() == process_info
        assert (node.data_dir / "process.json").read_bytes() == process_info
        assert node.ask("GET", "/ext/health").status == 200


def test_a_data_directory_too_long_for_a_socket(tmp_path: Path) -> None:
    with serving("node", tmp_path / ("d" * 110), "--api-admin-enabled") as server:
        assert len(str(server.data_dir)) > 107
        assert server.call("/ext/admin", "admin.alias", {"endpoint": "info", "alias": "mine"})["result"] == {}
        assert server.call("/ext/mine", "info.getNetworkID")["result"] == {"networkID": "12345"}
