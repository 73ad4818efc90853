"""Health: when checks run, what is stored of them, and what each of this node's own checks says."""

import asyncio
import io
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.store.opened import make_empty
from tests.waiting import LIMIT_S

from icefall.db import disk
from icefall.db.engine import StoreError
from icefall.db.sqlite import SqliteStore
from icefall.node.chains import primary_chains
from icefall.node.health.checks import (
    ChainCheck,
    EngineTraffic,
    FollowStats,
    Thresholds,
    bootstrapped,
    database,
    diskspace,
    network,
    node_checks,
    router,
    shutting_down,
)
from icefall.node.health.runner import HEALTH, NOT_YET_RUN, READINESS, Check, Freshness, Health, Unhealthy
from icefall.node.health.unstored import UnstoredFailure, UnstoredFailureReader
from icefall.node.store import PACKAGE, NodeReader
from icefall.observe.log import LevelPage, Log
from icefall.wire.ids import PRIMARY_NETWORK, id_text

HOUR_NS, SECOND_NS, MS_NS = 3600 * 10**9, 10**9, 10**6


class Scene:
    """A store, the checks' runner, and what was logged."""

    def __init__(self, folder: Path, period_ns: int = HOUR_NS, limit_ns: int = SECOND_NS) -> None:
        make_empty(folder / "node.sqlite", PACKAGE)
        self.store = SqliteStore(folder / "node.sqlite", PACKAGE)
        self.terminal = io.StringIO()
        page = LevelPage.private(["main"])
        page.put("main", "OFF", "VERBO")
        log = Log("main", "engine", page, None, self.terminal, as_json=True)
        self.health = Health(self.store, log, period_ns, limit_ns)
        self.checks: list[Check] = []

    async def add(self, name: str, run: Callable[[], Awaitable[Any]], **rest: Any) -> Check:
        check = Check(name, run, **rest)
        self.checks.append(check)
        await self.health.register(check)
        return check

    async def answers(self, kind: str = HEALTH) -> dict[str, dict[str, Any]]:
        return {r.name: msgspec.json.decode(r.answer) for r in await NodeReader(self.store).health_results(kind)}

    async def passed(self, kind: str = HEALTH) -> dict[str, bool]:
        return {result.name: result.passed for result in await NodeReader(self.store).health_results(kind)}

    async def once(self, check: Check) -> dict[str, Any]:
        await self.health.run_once([check])
        return (await self.answers(check.kind))[check.name]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.health.run_forever())
        yield
        assert not task.done()
        task.cancel()

    async def until(self, truth: Callable[[], Coroutine[Any, Any, bool]], limit_s: float = LIMIT_S) -> None:
        async with asyncio.timeout(limit_s):
            while not await truth():
                await asyncio.sleep(0.005)


