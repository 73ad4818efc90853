"""Usage by key: what is counted, how it is added up, who may see it, and that budgets and counts survive a kill -9."""

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.program import kill_all
from tests.forked import run_program
from tests.server import Server, serving
from tests.waiting import until

from icefall.access.usage import DURATIONS_MS, AnsweredRequest, UsageCounts, UsageKey, count, median_ms

MIDNIGHT = 1_800_000_000 // 86_400 * 86_400


def request(status: int = 200, duration_ms: float = 1.0, chain: str = "43112", at: float = MIDNIGHT) -> AnsweredRequest:
    return AnsweredRequest(
        at, "wallet", "/v1/chains/{chainId}", "/v1/chains/x", chain, status, 10, duration_ms, "::1", "", ""
    )


def test_requests_are_counted_by_day_route_chain_and_status() -> None:
    counts: dict[UsageKey, UsageCounts] = {}
    for one in (request(), request(), request(404, chain="invented"), request(at=MIDNIGHT - 1)):
        count(counts, one)
    day = MIDNIGHT // 86_400
    assert {(key.day - day, key.chain, key.status): (it.calls, it.units) for key, it in counts.items()} == {
        (0, "43112", 200): (2, 20),
        (0, "", 404): (1, 10),
        (-1, "43112", 200): (1, 10),
    }


def test_the_median_is_within_its_class() -> None:
    counts: dict[UsageKey, UsageCounts] = {}
    for duration_ms in (0.1, 3.0, 3.5, 900.0, 10**9):
        count(counts, request(duration_ms=duration_ms))
    [only] = counts.values()
    assert 2.0 < median_ms(only.durations) <= 4.0
    assert median_ms([0] * (len(DURATIONS_MS) + 1)) == 0.0


def add_key(server: Server, name: str) -> dict[str, str]:
    done = run_program("keys", "add", f"--name={name}", f"--data-dir={server.data_dir}")
    return {"x-service-api-key": done.stdout.split()[0]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("usage")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving("data", folder, "--rate-limits=on") as server:
        yield server


def test_a_key_sees_its_own_usage(server: Server) -> None:
    mine, other = add_key(server, "mine"), add_key(server, "other")
    for _ in range(3):
        assert server.ask("GET", "/v1/chains", headers=mine, listener="data").status == 200
    agent = {"user-agent": "test/1"}
    assert server.ask("GET", "/v1/chains/9/blocks", headers=mine | agent, listener="data").status == 404
    assert server.ask("GET", "/v1/chains", headers=other, listener="data").status == 200

    def usage(query: str = "", key: dict[str, str] | None = None) -> list[dict[str, object]]:
        reply = server.ask("GET", f"/v1/apiUsageMetrics?{query}", headers=key or mine, listener="data")
        assert reply.status == 200, reply.body
        assert reply.json()["aggregateDuration"] in ("daily", "monthly")
        return [value for metric in reply.json()["metrics"] for value in metric["values"]]

    counted = "select sum(calls) from usage_day where caller = 'mine'"
    until(lambda: _stored(server.data_dir, counted) >= 4, "counts in the store")
    by_path = {value["groupValue"]: value for value in usage("groupBy=requestPath")}
    chains = by_path["/v1/chains"]
    assert (chains["totalRequests"], chains["apiCreditsUsed"], chains["successRatePercent"]) == (3, 3, 100.0)
    blocks = by_path["/v1/chains/{chainId}/blocks"]
    assert (blocks["invalidRequests"], blocks["apiCreditsWasted"], blocks["groupedBy"]) == (1, 10, "requestPath")
    assert [value["totalRequests"] for value in usage("responseCode=404&timeInterval=monthly")] == [1]
    assert usage("requestType=rpc") == []
    assert [value["groupValue"] for value in usage("groupBy=apiKeyId")] == ["mine"]

    logs = server.ask("GET", "/v1/apiLogs?pageSize=1&responseCode=404", headers=mine, listener="data").json()
    [entry] = logs["logs"]
    assert (entry["requestPath"], entry["apiKeyId"], entry["metadata"]["userAgent"]) == (
        "/v1/chains/9/blocks",
        "mine",
        "test/1",
    )
    pages, token = [], ""
    while True:
        query = f"pageSize=2&requestPath=/v1/chains{f'&pageToken={token}' if token else ''}"
        page = server.ask("GET", f"/v1/apiLogs?{query}", headers=mine, listener="data").json()
        pages += [one["logId"] for one in page["logs"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert len(pages) == len(set(pages)) == 3


@pytest.mark.parametrize("path", ["/v1/apiUsageMetrics", "/v1/apiLogs"])
def test_usage_of_others_is_not_shown(path: str, server: Server) -> None:
    assert server.ask("GET", path, listener="data").status == 401
    key = add_key(server, path.rpartition("/")[2])
    assert server.ask("GET", f"{path}?apiKeyId=mine", headers=key, listener="data").status == 403
    assert server.ask("GET", f"{path}?responseCode=9", headers=key, listener="data").status == 400
    reply = server.ask("GET", "/v1/apiUsageMetrics?timeInterval=hourly", headers=key, listener="data")
    assert "usage is kept by day" in reply.json()["message"]


def test_on_this_machine_without_limits_all_is_shown(tmp_path: Path) -> None:
    with serving("data", tmp_path) as server:
        assert server.ask("GET", "/v1/apiUsageMetrics", listener="data").status == 200
        proxied = {"x-forwarded-for": "10.0.0.1"}
        assert server.ask("GET", "/v1/apiUsageMetrics", headers=proxied, listener="data").status == 401


def test_budgets_survive_a_kill(tmp_path: Path) -> None:
    """What was spent on a day stays spent: the day's budget goes on, with the slices that were leased counted."""

    def left_today(server: Server, key: dict[str, str]) -> int:
        reply = server.ask("GET", "/v1/chains", headers=key, listener="data")
        return int(str(reply.header("ratelimit-remaining")))

    config = tmp_path / "icefall.toml"
    config.write_text('[[tier]]\nname = "small"\nper_minute = 100000\nper_day = 5000\n')
    settings = ("--rate-limits=on", f"--config-file={config}")
    with serving("data", tmp_path, *settings, code=-9) as server:
        added = run_program(
            "keys", "add", "--name=a", "--tier=small", f"--data-dir={server.data_dir}", f"--config-file={config}"
        )
        key = {"x-service-api-key": added.stdout.split()[0]}
        day = time.time() // 86_400
        for _ in range(200):
            before = left_today(server, key)
        assert before <= 4800
        stored = "select day_units from budget_spent where caller = 'key a'"
        until(lambda: _stored(server.data_dir, stored) >= 200, "the budget in the store")
        kill_all(server)
        server.process.wait()
    with serving("data", tmp_path, *settings) as server:
        until(lambda: left_today(server, key) < before or time.time() // 86_400 != day, "the owner of the budgets")


def _stored(data_dir: Path, query: str) -> int:
    connection = sqlite3.connect(data_dir / "access.sqlite")
    try:
        return int((connection.execute(query).fetchone() or [0])[0] or 0)
    finally:
        connection.close()
