"""Keys and limits of the real program: `icefall keys` beside running servers, one budget across processes."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.server import Reply, Server, serving

from icefall.access.limits import MINUTE_S
from icefall.api.endpoint import DATA, Rest
from icefall.api.endpoints import rows_of
from icefall.db.lock import StoreLock

CHAINS = "/v1/chains"
OK: dict[str, list[str]] = {"chains": []}
WEIGHT = next(row.weight for row in rows_of(DATA) if isinstance(row, Rest) and row.path == CHAINS)
BUDGETS = f"""
[[tier]]
name = "unauthenticated"
per_minute = {20 * WEIGHT}
per_day = 100000
[[tier]]
name = "metrics"
per_minute = 10
per_day = 100000
[[tier]]
name = "small-days"
per_minute = 1000
per_day = {7 * WEIGHT}
"""


def keys(data_dir: Path, *words: str) -> tuple[int, str]:
    """`icefall keys ...`: exit code, and all it says."""
    command = [sys.executable, "-m", "icefall.cli", "keys", *words, f"--data-dir={data_dir}"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    return done.returncode, done.stdout + done.stderr


def get(server: Server, key: str | None = None, header: str = "x-service-api-key", listener: str = "data") -> Reply:
    path = CHAINS if listener == "data" else "/docs"
    return server.ask("GET", path, headers={header: key} if key else None, listener=listener)


def await_time(seconds: float) -> None:
    """A window of the clock in which to count: none of these tests may see a minute turn."""
    left = MINUTE_S - time.time() % MINUTE_S
    if left < seconds:
        time.sleep(left + 0.1)


def statuses(server: Server, count: int, listener: str = "data") -> list[int]:
    with ThreadPoolExecutor(4) as pool:  # connections spread over the workers
        return sorted(reply.status for reply in pool.map(lambda _: get(server, listener=listener), range(count)))


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("limited")
    (directory / "icefall.toml").write_text(BUDGETS)
    with serving("data", directory, "--rate-limits=on", "--http-workers=2", cwd=directory) as server:
        yield server


def test_on_loopback_nobody_is_limited(tmp_path: Path) -> None:
    (tmp_path / "icefall.toml").write_text(BUDGETS)
    with serving("data", tmp_path, cwd=tmp_path) as server:
        reply = get(server)
        assert (reply.status, reply.json()) == (200, OK)
        assert reply.header("ratelimit-limit") is None
        assert statuses(server, 60) == [200] * 60
        assert not list((server.data_dir / "run").glob("limits*"))


def test_one_budget_for_all_workers_and_then_429(limited: Server) -> None:
    await_time(20)
    assert statuses(limited, 50) == [200] * 20 + [429] * 30
    reply = get(limited)
    assert reply.status == 429
    assert reply.header("content-type") == "application/json; charset=utf-8"
    assert list(reply.json()) == ["message", "statusCode", "error"]
    assert reply.header("ratelimit-policy") == f"{20 * WEIGHT};w=60, 100000;w=86400"
    assert (reply.header("ratelimit-limit"), reply.header("ratelimit-remaining")) == (str(20 * WEIGHT), "0")
    assert reply.header("ratelimit-reset") == reply.header("retry-after")
    assert 0 < int(reply.header("retry-after") or 0) <= 60
    assert "the rate limits are not shared" not in limited.said()


def test_another_program_on_the_same_data_shares_the_budget(limited: Server) -> None:
    settings = ("--rate-limits=on", f"--config-file={limited.data_dir.parent / 'icefall.toml'}")
    with serving("metrics", limited.data_dir.parent, *settings) as metrics:
        await_time(20)
        assert statuses(metrics, 30, "metrics") == [200] * 10 + [429] * 20
        assert get(metrics, listener="metrics").json()["message"][0].startswith("the budget of 10 units a minute")
        with serving("data", limited.data_dir.parent, *settings) as other:
            await_time(20)
            told = statuses(limited, 15) + statuses(other, 15)
            assert told.count(200) <= 20
            assert 429 in told
            assert "not shared" not in other.said() + metrics.said()


def test_a_key_is_added_used_and_revoked_while_the_server_runs(limited: Server) -> None:
    code, said = keys(limited.data_dir, "add", "--name", "alice", "--tier=growth")
    assert code == 0
    key, _, rest = said.partition("\n")
    assert "cannot be shown again" in rest
    assert keys(limited.data_dir, "add", "--name=alice") == (
        1,
        "icefall: there is a key named alice already: revoke it first, or take another name\n",
    )
    for header in ("x-service-api-key", "x-glacier-api-key"):
        reply = get(limited, key, header)
        assert (reply.status, reply.header("ratelimit-limit")) == (200, "14000")
    assert get(limited, key[:-1]).status == 401
    code, listed = keys(limited.data_dir, "list")
    assert (code, "alice" in listed, "growth" in listed, key in listed) == (0, True, True, False)
    assert keys(limited.data_dir, "revoke", "alice") == (0, "The key of alice is revoked.\n")
    reply = get(limited, key)
    assert (reply.status, reply.json()["error"]) == (403, "Forbidden")
    assert keys(limited.data_dir, "revoke", "alice") == (1, "icefall: there is no key named alice\n")


def test_a_day_can_be_spent_too_and_tiers_can_be_added(limited: Server) -> None:
    config = f"--config-file={limited.data_dir.parent / 'icefall.toml'}"
    code, said = keys(limited.data_dir, "add", "--name=bob", "--tier=small-days", config)
    assert code == 0, said
    key = said.partition("\n")[0]
    assert [get(limited, key).status for _ in range(8)] == [200] * 7 + [429]
    reply = get(limited, key)
    assert (reply.header("ratelimit-limit"), reply.header("ratelimit-remaining")) == (str(7 * WEIGHT), "0")
    assert 0 < int(reply.header("retry-after") or 0) <= 86_400
    assert keys(limited.data_dir, "add", "--name=eve", "--tier=none", config) == (
        1,
        "icefall: --tier must be one of free, base, growth, pro, small-days\n",
    )


def test_keys_can_be_required(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    key = keys(data_dir, "add", "--name=first")[1].partition("\n")[0]  # before there is a server
    with serving("data", tmp_path, "--api-keys-required") as server:
        reply = get(server)
        assert (reply.status, reply.json()["error"]) == (401, "Unauthorized")
        assert get(server, key).json() == OK
        for path in ("/docs", "/openapi.json"):
            assert server.ask("GET", path, listener="data").status == 200
        assert server.ask("GET", "/nothing", listener="data").status == 404


def test_a_preflight_may_ask_for_every_header_that_clients_send(limited: Server) -> None:
    asked = "x-service-api-key, x-glacier-api-key, x-app-component"
    headers = {
        "Origin": "https://wallet.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": asked,
    }
    reply = limited.ask("OPTIONS", CHAINS, headers=headers, listener="data")
    assert reply.status == 200
    assert (reply.header("access-control-allow-headers") or "").lower() == asked
    reply = get(limited, "ice_nonsense")
    assert reply.status == 401
    told = limited.ask("GET", CHAINS, headers={"Origin": "https://wallet.example"}, listener="data")
    assert "ratelimit-remaining" in (told.header("access-control-expose-headers") or "")


def test_without_an_owner_every_worker_grants_its_share(tmp_path: Path) -> None:
    (tmp_path / "icefall.toml").write_text(BUDGETS)
    run = tmp_path / "data" / "run"
    run.mkdir(parents=True)
    lock = StoreLock(run / "limits.lock")  # somebody who owns the budgets and does not answer
    try:
        with serving("data", tmp_path, "--rate-limits=on", "--http-workers=2", cwd=tmp_path) as server:
            await_time(20)
            told = statuses(server, 60)
            assert set(told) == {200, 429}
            assert 10 <= told.count(200) <= 20
            assert 1 <= server.said().count("the rate limits are not shared") <= 2  # once a worker
    finally:
        lock.release()


def test_behind_an_engine_the_engine_owns_the_budgets(tmp_path: Path) -> None:
    (tmp_path / "icefall.toml").write_text(BUDGETS)
    with serving("up", tmp_path, "--rate-limits=on", "--http-workers=2", cwd=tmp_path) as server:
        owner = (server.data_dir / "run" / "limits.lock").read_text().strip()
        assert owner == str(server.told["enginePid"])
        await_time(20)
        assert statuses(server, 40) == [200] * 20 + [429] * 20
        assert statuses(server, 20, "metrics") == [200] * 10 + [429] * 10
        assert server.ask("GET", "/ext/health/liveness").header("ratelimit-limit") is None
        assert "not shared" not in server.said()
