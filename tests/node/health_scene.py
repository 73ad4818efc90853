"""A node's store with the runner of health checks, for tests of either."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.store.opened import make_empty
from tests.waiting import LIMIT_S

from icefall.db.sqlite import SqliteStore
from icefall.node.health.runner import HEALTH, Check, Health, Unhealthy
from icefall.node.store import PACKAGE, NodeReader
from icefall.observe.log import LevelPage, Log

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

    async def answers(self, report: str = HEALTH) -> dict[str, dict[str, Any]]:
        return {r.name: msgspec.json.decode(r.answer) for r in await NodeReader(self.store).health_results(report)}

    async def passed(self, report: str = HEALTH) -> dict[str, bool]:
        return {result.name: result.passed for result in await NodeReader(self.store).health_results(report)}

    async def once(self, check: Check) -> dict[str, Any]:
        await self.health.run_once([check])
        return (await self.answers(check.report))[check.name]

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


def player(folder: Path) -> Play:
    """Runs a scenario on a scene in this folder."""

    def run(scenario: Scenario, **settings: int) -> None:
        async def body() -> None:
            scene = Scene(folder, **settings)
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
