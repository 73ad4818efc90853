"""kill -9 of every kind of process, in the middle of work."""

import fcntl
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.program import Process, all_gone, family, kill_all, workers
from tests.server import Reply, Server, serving
from tests.waiting import LIMIT_S, until

LIVENESS = b'{"jsonrpc":"2.0","id":1,"method":"health.liveness"}'
ALIVE = {"jsonrpc": "2.0", "result": {"checks": {}, "healthy": True}, "id": 1}


@contextmanager
def hammered(server: Server) -> Iterator[list[Reply]]:
    """Clients that call without end, and all answers so far."""
    answers: list[Reply] = []
    done = threading.Event()

    def client() -> None:
        while not done.is_set():
            try:
                reply = server.ask("POST", "/ext/health", LIVENESS)
            except OSError:
                reply = Reply(0, [], b"")
            answers.append(reply)
            time.sleep(0.002)

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        done.set()
        for thread in threads:
            thread.join()


def set_something(server: Server) -> None:
    assert server.call("/ext/admin", "admin.alias", {"endpoint": "info", "alias": "mine"})["result"] == {}
    assert server.call("/ext/admin", "admin.aliasChain", {"chain": "X", "alias": "ex"})["result"] == {}
    levels = {"loggerName": "X", "logLevel": "DEBUG", "displayLevel": "FATAL"}
    assert server.call("/ext/admin", "admin.setLoggerLevel", levels)["result"] == {}


def assert_still_there(server: Server) -> None:
    assert server.call("/ext/mine", "info.getNetworkID")["result"] == {"networkID": "12345"}
    x_id = server.call("/ext/info", "info.getBlockchainID", {"alias": "X"})["result"]["blockchainID"]
    assert server.call("/ext/info", "info.getBlockchainID", {"alias": "ex"})["result"]["blockchainID"] == x_id
    levels = server.call("/ext/admin", "admin.getLoggerLevel", {"loggerName": "X"})["result"]["loggerLevels"]
    assert levels == {"X": {"logLevel": "DEBUG", "displayLevel": "FATAL"}}


def assert_served_again(server: Server, victim: Process, *dependent: Process) -> None:
    """Kills under load: afterwards all calls succeed again, and no answer was wrong."""
    with hammered(server) as answers:
        until(lambda: len(answers) > 50, "answers before the kill")
        os.kill(victim.pid, signal.SIGKILL)
        all_gone([victim, *dependent])
        gone = len(answers)
        until(lambda: len(answers) > gone + 100 and all(r.status == 200 for r in answers[-100:]), "good answers again")
    assert {reply.status for reply in answers} <= {0, 200}
    assert all(json.loads(reply.body) == ALIVE for reply in answers if reply.status)


def test_a_worker(tmp_path: Path) -> None:
    with serving("node", tmp_path, "--api-admin-enabled") as server:
        set_something(server)
        (worker,) = workers(server)
        assert_served_again(server, worker)
        (fresh,) = workers(server)
        assert fresh.pid != worker.pid
        assert_still_there(server)
        assert server.ask("GET", "/ext/health").status == 200


def test_a_killed_listener_is_restarted_with_its_workers(tmp_path: Path) -> None:
    with serving("node", tmp_path, "--api-admin-enabled") as server:
        set_something(server)
        old = workers(server)
        assert_served_again(server, *old)
        assert_still_there(server)
        assert "the node ended (killed by SIGKILL): starting it again" in server.output()


def test_the_engine(tmp_path: Path) -> None:
    with serving("up", tmp_path, "--api-admin-enabled") as server:
        set_something(server)
        others = [process for process in family(server.process.pid) if process.role != "engine"]
        old = server.process_info["enginePid"]
        calls = counted_calls(server)
        for _ in range(2):
            kill_engine(server)
            until(lambda: reaches_the_engine(server), "an engine that carries out calls again")
            assert_still_there(server)
            until(lambda: server.ask("GET", "/ext/health").status == 200, "a healthy node again")
        assert all(process.runs() for process in others)
        assert counted_calls(server) > calls
        assert server.output().count("the engine ended (killed by SIGKILL): starting it again") == 2
        assert server.process_info["enginePid"] != old


