"""Health: when checks run, and what is stored of them."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.node.health_scene import HOUR_NS, MS_NS, SECOND_NS, Play, Scene, Switch, fine, player

from icefall.node.health.runner import HEALTH, NOT_YET_RUN, READINESS, Freshness, UnstoredFailure, UnstoredFailureReader
from icefall.node.store import NodeReader


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return player(tmp_path)


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
        latched = await scene.add("bootstrapped", switch.run, report=READINESS, latches=True)
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
