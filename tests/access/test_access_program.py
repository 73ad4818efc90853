"""Keys and limits of the real program: `icefall keys` next to running servers, one budget across processes."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from tests.forked import run_program
from tests.server import Reply, Server, serving

from icefall.access.budgets import MINUTE_S
from icefall.api.http.row import DATA, Rest
from icefall.api.table import rows_of
from icefall.db.disk import StoreLock

CHAINS = "/v1/chains"
LIKELY_S = 6.0  # that counting takes
T = TypeVar("T")
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
    """`icefall keys ...`: exit code and output."""
    done = run_program("keys", *words, f"--data-dir={data_dir}")
    return done.returncode, done.stdout + done.stderr


def get(server: Server, key: str | None = None, header: str = "x-service-api-key", listener: str = "data") -> Reply:
    path = CHAINS if listener == "data" else "/docs"
    return server.ask("GET", path, headers={header: key} if key else None, listener=listener)


def in_one_minute(count: Callable[[], T]) -> T:
    """What `count` returns, repeated until no minute ended meanwhile: a new minute has a new budget."""
    while True:
        minute = _whole_minute()
        counted = count()
        if time.time() // MINUTE_S == minute:
            return counted
        _next_minute()


def _whole_minute() -> int:
    """The current minute, or the next one if this one is nearly over."""
    if MINUTE_S - time.time() % MINUTE_S < LIKELY_S:
        _next_minute()
    return int(time.time() // MINUTE_S)


def _next_minute() -> None:
    time.sleep(MINUTE_S - time.time() % MINUTE_S + 0.1)


def statuses(server: Server, count: int, listener: str = "data") -> list[int]:
    with ThreadPoolExecutor(4) as pool:  # connections spread over the workers
        return sorted(reply.status for reply in pool.map(lambda _: get(server, listener=listener), range(count)))


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("limited")
    (directory / "icefall.toml").write_text(BUDGETS)
    with serving("data", directory, "--rate-limits=on", "--http-workers=2", cwd=directory) as server:
        yield server


def test_loopback_callers_are_not_limited(tmp_path: Path) -> None:
    (tmp_path / "icefall.toml").write_text(BUDGETS)
    with serving("data", tmp_path, cwd=tmp_path) as server:
        reply = get(server)
        assert (reply.status, reply.json()) == (200, OK)
        assert reply.header("ratelimit-limit") is None
        assert statuses(server, 60) == [200] * 60


def test_one_budget_for_all_workers_and_then_429(limited: Server) -> None:
    counted, reply = in_one_minute(lambda: (statuses(limited, 50), get(limited)))
    assert counted == [200] * 20 + [429] * 30
    assert reply.status == 429
    assert reply.header("content-type") == "application/json; charset=utf-8"
    assert list(reply.json()) == ["message", "statusCode", "error"]
    assert reply.header("ratelimit-policy") == f"{20 * WEIGHT};w=60, 100000;w=86400"
    assert (reply.header("ratelimit-limit"), reply.header("ratelimit-remaining")) == (str(20 * WEIGHT), "0")
    assert reply.header("ratelimit-reset") == reply.header("retry-after")
    assert 0 < int(reply.header("retry-after") or 0) <= 60
    assert "rate limits not shared" not in limited.output()


def test_another_program_on_the_same_data_shares_the_budget(limited: Server) -> None:
    settings = ("--rate-limits=on", f"--config-file={limited.data_dir.parent / 'icefall.toml'}")
    with serving("metrics", limited.data_dir.parent, *settings) as metrics:
        counted, reply = in_one_minute(lambda: (statuses(metrics, 30, "metrics"), get(metrics, listener="metrics")))
        assert counted == [200] * 10 + [429] * 20
        assert reply.json()["message"][0].startswith("the budget of 10 units per minute")
        with serving("data", limited.data_dir.parent, *settings) as other:
            both = in_one_minute(lambda: statuses(limited, 15) + statuses(other, 15))
            assert both.count(200) <= 20
            assert 429 in both
            assert "not shared" not in other.output() + metrics.output()


def test_a_key_is_added_used_and_revoked_while_the_server_runs(limited: Server) -> None:
    code, output = keys(limited.data_dir, "add", "--name", "alice", "--tier=growth")
    assert code == 0
    key, _, rest = output.partition("\n")
    assert "shown only this once" in rest
    assert keys(limited.data_dir, "add", "--name=alice") == (
        1,
        "icefall: there is a key named alice already: revoke it first, or choose another name\n",
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
    assert keys(limited.data_dir, "revoke", "alice") == (1, "icefall: the key of alice is revoked already\n")
    assert keys(limited.data_dir, "revoke", "alicia") == (1, "icefall: there is no key named alicia\n")


def test_a_day_budget_runs_out_and_tiers_can_be_configured(limited: Server) -> None:
    config = f"--config-file={limited.data_dir.parent / 'icefall.toml'}"
    code, output = keys(limited.data_dir, "add", "--name=bob", "--tier=small-days", config)
    assert code == 0, output
    key = output.partition("\n")[0]
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


def test_a_preflight_allows_every_header_that_clients_send(limited: Server) -> None:
    requested = "x-service-api-key, x-glacier-api-key, x-app-component"
    headers = {
        "Origin": "https://wallet.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": requested,
    }
    reply = limited.ask("OPTIONS", CHAINS, headers=headers, listener="data")
    assert reply.status == 200
    assert (reply.header("access-control-allow-headers") or "").lower() == requested
    reply = get(limited, "ice_nonsense")
    assert reply.status == 401
    reply = limited.ask("GET", CHAINS, headers={"Origin": "https://wallet.example"}, listener="data")
    assert "ratelimit-remaining" in (reply.header("access-control-expose-headers") or "")


def test_without_an_owner_every_worker_grants_its_share(tmp_path: Path) -> None:
    (tmp_path / "icefall.toml").write_text(BUDGETS)
    run = tmp_path / "data" / "run"
    run.mkdir(parents=True)
    lock = StoreLock(run / "limits.lock")  # an owner that does not answer
    try:
        with serving("data", tmp_path, "--rate-limits=on", "--http-workers=2", cwd=tmp_path) as server:
            counted = in_one_minute(lambda: statuses(server, 60))
            assert set(counted) == {200, 429}
            assert 10 <= counted.count(200) <= 20
            assert 1 <= server.output().count("rate limits not shared") <= 2  # once per worker
    finally:
        lock.release()


@pytest.mark.parametrize("verb", ["up", "data"])
def test_once_it_is_up_the_limits_hold(verb: str, tmp_path: Path) -> None:
    (tmp_path / "icefall.toml").write_text(BUDGETS)
    run = tmp_path / "data" / "run"
    run.mkdir(parents=True)
    lock = StoreLock(run / "limits.lock")  # of a program that is about to end
    released = threading.Timer(1.0, lock.release)
    released.start()
    with serving(verb, tmp_path, "--rate-limits=on", "--http-workers=2", cwd=tmp_path, ready=False) as server:
        assert released.finished.is_set()
        assert in_one_minute(lambda: statuses(server, 40)) == [200] * 20 + [429] * 20
        assert "not shared" not in server.output()


def locking(path: Path) -> list[int]:
    """The processes that hold a lock on a file."""
    inode = str(path.stat().st_ino)
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" not in line]
    return [int(lock[4]) for lock in locks if lock[5].split(":")[2] == inode]


def test_behind_an_engine_the_engine_owns_the_budgets(tmp_path: Path) -> None:
    (tmp_path / "icefall.toml").write_text(BUDGETS)
    with serving("up", tmp_path, "--rate-limits=on", "--http-workers=2", cwd=tmp_path) as server:
        assert locking(server.data_dir / "run" / "limits.lock") == [server.process_info["enginePid"]]
        assert in_one_minute(lambda: statuses(server, 40)) == [200] * 20 + [429] * 20
        assert in_one_minute(lambda: statuses(server, 20, "metrics")) == [200] * 10 + [429] * 10
        assert server.ask("GET", "/ext/health/liveness").header("ratelimit-limit") is None
        assert "not shared" not in server.output()