def kill_engine(server: Server) -> None:
    """And reads the process file again once another engine is in it."""
    old = server.process_info["enginePid"]
    os.kill(old, signal.SIGKILL)

    def replaced() -> bool:
        server.process_info = json.loads((server.data_dir / "process.json").read_bytes())
        return bool(server.process_info["enginePid"] != old)

    until(replaced, "another engine")


def reaches_the_engine(server: Server) -> bool:
    """Whether a call that only the engine can carry out succeeds."""
    reply = server.ask("POST", "/ext/admin", b'{"jsonrpc":"2.0","id":1,"method":"admin.loadVMs"}')
    return reply.status == 200 and "result" in reply.json()


def counted_calls(server: Server) -> float:
    text = server.ask("GET", "/ext/metrics").body.decode()
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("icefall_api_calls_tot"))


def test_an_engine_that_cannot_start_again(tmp_path: Path) -> None:
    with serving("node", tmp_path, code=1) as server:
        everybody = family(server.process.pid)
        store = server.data_dir / "node.sqlite"
        for part in server.data_dir.glob("node.sqlite*"):  # its journal too: that alone would restore the store
            part.rename(part.with_name(f"away-{part.name}"))
        store.write_bytes(b"something else " * 1000)
        os.kill(server.process_info["enginePid"], signal.SIGKILL)
        assert server.process.wait(LIMIT_S) == 1
        assert f"icefall: {store} cannot be used: file is not a database" in server.output()
        assert "the engine refused to start again: stopping" in server.output()
        all_gone(everybody)
        assert not (server.data_dir / "process.json").exists()


def test_an_engine_waits_for_a_store_that_may_recover(tmp_path: Path) -> None:
    """As on a full disk; here another process holds its lock."""
    with serving("node", tmp_path, "--api-admin-enabled") as server, (server.data_dir / "node.lock").open() as lock:
        os.kill(server.process.pid, signal.SIGSTOP)  # so that it cannot start the next engine
        os.kill(server.process_info["enginePid"], signal.SIGKILL)
        fcntl.flock(lock, fcntl.LOCK_EX)  # as soon as the engine has ended
        os.kill(server.process.pid, signal.SIGCONT)
        until(lambda: "the engine ended (exit code 75): starting it again" in server.output(), "an engine without lock")
        assert server.ask("GET", "/ext/health/liveness").status == 200
        fcntl.flock(lock, fcntl.LOCK_UN)
        until(lambda: reaches_the_engine(server), "an engine that carries out calls again")


def test_the_supervisor(tmp_path: Path) -> None:
    with serving("up", tmp_path, "--api-admin-enabled", code=-9) as server:
        set_something(server)
        everybody = family(server.process.pid)
        os.kill(server.process.pid, signal.SIGKILL)
        all_gone(everybody)
    with serving("up", tmp_path, "--api-admin-enabled") as server:
        assert_still_there(server)


def test_everything_at_once(tmp_path: Path) -> None:
    with serving("node", tmp_path, "--api-admin-enabled", code=-9) as server:
        set_something(server)
        kill_all(server)
    with serving("node", tmp_path, "--api-admin-enabled") as server:
        assert_still_there(server)


def test_an_engine_that_hangs_is_reported(tmp_path: Path) -> None:
    settings = ("--health-check-frequency=200ms", "--health-check-timeout=1s")
    with serving("node", tmp_path, *settings) as server:
        until(lambda: server.ask("GET", "/ext/health").status == 200, "a healthy node")
        os.kill(server.process_info["enginePid"], signal.SIGSTOP)
        try:
            # Another check may have failed just before, on a busy machine.
            until(lambda: "engine" in server.ask("GET", "/ext/health").json()["checks"], "an engine that hangs")
            health = server.ask("GET", "/ext/health")
            report = health.json()
            assert health.status == 503
            assert "the engine or its disk hangs" in report["checks"]["engine"]["error"]
            assert not report["healthy"]
            assert server.ask("GET", "/ext/health/liveness").status == 200
        finally:
            os.kill(server.process_info["enginePid"], signal.SIGCONT)
        until(lambda: server.ask("GET", "/ext/health").status == 200, "a healthy node again")
