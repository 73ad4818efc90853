"""Followers of X, P and C on replayed upstreams, with a clock that does not wait."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from tests.sync.memory_chains import CHAIN_IDS, Asset, Foreign, MemoryChain
from tests.upstream.fake_clock import FakeClock, PollingClock
from tests.upstream.replay import Replay, recorded
from tests.waiting import LIMIT_S
from tests.xchain.memory_state import MemoryState

from icefall.node.sync.follower import ContainerFollower
from icefall.node.sync.upstreams import NetworkIdentity, NodeUpstreams
from icefall.node.sync.verify import ChainLinks
from icefall.observe.log import LevelPage, Log
from icefall.upstream.client import Client, Limits, Retry
from icefall.upstream.node import UpstreamNode


def quiet_log(name: str = "main") -> Log:
    page = LevelPage.private([name])
    page.put(name, "OFF", "OFF")
    return Log(name, "engine", page, None, io.StringIO(), as_json=True)


class Chains:
    """What outlives a restart."""

    def __init__(self) -> None:
        self.state = MemoryState()
        self.x = Asset(self.state)
        self.p = Foreign("P", self.state)
        self.c = Foreign("C", self.state)

    def counts(self) -> tuple[int, int, int]:
        return self.x.count, self.p.count, self.c.count


def true_prefix(chains: Chains) -> bool:
    """Whether all that is stored is what really happened."""
    rows = recorded()
    return all(
        [offered.raw for offered in chain.accepted] == [row.raw for row in rows[chain.name][: chain.count]]
        for chain in (chains.x, chains.p, chains.c)
    )


class Scene:
    def __init__(self, chains: Chains, upstreams: NodeUpstreams, clock: FakeClock, run_max: int) -> None:
        self.chains = chains
        self.upstreams = upstreams
        self.clock = clock
        self._run_max = run_max
        self.p, self.c = self._follower(chains.p), self._follower(chains.c)
        self.x = self._follower(chains.x, self.p, self.c)
        self._tasks: list[asyncio.Task[None]] = []

    def _follower(self, chain: "MemoryChain", *imports_from: ContainerFollower) -> ContainerFollower:
        links = ChainLinks(chain.name, CHAIN_IDS["X"])
        assert isinstance(chain, (Asset, Foreign))
        log = quiet_log(chain.name)
        return ContainerFollower(chain, links, self.upstreams, log, run_max=self._run_max, imports_from=imports_from)

    def start(self, names: str = "XPC") -> None:
        for name in names:
            follower = {"X": self.x, "P": self.p, "C": self.c}[name]
            self._tasks.append(asyncio.create_task(follower.run()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        bugs = [end for end in ended if isinstance(end, Exception)]
        assert not bugs, bugs

    async def until(self, truth: Callable[[], bool], what: str = "") -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                while not truth():
                    for task in self._tasks:
                        if task.done():
                            task.result()
                    await asyncio.sleep(0.005)
        except TimeoutError:
            whys = [follower.why for follower in (self.x, self.p, self.c)]
            raise AssertionError(
                f"{what} never came: {self.chains.counts()} {whys} {self.x.waiting} {self.upstreams.failing()}"
            ) from None

    async def polls(self, replay: Replay, number: int = 6) -> None:
        """Let the followers look at the tip some more times."""
        seen = replay.asked("index.getLastAccepted") + number
        await self.until(lambda: replay.asked("index.getLastAccepted") >= seen, "polling")


@asynccontextmanager
async def following(
    *replays: Replay,
    chains: Chains | None = None,
    names: str = "XPC",
    run_max: int = 50,
    total_s: float = 5.0,
    attempts: int = 2,
) -> AsyncIterator[Scene]:
    clock = PollingClock()
    async with AsyncExitStack() as stack:
        for replay in replays:
            await stack.enter_async_context(replay)
        limits, retry = Limits(total_s=total_s), Retry(attempts=attempts)
        nodes = [
            UpstreamNode(Client(replay.url, clock=clock, chance=lambda: 0.5, limits=limits, retry=retry))
            for replay in replays
        ]
        identity = NetworkIdentity(12345, {"X": CHAIN_IDS["X"], "C": CHAIN_IDS["C"]})
        upstreams = NodeUpstreams(nodes, identity, quiet_log(), clock=clock, chance=lambda: 0.5)
        stack.push_async_callback(upstreams.close)
        scene = Scene(chains or Chains(), upstreams, clock, run_max)
        stack.push_async_callback(scene.stop)
        scene.start(names)
        yield scene


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scene()

    asyncio.run(run())
