"""How the program ends: asked to, it finishes what it has begun and leaves nothing running."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.e2e.program import all_gone, family, until
from tests.server import Reply, serving

from icefall.db.lock import StoreLock
from icefall.wire.ids import id_text

VM_TEXT = id_text(b"v" * 32)
SLOW_PLUGIN = "import time\ntime.sleep(1.5)\nclass vm:\n    version = '1'\n"


def slow_call(server: object, answers: list[Reply]) -> threading.Thread:
    """A call that takes a second and a half, under way when this returns."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"admin.loadVMs"}'
    ask = server.ask  # type: ignore[attr-defined]
    thread = threading.Thread(target=lambda: answers.append(ask("POST", "/ext/admin", body)))
    thread.start()
    time.sleep(0.4)
    return thread


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_it_starts(tmp_path: Path, number: signal.Signals) -> None:
    """Its engine asks an upstream that takes the call and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        upstream = f"--upstream=http://127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "icefall.cli", "node", f"--data-dir={tmp_path}", "--http-port=0", upstream]
        with subprocess.Popen(command) as process:
            call, _ = silent.accept()
            everybody = family(process.pid)
            process.send_signal(number)
            began = time.monotonic()
            assert process.wait(15) == 0
            assert time.monotonic() - began < 10
            call.close()
    all_gone(everybody, 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_what_is_under_way(tmp_path: Path, number: signal.Signals) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / f"{VM_TEXT}.py").write_text(SLOW_PLUGIN)
    with serving("up", tmp_path, "--api-admin-enabled", f"--plugin-dir={plugins}") as server:
        everybody = family(server.process.pid)
        assert len(everybody) == 8  # supervisor, engine, three listeners with a worker each
        answers: list[Reply] = []
        thread = slow_call(server, answers)
        began = time.monotonic()
        server.process.send_signal(number)
        assert server.process.wait(15) == 0
        assert time.monotonic() - began < 10
        thread.join()
        assert answers[0].status == 200
        assert answers[0].json()["result"] == {"newVMs": {VM_TEXT: []}}
        assert not (server.data_dir / "process.json").exists()
        assert not (server.data_dir / "run" / "engine.sock").exists()
        all_gone(everybody, 1)
        assert "Traceback" not in server.said()


def test_a_signal_while_it_starts_ends_it_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "icefall.cli", "node", f"--data-dir={tmp_path}", "--http-port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as starting:
        until(lambda: any(process.role == "engine" for process in family(starting.pid)), 20, "an engine")
        starting.send_signal(signal.SIGTERM)
        said, _ = starting.communicate(timeout=20)
        assert starting.returncode == 0, said
        assert "Traceback" not in said
    assert not (tmp_path / "process.json").exists()
    StoreLock(tmp_path / "node.lock").release()


def test_it_goes_on_serving_for_the_time_it_was_given(tmp_path: Path) -> None:
    settings = ("--http-shutdown-wait=2s", "--http-shutdown-timeout=5s", "--health-check-frequency=1h")
    with serving("node", tmp_path, *settings) as server:
        assert server.ask("GET", "/ext/health").status == 200
        began = time.monotonic()
        os.kill(server.process.pid, signal.SIGTERM)
        until(lambda: server.ask("GET", "/ext/health").status == 503, 1.5, "an unhealthy node")
        until(lambda: "message" in server.ask("GET", "/ext/health").json()["checks"]["shuttingDown"], 1.5, "its reason")
        told = server.ask("GET", "/ext/health").json()["checks"]["shuttingDown"]
        assert (told["message"], told["error"]) == ({"isShuttingDown": True}, "server shutting down")
        assert server.ask("GET", "/ext/health/readiness").status == 200
        assert server.ask("GET", "/ext/health/liveness").status == 200
        assert server.process.wait(10) == 0
        assert 2 <= time.monotonic() - began < 8
