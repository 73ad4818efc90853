"""Two workers on one port: a change made through one holds in all processes at once, and after a restart."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.counterparts import program
from tests.e2e.program import workers
from tests.server import Server, serving
from tests.waiting import LIMIT_S, until

from icefall.wire.ids import id_text

VM_TEXT, BAD_VM_TEXT = id_text(b"v" * 32), id_text(b"w" * 32)
SETTINGS = ("--api-admin-enabled", "--http-workers=2", "--log-format=json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving("up", folder, *SETTINGS, f"--profile-dir={folder / 'prof'}") as server:
        yield server


def figure(server: Server, name: str, label: str) -> float:
    text = server.ask("GET", "/ext/metrics").body.decode()
    found = re.search(rf'^{name}{{endpoint="{re.escape(label)}"}} (\S+)$', text, re.MULTILINE)
    assert found, text
    return float(found[1])


def logged(server: Server, path: str) -> list[dict[str, str]]:
    """Request lines of a path, from main.log and from the terminal; both must be equal."""
    shown = [json.loads(line) for line in server.output().splitlines() if line.startswith('{"time"')]
    file = server.data_dir / "logs" / "main.log"
    kept = [json.loads(line) for line in file.read_text().splitlines()]
    both = [[line for line in lines if line.get("path") == path] for lines in (shown, kept)]
    assert both[0] == both[1]
    return both[0]


def set_levels(server: Server, level: str) -> None:
    params = {"loggerName": "main", "logLevel": level, "displayLevel": level}
    assert server.call("/ext/admin", "admin.setLoggerLevel", params)["result"] == {}


def test_both_serve(server: Server) -> None:
    both = workers(server)
    assert len(both) == 2

    def have_counted() -> bool:
        """The program is up as soon as one of them serves."""
        for _ in range(60):
            server.ask("GET", "/ext/health/liveness")
        files = [list((server.data_dir / "run").rglob(f"{worker.pid}.counters")) for worker in both]
        return all(len(found) == 1 and found[0].read_bytes().strip(b"\0") for found in files)

    until(have_counted, "requests that each of them has answered")


@pytest.mark.parametrize("round_", range(3))
def test_an_alias_holds_everywhere_at_once(server: Server, round_: int) -> None:
    alias = f"alias/{round_}"
    assert server.ask("GET", f"/ext/{alias}/liveness").status == 404
    assert server.call("/ext/admin", "admin.alias", {"endpoint": "health", "alias": alias})["result"] == {}
    assert {server.ask("GET", f"/ext/{alias}/liveness").status for _ in range(20)} == {200}
    chain = {"chain": "C", "alias": f"sea-{round_}"}
    assert server.call("/ext/admin", "admin.aliasChain", chain)["result"] == {}
    params = ("/ext/info", "info.getBlockchainID", {"alias": chain["alias"]})
    assert all("result" in server.call(*params) for _ in range(20))


def test_a_level_holds_in_every_process_at_once(server: Server) -> None:
    set_levels(server, "INFO")
    for number in range(10):
        server.ask("GET", f"/quiet{number % 2}")
    for listener in ("node", "data", "metrics"):
        set_levels(server, "DEBUG")
        for _ in range(20):
            assert server.ask("GET", f"/loud/{listener}", listener=listener).status == 404
        set_levels(server, "INFO")
        server.ask("GET", f"/loud/{listener}", listener=listener)
        lines = logged(server, f"/loud/{listener}")
        assert len(lines) == 20, listener
        assert {(line["level"], line["process"], line["message"]) for line in lines} == {("DEBUG", "worker", "request")}
    assert logged(server, "/quiet0") == logged(server, "/quiet1") == []


def test_all_workers_report_the_same_level(server: Server) -> None:
    for level in ("VERBO", "WARN"):
        params = {"loggerName": "C", "logLevel": level.lower()}
        server.call("/ext/admin", "admin.setLoggerLevel", params)
        results = [server.call("/ext/admin", "admin.getLoggerLevel", {"loggerName": "C"}) for _ in range(20)]
        assert {one["result"]["loggerLevels"]["C"]["logLevel"] for one in results} == {level}


def test_counters_of_all_workers_are_added_up(server: Server) -> None:
    name = "icefall_api_calls_total"
    before, nothing = figure(server, name, "info.getNetworkID"), figure(server, name, "(no endpoint)")
    for _ in range(30):
        server.call("/ext/info", "info.getNetworkID")
        server.ask("GET", "/nothing/here")
    assert figure(server, name, "info.getNetworkID") == before + 30
    assert figure(server, name, "(no endpoint)") == nothing + 30
    failed = figure(server, "icefall_api_failures_total", "info.getBlockchainID")
    server.call("/ext/info", "info.getBlockchainID", {"alias": "nope"})
    assert figure(server, "icefall_api_failures_total", "info.getBlockchainID") == failed + 1
    assert figure(server, "icefall_api_in_flight", "info.getNetworkID") == 0
    assert figure(server, "icefall_api_duration_seconds_total", "info.getNetworkID") > 0
    text = server.ask("GET", "/ext/metrics").body.decode()
    assert 'icefall_health_check_passing{check="database"} 1' in text
    pids = set(re.findall(r'icefall_process_resident_memory_bytes{process="[\w-]+",pid="(\d+)"}', text))
    assert {str(worker.pid) for worker in workers(server)} <= pids


def test_other_listeners_count_for_themselves(server: Server) -> None:
    name = "icefall_api_calls_total"
    docs = figure(server, name, "GET /docs")
    for listener in ("data", "metrics"):
        assert server.ask("GET", "/docs", listener=listener).status == 200
    assert figure(server, name, "GET /docs") == docs


def test_profiles_are_written_and_open_in_pprof(server: Server, folder: Path) -> None:
    assert server.call("/ext/admin", "admin.startCPUProfiler")["result"] == {}
    assert (folder / "prof" / "cpu.profile").read_bytes() == b""
    error = server.call("/ext/admin", "admin.startCPUProfiler")["error"]
    assert error == {"code": -32000, "message": "cpu profiler already running"}
    until(lambda: server.call("/ext/health", "health.health")["result"]["healthy"], "some work")
    time.sleep(0.2)
    for method in ("stopCPUProfiler", "memoryProfile", "lockProfile"):
        assert server.call("/ext/admin", f"admin.{method}")["result"] == {}
    error = server.call("/ext/admin", "admin.stopCPUProfiler")["error"]
    assert error == {"code": -32000, "message": "cpu profiler doesn't exist"}
    names = sorted(path.name for path in (folder / "prof").iterdir())
    assert names == ["cpu.profile", "lock.profile", "mem.profile"]
    go = program("go")
    for name in names:
        top = [go, "tool", "pprof", "-top", str(folder / "prof" / name)]
        shown = subprocess.run(top, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert shown.returncode == 0, shown.stderr
        assert "flat%" in shown.stdout


def test_plugins_are_loaded_while_it_runs(server: Server) -> None:
    plugins = server.data_dir / "plugins"
    assert server.call("/ext/admin", "admin.loadVMs")["result"] == {"newVMs": {}}
    plugins.rmdir()
    missing = server.call("/ext/admin", "admin.loadVMs")["error"]["message"]
    assert missing == f"open {plugins}: no such file or directory"
    plugins.mkdir()
    (plugins / f"{VM_TEXT}.py").write_text("class vm:\n    version = '1'\n    aliases = ['mine']\n")
    (plugins / f"{BAD_VM_TEXT}.py").write_text("raise RuntimeError('no luck')")
    results = server.call("/ext/admin", "admin.loadVMs")["result"]
    assert results["newVMs"] == {VM_TEXT: ["mine"]}
    assert "no luck" in results["failedVMs"][BAD_VM_TEXT]
    assert server.call("/ext/admin", "admin.loadVMs")["result"] == {"newVMs": {}}
    for _ in range(10):
        vms = server.call("/ext/info", "info.getVMs")["result"]["vms"]
        assert (vms[VM_TEXT], vms[BAD_VM_TEXT]) == (["mine"], [])
    assert "no luck" in (server.data_dir / "logs" / "vm-factory.log").read_text()


def test_levels_survive_a_restart(tmp_path: Path) -> None:
    with serving("node", tmp_path, *SETTINGS) as server:
        set_levels(server, "DEBUG")
    with serving("node", tmp_path, *SETTINGS, "--log-level=error") as server:
        for _ in range(10):
            server.ask("GET", "/after/restart")
        assert len(logged(server, "/after/restart")) == 10
        levels = server.call("/ext/admin", "admin.getLoggerLevel")["result"]["loggerLevels"]
        assert levels.pop("main") == {"logLevel": "DEBUG", "displayLevel": "DEBUG"}
        assert set(levels) == {"C", "P", "X", "vm-factory"}
        assert all(level == {"logLevel": "ERROR", "displayLevel": "ERROR"} for level in levels.values())


def test_a_fresh_start_counts_from_zero(tmp_path: Path) -> None:
    run = tmp_path / "data" / "run"
    for _ in range(2):
        with serving("node", tmp_path) as server:
            assert figure(server, "icefall_api_calls_total", "GET /ext/health") == 0
            assert len(list(run.rglob("*.counters"))) == 1
