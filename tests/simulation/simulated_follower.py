"""The followers of X, P and C against simulated nodes: what compose/engine.py starts to follow a network."""

import asyncio
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.killable_store import KillableStore, KillSwitch
from tests.simulation.node_upstreams import COUNTS, FAULTS, INVALID, NodeServer, counts_after, first_containers
from tests.simulation.schedule import HONEST, Phase, Schedule, draw_schedule
from tests.simulation.simulated_program import Events, Simulation
from tests.sync.history import START

from icefall.compose.node_setup import configured_network
from icefall.config.load import load
from icefall.config.settings import Config
from icefall.node.index import BLOCKS_OF
from icefall.node.store import PACKAGE, StartRequest, admit, store_path
from icefall.primary.chains import index_x
from icefall.primary.network import Network
from icefall.primary.sync import NodeFollowing
from icefall.wire.genesis.network import p_block_0_ids
from icefall.wire.ids import id_text
from icefall.xchain.ledger import Ledger

_LASTING = (HONEST, HONEST, "hangs", "refuses connections", "answers 502", "sends a page", "lags", "is empty", *INVALID)
_RUNS = (1, 5, 1024)
_SINCE = "select number, container_id from container where series = ? and number >= ? order by number"


class SimulatedFollower(Simulation):
    def __init__(self, seed: int, directory: Path, *, clean: bool = False) -> None:
        super().__init__(seed, directory)
        self.count = COUNTS[seed % len(COUNTS)]
        self.counts = counts_after(self.count)
        self.path = store_path(directory)
        self._expected = {name: [row.id_text for row in rows] for name, rows in first_containers(self.count).items()}
        self._stored = dict.fromkeys(self._expected, 0)
        self._ledger: Ledger | None = None
        self._following: NodeFollowing | None = None
        self._store: KillableStore | None = None
        self.servers = self._draw_servers(clean)
        for index, server in enumerate(self.servers):
            self.network.servers[f"upstream-{index}"] = server
        self._run_max = self.source.choice(_RUNS)

    def _draw_servers(self, clean: bool) -> list[NodeServer]:
        """One of them never sends an invalid container: those that do are not used again before the next start."""
        source = self.source
        number = source.choice((1, 2, 3))
        truthful = source.randrange(number)
        schedules = []
        for index in range(number):
            faults = FAULTS if index == truthful else (*FAULTS, *INVALID, *INVALID)
            last = HONEST if index == truthful else source.choice(_LASTING)
            schedules.append(draw_schedule(source, faults, self.trouble_s, last))
        growth_s = source.choice((0.1, 0.5, 2.0))
        if clean:
            schedules, self.crashes, self.trouble_s = [Schedule([Phase(0.0, HONEST, 1.0)])], [], 0.0
        return [NodeServer(self.count, schedule, growth_s, source) for schedule in schedules]

    def describe(self) -> str:
        lines = [f"upstream-{index}: {server.schedule}" for index, server in enumerate(self.servers)]
        return "\n".join([f"{self.counts}, crashes {self.crashes}", *lines])

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr("icefall.primary.sync.p_block_0_ids", _block_0_ids)

    # -- the program -------------------------------------------------------------------------------------------

    async def start(self, switch: KillSwitch) -> list[asyncio.Task[Any]]:
        config, network = _config(), _network()
        self._store = store = KillableStore(self.path, PACKAGE, switch, self._check)
        before, self._stored = self._stored, dict.fromkeys(self._expected, 0)
        self._check()
        assert self._stored == before, f"{before} containers were stored before the crash, {self._stored} after it"
        await store.write(lambda tx: admit(tx, StartRequest(config.network_id, True, True, False), START))
        spec = network.asset_chains[0]
        self._ledger = Ledger(store, spec.rules, spec.genesis, spec.block_0, network.subnet_of, index_x)
        await self._ledger.start()
        urls = [f"http://{host}" for host in self.network.servers]
        logs: Any = _Logs(self.events)
        self._following = NodeFollowing(urls, network, store, self._ledger, logs, run_max=self._run_max, indexed=True)
        return [*self._following.tasks(), asyncio.create_task(self._following.report_progress())]

    def is_done(self) -> bool:
        return self._stored == self.counts

    def stopped(self) -> str:
        assert self._following is not None
        stats = [self._following.stats_of(name) for name in self._expected]
        return "; ".join(one.failure for one in stats if one.failure)

    def drop(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = self._ledger = self._following = None

    # -- what holds after every commit -------------------------------------------------------------------------

    def _check(self) -> None:
        """What is stored is the beginning of the recorded chains."""
        assert self._store is not None
        for name, series in BLOCKS_OF.items():
            for number, container_id in self._store.read(_SINCE, (series.number, self._stored[name])):
                assert number == self._stored[name], f"{name} {number} is stored after {self._stored[name]} containers"
                assert id_text(container_id) == self._expected[name][number], f"{name} {number} is a false container"
                self._stored[name] += 1


class _Logs:
    """One log for all chains, with their names."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def __getitem__(self, name: str) -> Events:
        return self._events


@cache
def _config() -> Config:
    return load("node", ["--data-dir=simulated", "--index-enabled=true"], {}, Path()).config


_block_0_ids = cache(p_block_0_ids)  # pure, and as slow as following all containers of a run


@cache
def _network() -> Network:
    return configured_network(_config(), START)
