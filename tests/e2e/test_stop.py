"""How the program ends: it finishes running calls and leaves no process behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.e2e.program import all_gone, family
from tests.server import Reply, Server, serving
from tests.waiting import LIMIT_S, until

from icefall.db.disk import StoreLock
from icefall.wire.ids import id_text

VM_TEXT = id_text(b"v" * 32)
SLOW_PLUGIN = """import pathlib, time
pathlib.Path(__file__).with_name("started").touch()
time.sleep(1.5)
class vm:
    version = "1"
"""


def slow_call(server: Server, plugins: Path, answers: list[Reply]) -> threading.Thread:
    """A call that takes a second and a half, under way when this returns."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"admin.loadVMs"}'
    thread = threading.Thread(target=lambda: answers.append(server.ask("POST", "/ext/admin", body)))
    thread.start()
    until((plugins / "started").exists, "the plugin's import")
    return thread


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_it_starts(tmp_path: Path, number: signal.Signals) -> None:
    """Its engine calls an upstream that accepts the call and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(LIMIT_S)
        upstream = f"--upstream=http://127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "icefall.cli", "node", f"--data-dir={tmp_path}", "--http-port=0", upstream]
        with subprocess.Popen(command) as process:
            call, _ = silent.accept()
            everybody = family(process.pid)
            process.send_signal(number)
            assert process.wait(LIMIT_S) == 0
            call.close()
    all_gone(everybody)


def assert_can_fork(supervisor: int, data_dir: Path) -> None:
    """A fork copies one thread, and a store that is open in two processes can be damaged by either."""
    assert len(list(Path(f"/proc/{supervisor}/task").iterdir())) == 1
    opened = [str(file.readlink()) for file in Path(f"/proc/{supervisor}/fd").iterdir()]
    assert not [name for name in opened if name.startswith(str(data_dir))]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_running_calls(tmp_path: Path, number: signal.Signals) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / f"{VM_TEXT}.py").write_text(SLOW_PLUGIN)
    with serving("up", tmp_path, "--api-admin-enabled", f"--plugin-dir={plugins}") as server:
        everybody = family(server.process.pid)
        # The supervisor, the engine, a worker for each of three listeners, delivery of webhooks, and exports.
        assert len(everybody) == 7
        assert_can_fork(everybody[0].pid, server.data_dir)
        answers: list[Reply] = []
        thread = slow_call(server, plugins, answers)
        server.process.send_signal(number)
        assert server.process.wait(LIMIT_S) == 0
        thread.join()
        assert answers[0].status == 200
        assert answers[0].json()["result"] == {"newVMs": {VM_TEXT: []}}
        assert not (server.data_dir / "process.json").exists()
        assert not (server.data_dir / "run" / "engine.sock").exists()
        all_gone(everybody)
        assert "Traceback" not in server.output()


def test_a_signal_while_it_starts_ends_it_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "icefall.cli", "node", f"--data-dir={tmp_path}", "--http-port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as starting:
        until(lambda: any(process.role == "engine" for process in family(starting.pid)), "an engine")
        starting.send_signal(signal.SIGTERM)
        said, _ = starting.communicate(timeout=LIMIT_S)
        assert starting.returncode == 0, said
        assert "Traceback" not in said
    assert not (tmp_path / "process.json").exists()
    StoreLock(tmp_path / "node.lock").release()


def test_it_serves_during_the_shutdown_wait(tmp_path: Path) -> None:
    settings = ("--http-shutdown-wait=4s", "--http-shutdown-timeout=5s", "--health-check-frequency=1h")
    with serving("node", tmp_path, *settings) as server:
        assert server.ask("GET", "/ext/health").status == 200
        began = time.monotonic()
        os.kill(server.process.pid, signal.SIGTERM)
        until(lambda: server.ask("GET", "/ext/health").status == 503, "an unhealthy node")
        until(lambda: "message" in server.ask("GET", "/ext/health").json()["checks"]["shuttingDown"], "its reason")
        check = server.ask("GET", "/ext/health").json()["checks"]["shuttingDown"]
        assert (check["message"], check["error"]) == ({"isShuttingDown": True}, "server shutting down")
        assert server.ask("GET", "/ext/health/readiness").status == 200
        assert server.ask("GET", "/ext/health/liveness").status == 200
        assert server.process.wait(LIMIT_S) == 0
        assert time.monotonic() - began >= 4


def test_it_runs_without_standard_input(tmp_path: Path) -> None:
    """As some service managers start it; children get their messages there."""
    command = [sys.executable, "-m", "icefall.cli", "node", f"--data-dir={tmp_path}", "--http-port=0"]
    closed = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command]
    with subprocess.Popen(closed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            until((tmp_path / "process.json").exists, "the start")
            uri = json.loads((tmp_path / "process.json").read_text())["nodeUri"]
            with urlopen(f"{uri}/ext/health/liveness", timeout=LIMIT_S) as response:
                assert response.status == 200
        finally:
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, said
    assert "Traceback" not in said
