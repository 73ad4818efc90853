"""The benchmark beside other programs: its replay, its processes and its line for a peer that is not there."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bench.load import LoadStats
from bench.peers import install
from bench.peers.processes import Missing, started, to_the_end
from bench.peers.replay import TOKEN_TEXT, History, ReplayedChain
from bench.peers.table import EMBEDDED, SERVER, Comparison, Page, page_lines
from tests.waiting import LIMIT_S


@pytest.fixture(scope="module")
def history() -> History:
    return History(blocks=4, per_block=3, addresses=5, busy=0.0)


def asked(replay: ReplayedChain, method: str, *params: Any) -> Any:
    return msgspec.json.decode(replay.answer(method, list(params)))


def test_logs_are_those_of_the_receipts(history: History) -> None:
    replay = history.replay(tracers=False)
    receipts = [one for number in (1, 2) for one in asked(replay, "eth_getBlockReceipts", hex(number))]
    logs = [log for receipt in receipts for log in receipt["logs"]]
    wanted = {"fromBlock": "0x1", "toBlock": "0x2", "address": [TOKEN_TEXT]}
    assert len(logs) == 5 + 3  # the first block gives tokens to every address
    assert asked(replay, "eth_getLogs", wanted) == logs
    assert asked(replay, "eth_getFilterLogs", asked(replay, "eth_newFilter", wanted)) == logs
    assert asked(replay, "eth_getLogs", {**wanted, "address": "0x" + "11" * 20}) == []
    assert asked(replay, "eth_getTransactionReceipt", receipts[0]["transactionHash"]) == receipts[0]
    assert history.transfers == 5 + 2 * 3


def test_equal_work_has_no_tracers(history: History) -> None:
    trace = ["0x1", {"tracer": "callTracer"}]
    assert asked(history.replay(tracers=True), "debug_traceBlockByNumber", *trace)
    with pytest.raises(LookupError):
        history.replay(tracers=False).answer("debug_traceBlockByNumber", trace)


def test_a_peer_that_is_missing_or_fails_has_a_line(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    comparison = Comparison(history, tmp_path)
    with comparison.line("SQD"):
        install.npm_project("sqd")
    with comparison.line("other"):
        to_the_end([sys.executable, "-c", "raise SystemExit('no such option')"], tmp_path / "log")
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["SQD", "node", "and", "npm", "are", "not", "on", "this", "machine"]
    assert second.split() == ["other", "failed:", "ended", "with", "1:", "no", "such", "option"]


def test_an_installation_that_fails_is_a_missing_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "CACHE", tmp_path)
    with pytest.raises(Missing, match="cannot be installed"):
        install.run_installer("x", [sys.executable, "-c", "raise SystemExit('no index')"], tmp_path)


def test_pages_are_compared_with_ponders_on_a_store_of_the_same_kind() -> None:
    def page(label: str, store: str, query: str, per_second: float) -> Page:
        return Page(label, store, query, "busy", LoadStats(per_second, 1.0, 1.0))

    pages = [
        page("PGlite, SQL", EMBEDDED, "SQL", 100),
        page("PGlite, GraphQL", EMBEDDED, "GraphQL", 20),
        page("SQLite", EMBEDDED, "", 3000),
        page("PostgreSQL, SQL", SERVER, "SQL", 1000),
        page("PostgreSQL", SERVER, "", 1500),
    ]
    _head, *lines = page_lines(pages)
    assert [(line.split(" busy")[0].strip(" ,"), *line.split()[-2:]) for line in lines] == [
        ("PostgreSQL, SQL", "1.0", "-"),
        ("PostgreSQL", "1.5", "-"),
        ("PGlite, SQL", "1.0", "5.0"),
        ("PGlite, GraphQL", "0.2", "1.0"),
        ("SQLite", "30.0", "150.0"),
    ]


def test_children_of_a_peer_end_with_it(tmp_path: Path) -> None:
    child = "import time; print('started', flush=True); time.sleep(3600)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    log = tmp_path / "log"
    with started([sys.executable, "-c", parent], log) as process:
        _await(lambda: "started" in log.read_text())
        assert len(_in_group(process.pid)) == 2
    _await(lambda: not _in_group(process.pid))


def _await(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _in_group(group: int) -> list[Path]:
    return [stat for stat in Path("/proc").glob("[0-9]*/stat") if _group_of(stat) == group]


def _group_of(stat: Path) -> int:
    """Process group; 0 of one that has ended."""
    try:
        state, _parent, group, *_ = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if state == "Z" else int(group)