Scenario = Callable[[Scene], Coroutine[Any, Any, None]]
Play = Callable[..., None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run a scenario on a bench of its own."""

    def run(scenario: Scenario, **settings: int) -> None:
        async def body() -> None:
            scene = Scene(tmp_path, **settings)
            try:
                await scenario(scene)
            finally:
                scene.store.close()

        asyncio.run(body())

    return run


class Switch:
    """A check that passes or fails as set, and counts its runs."""

    def __init__(self, error: str = "") -> None:
        self.error = error
        self.runs = 0

    async def run(self) -> Any:
        self.runs += 1
        if self.error:
            raise Unhealthy(self.error, {"seen": self.runs})
        return {"seen": self.runs}


async def fine() -> Any:
    return None


# -- when they run -----------------------------------------------------------------------------------------------


def test_a_registered_check_has_not_yet_run(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.add("a", fine)
        assert await scene.passed() == {"a": False}
        (result,) = await NodeReader(scene.store).health_results(HEALTH)
        assert bytes(result.answer) == NOT_YET_RUN
        assert NOT_YET_RUN == b'{"error":"not yet run","timestamp":"0001-01-01T00:00:00Z","duration":0}'

    play(scenario)


def test_results_of_an_earlier_run_are_deleted(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        check = await scene.add("a", fine)
        await scene.health.run_once([check])
        await scene.health.begin()
        assert await scene.answers() == {}

    play(scenario)


def test_checks_run_when_registered_not_a_period_later(play: Play) -> None:
    first, second = Switch(), Switch()

    async def scenario(scene: Scene) -> None:
        await scene.add("first", first.run)
        async with scene.running():

            async def first_done() -> bool:
                return (await scene.passed())["first"]

            await scene.until(first_done)
            await scene.add("second", second.run)

            async def second_done() -> bool:
                return (await scene.passed())["second"]

            await scene.until(second_done)
        assert (first.runs, second.runs) == (1, 1)

    play(scenario, period_ns=HOUR_NS)


def test_checks_run_every_period(play: Play) -> None:
    switch = Switch()

    async def scenario(scene: Scene) -> None:
        await scene.add("a", switch.run)
        async with scene.running():

            async def often() -> bool:
                return switch.runs >= 4

            await scene.until(often)
            stamp = (await scene.answers())["a"]["timestamp"]

            async def moved() -> bool:
                return bool((await scene.answers())["a"]["timestamp"] != stamp)

            await scene.until(moved)

    play(scenario, period_ns=20 * MS_NS)


def test_checks_run_at_the_same_time(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        barrier = asyncio.Barrier(3)

        async def meet() -> Any:
            await barrier.wait()

        for name in "abc":
            await scene.add(name, meet)
        await scene.health.run_once(scene.checks)
        assert await scene.passed() == {"a": True, "b": True, "c": True}

    play(scenario)


# -- what is stored ----------------------------------------------------------------------------------------------


def test_a_passing_check_has_message_time_and_duration_and_no_more(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        answer = await scene.once(await scene.add("a", Switch().run))
        assert list(answer) == ["message", "timestamp", "duration"]
        assert answer["message"] == {"seen": 1}
        assert 0 < answer["duration"] < SECOND_NS
        assert answer["timestamp"].startswith("20")
        silent = await scene.once(await scene.add("silent", fine))
        assert list(silent) == ["timestamp", "duration"]

    play(scenario)


def test_failures_are_counted_from_the_first_and_vanish_with_recovery(play: Play) -> None:
    switch = Switch("broken")

    async def scenario(scene: Scene) -> None:
        check = await scene.add("a", switch.run)
        first = await scene.once(check)
        keys = ["message", "error", "timestamp", "duration", "contiguousFailures", "timeOfFirstFailure"]
        assert list(first) == keys
        assert (first["error"], first["message"]) == ("broken", {"seen": 1})
        assert first["timeOfFirstFailure"] == first["timestamp"]
        second, third = await scene.once(check), await scene.once(check)
        assert [a["contiguousFailures"] for a in (first, second, third)] == [1, 2, 3]
        assert third["timeOfFirstFailure"] == first["timestamp"] != third["timestamp"]
        assert await scene.passed() == {"a": False}
        switch.error = ""
        assert list(await scene.once(check)) == ["message", "timestamp", "duration"]
        assert await scene.passed() == {"a": True}
        switch.error = "again"
        again = await scene.once(check)
        assert again["contiguousFailures"] == 1
        assert again["timeOfFirstFailure"] == again["timestamp"]
        assert scene.terminal.getvalue().count("check failed") == 2  # once a spell, not once a run

    play(scenario)


def test_a_failure_right_after_the_start_is_reported_but_no_warning(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        for name, seconds in (("starts", 3600.0), ("started", 0.0)):
            check = await scene.add(name, Switch("not yet").run, starting_s=seconds)
            assert (await scene.once(check))["error"] == "not yet"
        assert await scene.passed() == {"started": False, "starts": False}
        assert [name in scene.terminal.getvalue() for name in ("starts", "started")] == [False, True]

    play(scenario)


def test_readiness_once_passed_stays_passed(play: Play) -> None:
    switch = Switch("starting")

    async def scenario(scene: Scene) -> None:
        latched = await scene.add("bootstrapped", switch.run, kind=READINESS, latches=True)
        plain = await scene.add("bootstrapped", switch.run)  # the same name among the health checks is another
        assert (await scene.once(latched))["error"] == "starting"
        switch.error = ""
        await scene.once(latched)
        switch.error = "lost"
        before = (await scene.answers(READINESS))["bootstrapped"]["timestamp"]
        after = await scene.once(latched)
        assert "error" not in after
        assert "contiguousFailures" not in after
        assert after["timestamp"] != before
        assert await scene.passed(READINESS) == {"bootstrapped": True}
        assert (await scene.once(plain))["error"] == "lost"

    play(scenario)


def test_any_exception_is_a_failure_with_its_name(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        async def bug() -> Any:
            raise KeyError("x")

        assert (await scene.once(await scene.add("a", bug)))["error"] == "KeyError: 'x'"

    play(scenario)


def test_tags_and_order_are_stored(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        for name in ("router", "X", "bootstrapped", "C", "é"):
            await scene.add(name, fine, tags=("subnet", "other") if name in "XC" else ())
        results = await NodeReader(scene.store).health_results(HEALTH)
        assert [result.name for result in results] == ["C", "X", "bootstrapped", "router", "é"]
        assert [result.tags for result in results] == [["subnet", "other"], ["subnet", "other"], [], [], []]

    play(scenario)


# -- checks that hang, stores that fail --------------------------------------------------------------------------


def test_a_hanging_check_is_given_up_and_the_others_never_notice(play: Play) -> None:
    ended: list[str] = []

    async def hang() -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def scenario(scene: Scene) -> None:
        await scene.add("hangs", hang)
        await scene.add("works", Switch().run)
        async with scene.running():

            async def works() -> bool:
                return (await scene.passed())["works"]

            await scene.until(works)

            async def reported() -> bool:
                return bool((await scene.answers())["hangs"]["error"] != "not yet run")

            await scene.until(reported)
        answer = (await scene.answers())["hangs"]
        assert answer["error"] == "the check did not finish within 50ms"
        assert answer["duration"] >= 50 * MS_NS
        assert answer["contiguousFailures"] == 1
        assert ended == ["cancelled"]

    play(scenario, limit_ns=50 * MS_NS)


def test_a_result_is_stored_while_another_check_hangs(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.add("hangs", asyncio.Event().wait)
        await scene.add("works", Switch().run)
        async with scene.running():

            async def works() -> bool:
                return (await scene.passed())["works"]

            await scene.until(works)
            assert (await scene.answers())["hangs"]["error"] == "not yet run"

    play(scenario, limit_ns=HOUR_NS)


def test_a_check_that_cannot_be_cancelled_is_not_started_twice(play: Play) -> None:
    began = 0
    free = asyncio.Event()

    async def stubborn() -> Any:
        nonlocal began
        began += 1
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        return "free"

    async def scenario(scene: Scene) -> None:
        check = await scene.add("a", stubborn)
        assert "did not finish within 50ms" in (await scene.once(check))["error"]
        assert (await scene.once(check))["error"] == "the check is still running since an earlier period"
        assert (await scene.once(check))["contiguousFailures"] == 3
        free.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (await scene.once(check))["message"] == "free"
        assert began == 2

    play(scenario, limit_ns=50 * MS_NS)


def test_a_store_that_fails_keeps_old_results_and_the_runner_alive(play: Play) -> None:
    switch = Switch()

    async def scenario(scene: Scene) -> None:
        check = await scene.add("a", switch.run)
        before = await scene.once(check)
        pages = scene.store._writer.execute("pragma page_count").fetchone()[0]
        scene.store._writer.execute(f"pragma max_page_count = {pages}")
        switch.error = "x" * 50_000
        assert await scene.once(check) == before
        assert "health results could not be stored" in scene.terminal.getvalue()
        scene.store._writer.execute("pragma max_page_count = 100000")
        assert (await scene.once(check))["contiguousFailures"] == 2

    play(scenario)


def test_workers_see_at_once_that_results_cannot_be_stored(play: Play, tmp_path: Path) -> None:
    fresh = Freshness(10**12, UnstoredFailureReader(tmp_path / "unstored"))
    assert fresh.stale_result(time.time_ns()) is None
    unstored = UnstoredFailure(tmp_path / "unstored")

    async def scenario(scene: Scene) -> None:
        scene.health._unstored = unstored
        check = await scene.add("a", Switch().run)
        await scene.once(check)
        assert fresh.stale_result(time.time_ns()) is None
        scene.store._writer.execute("pragma query_only = on")
        await scene.once(check)
        result = json.loads(fresh.stale_result(time.time_ns()) or b"")
        assert result["error"].startswith("health results could not be stored: the store failed: ")
        scene.store._writer.execute("pragma query_only = off")
        await scene.once(check)
        assert fresh.stale_result(time.time_ns()) is None

    play(scenario)


def test_an_unstored_failure_of_an_earlier_run_is_forgotten(tmp_path: Path) -> None:
    UnstoredFailure(tmp_path / "unstored").put(b"{}")
    assert UnstoredFailureReader(tmp_path / "unstored").read() == b"{}"
    UnstoredFailure(tmp_path / "unstored")
    assert UnstoredFailureReader(tmp_path / "unstored").read() is None


# -- this node's own checks --------------------------------------------------------------------------------------


def test_the_database_check_really_writes_and_reads(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        probe = "select value from probe where id = 1"
        await database(scene.store)
        first = await scene.store.rows(probe)
        await database(scene.store)
        assert await scene.store.rows(probe) != first
        check = await scene.add("database", lambda: database(scene.store))
        assert "error" not in await scene.once(check)
        scene.store._writer.execute("alter table probe rename to gone")
        assert (await scene.once(check))["error"] == "StoreError: the store failed: no such table: probe"
        scene.store._writer.execute("alter table gone rename to probe")
        assert "error" not in await scene.once(check)

    play(scenario)


def test_the_database_check_fails_when_writes_are_lost(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        scene.store._writer.execute("create trigger lose after insert on probe begin delete from probe; end")
        with pytest.raises(Unhealthy, match=r"^wrote \d+, read back \[\]$"):
            await database(scene.store)

    play(scenario)


def test_the_database_check_fails_when_nothing_can_be_written(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        scene.store._writer.execute("pragma query_only = on")
        with pytest.raises(StoreError, match="readonly"):
            await database(scene.store)

    play(scenario)


@pytest.mark.parametrize(
    ("free", "error"),
    [
        (1000, ""),
        (100, ""),
        (99, "remaining available disk space percentage (9%) is below warning threshold available space percentage "
             "(10%)"),
        (30, "remaining available disk space percentage (3%) is below warning threshold available space percentage "
             "(10%)"),
        (29, "remaining available disk space percentage (2%) is below minimum threshold available space percentage "
             "(3%)"),
        (0, "remaining available disk space percentage (0%) is below minimum threshold available space percentage "
            "(3%)"),
    ],
)  # fmt: skip
def test_disk_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, error: str) -> None:
    usage = SimpleNamespace(f_bavail=free, f_blocks=1000, f_frsize=4096)
    monkeypatch.setattr(disk, "os", SimpleNamespace(statvfs=lambda _: usage))
    message = {"availableDiskBytes": free * 4096, "availableDiskPercentage": free // 10}
    if error:
        with pytest.raises(Unhealthy) as caught:
            asyncio.run(diskspace(tmp_path, 10, 3))
        assert str(caught.value) == error
        assert caught.value.message == message
    else:
        assert asyncio.run(diskspace(tmp_path, 10, 3)) == message


def test_disk_space_of_the_real_disk(tmp_path: Path) -> None:
    message = asyncio.run(diskspace(tmp_path, 0, 0))
    usage = os.statvfs(tmp_path)
    assert message["availableDiskBytes"] == pytest.approx(usage.f_bavail * usage.f_frsize, rel=0.05)
    assert 0 <= message["availableDiskPercentage"] <= 100


def test_network_stands_alone() -> None:
    assert asyncio.run(network(None, 1)) == {"connectedPeers": 0, "sendFailRate": 0}


def test_router_counts_what_is_outstanding() -> None:
    now = 0
    traffic = EngineTraffic(lambda: now)
    assert asyncio.run(router(traffic, None, 2)) == {"longestRunningRequest": "0s", "outstandingRequests": 0}
    ends = [traffic.call() for _ in range(2)]
    now = 1_500_000_000
    assert asyncio.run(router(traffic, None, 2)) == {"longestRunningRequest": "1.5s", "outstandingRequests": 2}
    third = traffic.call()
    with pytest.raises(Unhealthy, match=r"^the router is not healthy reason: .* too high \(3 > 2\)$") as caught:
        asyncio.run(router(traffic, None, 2))
    assert caught.value.message == {"longestRunningRequest": "1.5s", "outstandingRequests": 3}
    now = 301 * SECOND_NS
    with pytest.raises(Unhealthy) as caught:
        asyncio.run(router(traffic, None, 2))
    assert str(caught.value) == (
        "the router is not healthy reason: number of outstanding requests too high (3 > 2), "
        "time for outstanding requests 5m1s > 5m0s"
    )
    for end in (*ends, third, third):  # ending twice is harmless
        end()
    assert traffic.outstanding() == (0, 0)


def statuses(*bootstrapping: str) -> list[ChainCheck]:
    chains = primary_chains(b"x" * 32, b"c" * 32, b"1" * 32, b"2" * 32, b"3" * 32)
    waits = FollowStats(bootstrapped=False, failure=None, details={"state": "bootstrapping"}, connected=True)
    return [ChainCheck(chain, None, (lambda: waits) if chain.name in bootstrapping else None) for chain in chains]


def test_bootstrapped_lists_the_subnets_that_wait() -> None:
    assert asyncio.run(bootstrapped(statuses())) == []
    chains = statuses("X", "C")
    with pytest.raises(Unhealthy, match=r"^subnets not bootstrapped$") as caught:
        asyncio.run(bootstrapped(chains))
    assert caught.value.message == [id_text(PRIMARY_NETWORK)]


def test_a_chains_message() -> None:
    status = statuses()[0]
    networking = {"disconnectedValidators": [], "percentConnected": 1}
    assert asyncio.run(status.check()) == {
        "engine": {
            "consensus": {
                "avgAcceptanceTime": "0s",
                "lastAcceptedHeight": 0,
                "lastAcceptedID": id_text(b"2" * 32),
                "longestProcessingBlock": "0s",
                "processingBlocks": 0,
            },
            "vm": None,
        },
        "networking": networking,
    }
    assert asyncio.run(statuses("P")[0].check()) == {
        "engine": {"consensus": {}, "vm": None},
        "networking": networking,
        "following": {"state": "bootstrapping"},
    }


def test_shutting_down_is_reported(play: Play) -> None:
    async def scenario(scene: Scene) -> None:
        check = shutting_down()
        await scene.health.register(check)
        answer = await scene.once(check)
        assert (answer["message"], answer["error"]) == ({"isShuttingDown": True}, "server shutting down")

    play(scenario)


def test_all_checks_of_a_node_pass_at_once(play: Play, tmp_path: Path) -> None:
    async def scenario(scene: Scene) -> None:
        limits = Thresholds(0, 0, 10)
        traffic = EngineTraffic(lambda: 0)
        for check in node_checks(statuses(), scene.store, tmp_path, limits, traffic):
            await scene.health.register(check)
            scene.checks.append(check)
        await scene.health.run_once(scene.checks)
        names = ["C", "P", "X", "bootstrapped", "database", "diskspace", "network", "router"]
        assert list(await scene.passed()) == names
        assert all((await scene.passed()).values())
        assert await scene.passed(READINESS) == {"bootstrapped": True}
        wait_for_upstreams = {check.name for check in scene.checks if check.starting_s}
        assert wait_for_upstreams == {"bootstrapped", "network"}
        tagged = [r.name for r in await NodeReader(scene.store).health_results(HEALTH) if r.tags]
        assert tagged == ["C", "P", "X"]

    play(scenario)
