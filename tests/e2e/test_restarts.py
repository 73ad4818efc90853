"""How fast processes that end are started again: each role has its own budget; an indexer never ends the program."""

import os
import signal
from pathlib import Path

from tests.e2e.program import family, workers
from tests.server import Server, serving
from tests.waiting import until

from icefall.processes.supervisor import (
    PAUSE_MAX_S,
    QUICK_MAX,
    QUICK_PAUSE_S,
    SERVING_PAUSE_MAX_S,
    WINDOW_S,
    RestartBudget,
)


def test_quick_first_then_ever_longer_pauses() -> None:
    budget = RestartBudget()
    now, pauses = 0.0, []
    for _ in range(QUICK_MAX + 8):
        pauses.append(budget.pause_after_end(now))
        now += pauses[-1]
    assert pauses == [QUICK_PAUSE_S] * QUICK_MAX + [1.0, 2.0, 4.0, 8.0, 16.0, PAUSE_MAX_S, PAUSE_MAX_S, PAUSE_MAX_S]


def test_clients_never_wait_long_for_a_listener_that_keeps_being_killed(tmp_path: Path) -> None:
    with serving("metrics", tmp_path) as server:
        for killed in range(1, QUICK_MAX + 4):
            until(lambda: bool(workers(server, "metrics")), "a worker")
            os.kill(workers(server, "metrics")[0].pid, signal.SIGKILL)
            until(lambda n=killed: server.output().count("the metrics ended") == n, "its end noticed")  # type: ignore[misc]
        pauses = [line.rpartition(" in ")[2] for line in server.output().splitlines() if "starting it again in" in line]
        assert pauses == ["1 s", f"{SERVING_PAUSE_MAX_S:.0f} s", f"{SERVING_PAUSE_MAX_S:.0f} s"]


def test_a_window_without_an_end_fills_the_budget_again() -> None:
    budget = RestartBudget()
    for _ in range(QUICK_MAX + 3):
        budget.pause_after_end(0.0)
    assert budget.is_spent
    assert budget.pause_after_end(WINDOW_S) == QUICK_PAUSE_S
    assert not budget.is_spent


def test_ends_that_are_far_apart_stay_quick() -> None:
    budget = RestartBudget()
    assert {budget.pause_after_end(now * 15.0) for now in range(100)} == {QUICK_PAUSE_S}


def indexers(server: Server) -> list[int]:
    return [p.pid for p in family(server.process.pid) if p.role == "indexer" and p.parent == server.process.pid]


def test_an_indexer_that_keeps_dying_backs_off(tmp_path: Path) -> None:
    config = tmp_path / "icefall.toml"
    config.write_text('[[chain]]\nid = "77"\nrpc = "http://127.0.0.1:9"\n')
    with serving("up", tmp_path, f"--config-file={config}") as server:
        for killed in range(1, QUICK_MAX + 3):
            until(lambda: bool(indexers(server)), "an indexer")
            os.kill(indexers(server)[0], signal.SIGKILL)
            until(lambda n=killed: server.output().count("the indexer ended") == n, "its end noticed")  # type: ignore[misc]
        assert "the indexer ended (killed by SIGKILL): starting it again in 2 s" in server.output()
        assert server.ask("GET", "/ext/health/liveness").status == 200
        until(lambda: bool(indexers(server)), "an indexer in the end")
        os.kill(server.process_info["enginePid"], signal.SIGKILL)  # has a budget of its own
        until(lambda: "the engine ended (killed by SIGKILL): starting it again\n" in server.output(), "a quick restart")
        server.await_ready()
