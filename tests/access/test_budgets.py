"""Budgets: the arithmetic, leases of one budget by several workers, and workers without an owner."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import LIMIT_S

from icefall.access import budget_leases
from icefall.access.budget_leases import BudgetLeases
from icefall.access.budget_server import budget_commands, budget_socket, serve_budgets
from icefall.access.budgets import (
    DAY_S,
    MINUTE_S,
    TIERS,
    Budgets,
    Grant,
    Tier,
    key_tiers,
    limits_are_on,
    tiers_with,
)
from icefall.compose.stores import Stores
from icefall.config.docs import settings_markdown
from icefall.errors import Unavailable
from icefall.ipc.socket import SocketClient, SocketServer
from icefall.observe.log import Logs, open_logs, quiet

NOW = 1_800_000_000 // DAY_S * DAY_S  # the first second of a day
TIER = Tier("t", 1000, 5000)


class Clock:
    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return float(self.now)


# -- the arithmetic ------------------------------------------------------------------------------------------------


def test_the_built_in_tiers_are_those_of_the_hosted_service() -> None:
    assert {tier.name: tier[1:] for tier in TIERS} == {
        "unauthenticated": (6_000, 1_200_000),
        "free": (8_000, 2_000_000),
        "base": (10_000, 3_750_000),
        "growth": (14_000, 11_200_000),
        "pro": (20_000, 25_000_000),
        "metrics": (8_000, 1_200_000),
    }
    page = settings_markdown().replace("\n", " ")
    for tier in TIERS:
        assert f"{tier.per_minute:,} and {tier.per_day:,}" in page
        assert f"`{tier.name}`" in page


def test_configured_tiers_replace_and_extend_the_built_in_ones() -> None:
    tiers = tiers_with([Tier("free", 1, 2), Tier("ours", 3, 4)])
    assert (tiers["free"], tiers["ours"], tiers["pro"].per_minute) == (("free", 1, 2), ("ours", 3, 4), 20_000)
    assert key_tiers(tiers) == ["free", "base", "growth", "pro", "ours"]


@pytest.mark.parametrize(
    ("mode", "host", "on"),
    [
        ("auto", "127.0.0.1", False),
        ("auto", "127.8.8.8", False),
        ("auto", "::1", False),
        ("auto", "localhost", False),
        ("auto", "", True),
        ("auto", "0.0.0.0", True),
        ("auto", "::", True),
        ("auto", "node.example", True),
        ("on", "127.0.0.1", True),
        ("off", "0.0.0.0", False),
    ],
)
def test_limits_are_off_on_loopback_unless_switched_on(mode: str, host: str, on: bool) -> None:
    assert limits_are_on(mode, host) == on


def test_a_lease_is_a_slice_or_the_need_or_the_rest() -> None:
    budgets = Budgets()
    assert budgets.lease("a", TIER, 1, NOW) == Grant(10, 990, 4990)
    assert budgets.lease("a", TIER, 200, NOW) == Grant(200, 790, 4790)
    assert budgets.lease("a", TIER, 785, NOW) == Grant(785, 5, 4005)
    assert budgets.lease("a", TIER, 6, NOW) == Grant(0, 5, 4005)  # too little for this call, enough for another
    assert budgets.lease("a", TIER, 1, NOW) == Grant(5, 0, 4000)
    assert budgets.lease("a", TIER, 1, NOW + 59) == Grant(0, 0, 4000)
    assert budgets.lease("b", TIER, 1, NOW) == Grant(10, 990, 4990)
    assert budgets.lease("a", TIER, 1, NOW + 60) == Grant(10, 990, 3990)


def test_a_day_ends_at_midnight() -> None:
    budgets = Budgets()
    for minute in range(5):
        assert budgets.lease("a", TIER, 1000, NOW + 60 * minute).units == 1000
    assert budgets.lease("a", TIER, 1, NOW + DAY_S - 1) == Grant(0, 1000, 0)
    assert budgets.lease("a", TIER, 1, NOW + DAY_S) == Grant(10, 990, 4990)


def test_unspent_units_return_to_the_day() -> None:
    budgets = Budgets()
    budgets.lease("a", TIER, 1000, NOW)
    budgets.give_back("a", 400, NOW // MINUTE_S)
    budgets.give_back("unknown", 400, NOW // MINUTE_S)
    assert budgets.lease("a", TIER, 1, NOW + 60) == Grant(10, 990, 4390)
    budgets.lease("a", TIER, 1, NOW + DAY_S)
    budgets.give_back("a", 400, NOW // MINUTE_S)  # of an ended day
    assert budgets.lease("a", TIER, 1, NOW + DAY_S) == Grant(10, 980, 4980)


def test_a_clock_that_is_set_back_does_not_block_callers() -> None:
    budgets = Budgets()
    budgets.lease("a", TIER, 1000, NOW + DAY_S)
    assert budgets.lease("a", TIER, 1, NOW).units == 10


def test_the_number_of_callers_is_bounded() -> None:
    budgets = Budgets(callers_max=100)
    for number in range(1000):
        budgets.lease(f"{number}", TIER, 1000, NOW + number // 10)
    assert len(budgets._spent) <= 100
    assert budgets.lease("999", TIER, 1, NOW + 99).units == 0  # recent callers are kept
    assert budgets.lease("0", TIER, 1, NOW + 99).units == 10


@given(st.lists(st.tuples(st.integers(0, 3 * MINUTE_S), st.integers(1, 50)), max_size=60))
def test_no_minute_and_no_day_grants_more_than_its_budget(calls: list[tuple[int, int]]) -> None:
    tier, budgets = Tier("t", 100, 220), Budgets()
    granted: dict[int, int] = {}
    for second, need in sorted(calls):
        grant = budgets.lease("a", tier, need, NOW + second)
        assert grant.units == 0 or grant.units >= need
        granted[second // MINUTE_S] = granted.get(second // MINUTE_S, 0) + grant.units
    assert all(units <= 100 for units in granted.values())
    assert sum(granted.values()) <= 220


# -- leases of workers ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def owner(clock: Clock) -> AsyncIterator[tuple[Callable[[], BudgetLeases], Path]]:
    """A real owner on a real socket, and a factory of workers. No lease times out, however busy the machine is."""
    links: list[SocketClient] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "limits.sock"
        server = SocketServer(path, budget_commands(Budgets(), clock), lambda: lambda: None)
        await server.start()

        def worker() -> BudgetLeases:
            links.append(SocketClient(path, "the owner of the budgets"))
            return BudgetLeases(links[-1].call, 2, quiet(), clock)

        timeout_s, budget_leases.LEASE_TIMEOUT_S = budget_leases.LEASE_TIMEOUT_S, LIMIT_S
        try:
            yield worker, path
        finally:
            budget_leases.LEASE_TIMEOUT_S = timeout_s
            for link in links:
                await link.close()
            await server.stop()


async def spend(worker: BudgetLeases, tier: Tier, units: int, most: int = 10_000) -> int:
    """The number of calls of that weight before one is refused."""
    calls = 0
    while calls < most and (await worker.take("a", tier, units)).allowed:
        calls += 1
    return calls


def test_several_workers_share_one_budget() -> None:
    async def scene() -> None:
        clock = Clock()
        async with owner(clock) as (worker, _):
            one, two = worker(), worker()
            first = await asyncio.gather(*(one.take("a", TIER, 1) for _ in range(700)))
            second = await asyncio.gather(*(two.take("a", TIER, 1) for _ in range(700)))
            assert sum(taken.allowed for taken in (*first, *second)) == 1000
            refused = second[-1]
            assert refused == (False, 1000, 0, 60, "minute")
            clock.now += 17
            assert (await one.take("a", TIER, 1)).reset_s == 43
            clock.now += 43
            assert await spend(two, TIER, 1) == 1000

    asyncio.run(scene())


def test_calls_of_many_weights_never_spend_more_than_there_is() -> None:
    async def scene() -> None:
        async with owner(Clock()) as (worker, _):
            workers, spent = [worker(), worker(), worker()], 0
            for number in range(300):
                units = (1, 10, 20, 50)[number % 4]
                spent += units * (await workers[number % 3].take("a", TIER, units)).allowed
            assert 1000 - 3 * TIER.slice <= spent <= 1000

    asyncio.run(scene())


def test_a_day_budget_runs_out_and_unspent_units_return_to_it() -> None:
    async def scene() -> None:
        clock, tier = Clock(), Tier("t", 1000, 1500)
        async with owner(clock) as (worker, _):
            one = worker()
            assert await spend(one, tier, 1, most=5) == 5  # of a slice of ten
            clock.now += MINUTE_S
            assert (await one.take("a", tier, 1)).allowed
            await asyncio.gather(*one._returning)
            clock.now += MINUTE_S
            assert (await one.take("a", tier, 1)).allowed
            await asyncio.gather(*one._returning)
            assert await spend(one, tier, 1) == 999
            clock.now += MINUTE_S
            assert await spend(one, tier, 1) == 1500 - 5 - 1 - 1000
            refused = await one.take("a", tier, 1)
            assert refused == (False, 1500, 0, DAY_S - 3 * MINUTE_S, "day")

    asyncio.run(scene())


def test_the_remaining_units_are_reported() -> None:
    async def scene() -> None:
        async with owner(Clock()) as (worker, _):
            one = worker()
            assert await one.take("a", TIER, 20) == (True, 1000, 980, 60, "minute")
            assert await one.take("a", TIER, 20) == (True, 1000, 960, 60, "minute")
            assert await one.take("b", TIER, 1) == (True, 1000, 999, 60, "minute")
            assert await one.take("b", Tier("t", 1000, 500), 1) == (True, 1000, 998, 60, "minute")

    asyncio.run(scene())


def test_a_spent_budget_is_refused_without_calling_the_owner() -> None:
    calls: list[str] = []
    budgets = Budgets()

    async def call_owner(name: str, **params: Any) -> Any:
        calls.append(name)
        return budget_commands(budgets, Clock())[name](**params)

    async def scene() -> None:
        one = BudgetLeases(call_owner, 1, quiet(), Clock())
        assert await spend(one, Tier("t", 5, 100), 1) == 5
        before = len(calls)
        for _ in range(50):
            assert not (await one.take("a", Tier("t", 5, 100), 1)).allowed
        assert len(calls) == before

    asyncio.run(scene())


# -- without an owner ----------------------------------------------------------------------------------------------


def test_without_an_owner_each_worker_grants_its_share_and_warns_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs: Logs = open_logs("worker", ["main"], tmp_path, ("INFO", "OFF"), "json")

    async def scene() -> None:
        link = SocketClient(tmp_path / "missing.sock", "the owner of the budgets")
        workers = [BudgetLeases(link.call, 2, logs["main"], Clock()) for _ in range(2)]
        assert [await spend(one, TIER, 1) for one in workers] == [500, 500]
        monkeypatch.setattr(budget_leases, "OWNER_RETRY_S", 0.0)
        workers[0]._owner_retry_at = 0.0
        assert not (await workers[0].take("a", TIER, 1)).allowed
        assert (await workers[0].take("b", TIER, 1)).allowed

    asyncio.run(scene())
    assert (tmp_path / "main.log").read_text().count("rate limits not shared") == 1  # the second is a repeated line


def test_an_owner_that_hangs_delays_one_call_and_fails_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_leases, "LEASE_TIMEOUT_S", 0.05)
    calls: list[str] = []

    async def hang(name: str, **_: Any) -> Any:
        calls.append(name)
        await asyncio.Event().wait()

    async def scene() -> None:
        one = BudgetLeases(hang, 1, quiet(), Clock())
        taken = await asyncio.gather(*(one.take("a", TIER, 1) for _ in range(100)))
        assert all(one.allowed for one in taken)
        assert calls == ["lease"]

    asyncio.run(scene())


def test_an_owner_that_returns_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_leases, "OWNER_RETRY_S", 0.0)
    budgets, up, clock = Budgets(), [False], Clock()

    async def call_owner(name: str, **params: Any) -> Any:
        if not up[0]:
            raise Unavailable("no owner")
        return budget_commands(budgets, clock)[name](**params)

    async def scene() -> None:
        one = BudgetLeases(call_owner, 2, quiet(), clock)
        assert await spend(one, TIER, 1) == 500
        up[0] = True
        clock.now += MINUTE_S
        assert await spend(one, TIER, 1) == 1000

    asyncio.run(scene())


def test_an_owner_that_returns_within_the_minute_is_asked_by_a_worker_whose_share_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget_leases, "OWNER_RETRY_S", 0.0)
    budgets, up, clock = Budgets(), [False], Clock()

    async def call_owner(name: str, **params: Any) -> Any:
        if not up[0]:
            raise Unavailable("no owner")
        return budget_commands(budgets, clock)[name](**params)

    async def scene() -> None:
        one = BudgetLeases(call_owner, 2, quiet(), clock)
        assert await spend(one, TIER, 1) == 500
        assert not (await one.take("a", TIER, 1)).allowed
        up[0] = True
        assert await spend(one, TIER, 1) == 1000
        assert not (await one.take("a", TIER, 1)).allowed

    asyncio.run(scene())


def test_a_second_process_takes_over_the_budgets(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()

    async def scene() -> None:
        first, second = (asyncio.create_task(serve_budgets(tmp_path, Stores(tmp_path).access_store)) for _ in range(2))
        link = SocketClient(budget_socket(tmp_path), "the owner of the budgets")
        await _until_leased(link, 10)
        assert not second.done()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await _until_leased(link, 10, left=4980)  # with the budgets as they were
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        await link.close()

    asyncio.run(scene())


async def _until_leased(link: SocketClient, units: int, left: int = 4990) -> None:
    """`left` of the day: a minute may end meanwhile."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            granted = await link.call("lease", caller="a", per_minute=1000, per_day=5000, need=1)
        except Unavailable:
            await asyncio.sleep(0.05)
        else:
            assert (granted[0], granted[2]) == (units, left)
            return
    raise AssertionError("no process owns the budgets")
