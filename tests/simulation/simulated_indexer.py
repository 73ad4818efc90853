"""The indexer of one EVM chain against simulated upstreams: what compose/indexer.py starts, without processes."""

import asyncio
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.evm.indexed import DEPTH_MAX, InlineBlockDecoder
from tests.simulation.evm_chains import WORLDS, World, world
from tests.simulation.evm_upstreams import FAULTS, HEADS, IDENTITY, INVALID_DATA, NO_STATE, EvmServer
from tests.simulation.killable_store import KillableStore, KillSwitch
from tests.simulation.schedule import HONEST, Phase, Schedule, draw_schedule
from tests.simulation.simulated_program import Simulation

from icefall.compose.indexed_chain import IndexedChain
from icefall.config.load import load, with_chains
from icefall.config.settings import ChainConfig, Config
from icefall.db.disk import DiskGuard, StoreLock
from icefall.evm.indexing.follower import POLL_S, BlockRange
from icefall.evm.storing.store import PACKAGE, ChainStore

# What an upstream may do for ever, if another one has recovered.
_LASTING = (
    *(HONEST, HONEST, "hangs", "refuses connections", "answers 502", "sends a page", "truncates"),
    *(*HEADS, *IDENTITY, *INVALID_DATA),
)
_AUDIT_INTERVAL = 20
_STORED = "select number, hash, parent_hash from block order by number"


class SimulatedIndexer(Simulation):
    def __init__(self, seed: int, directory: Path, *, clean: bool = False) -> None:
        super().__init__(seed, directory)
        self.world: World = world(seed % WORLDS)
        self.path = directory / f"{seed}.sqlite"
        self.true_tip = bytes.fromhex(self.world.true.blocks[-1].sent.hash[2:])
        self._known = self.world.hashes()
        self._stored: dict[int, bytes] = {}
        self._chain: IndexedChain | None = None
        self._store: KillableStore | None = None
        self._lock: StoreLock | None = None
        source = self.source
        count = source.choice((1, 2, 3))
        honest = source.randrange(count)
        schedules = []
        for index in range(count):
            last = HONEST if index == honest else source.choice(_LASTING)
            schedules.append(draw_schedule(source, FAULTS, self.trouble_s, last))
        if clean:
            schedules, self.crashes, self.trouble_s = [Schedule([Phase(0.0, HONEST, 1.0)])], [], 0.0
        growth_s = source.choice((0.5, 3.0, 12.0))
        for index, schedule in enumerate(schedules):
            self.network.servers[f"upstream-{index}"] = EvmServer(self.world, schedule, growth_s, source)
        self._config = _chain_config(self.world, list(self.network.servers))
        self._batch_blocks = source.choice((1, 3, 512))

    def describe(self) -> str:
        schedules = {host: str(server.schedule) for host, server in self._servers().items()}
        return f"world {self.seed % WORLDS}, crashes {self.crashes}\n" + "\n".join(
            f"{host}: {text}" for host, text in schedules.items()
        )

    def _servers(self) -> dict[str, EvmServer]:
        return {host: server for host, server in self.network.servers.items() if isinstance(server, EvmServer)}

    @property
    def lacked_state(self) -> bool:
        """Whether an upstream had no state for a time, as if it had pruned it: others are not always there."""
        return any(phase.fault == NO_STATE for server in self._servers().values() for phase in server.schedule.phases)

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr("icefall.evm.indexing.batches.BATCH_BLOCKS", self._batch_blocks)

    # -- the program -------------------------------------------------------------------------------------------

    async def start(self, switch: KillSwitch) -> list[asyncio.Task[Any]]:
        self._lock = StoreLock(self.path.with_suffix(".lock"))
        self._store = KillableStore(self.path, PACKAGE, switch, self._check)
        log: Any = self.events
        self._chain = chain = IndexedChain(
            self._config,
            BlockRange(self.world.first),
            self._store,
            DiskGuard(self.directory, 0),
            InlineBlockDecoder(),
            log,
            audit_interval=_AUDIT_INTERVAL,
            verify_roots=True,
            reorg_depth_max=DEPTH_MAX,
            poll_s=POLL_S,
        )
        return [asyncio.create_task(chain.follow()), asyncio.create_task(chain.audit())]

    def is_done(self) -> bool:
        assert self._chain is not None
        assert self._store is not None
        tip = ChainStore(self._store).tip()
        return tip is not None and tip.block_hash == self.true_tip and self._chain.auditor.is_done(tip)

    def stopped(self) -> str:
        assert self._chain is not None
        return self._chain.follower.status.problem if self._chain.follower.status.stopped else ""

    def drop(self) -> None:
        if self._store is not None:
            self._store.close()
        if self._lock is not None:
            self._lock.release()
        self._store = self._lock = self._chain = None

    # -- what holds after every commit -------------------------------------------------------------------------

    def _check(self) -> None:
        """Stored blocks begin where they should, have no gaps, link, and are blocks of the chain or of a branch."""
        assert self._store is not None
        rows: list[tuple[int, bytes, bytes]] = self._store.read(_STORED)
        for index, (number, block_hash, parent_hash) in enumerate(rows):
            assert number == self.world.first + index, f"block {number} is stored where {index} blocks are"
            assert block_hash in self._known, f"block {number} is of no chain: {block_hash.hex()}"
            assert not index or parent_hash == rows[index - 1][1], f"block {number} does not link"
        self._check_dropped({number: block_hash for number, block_hash, _ in rows})
        self._stored = {number: block_hash for number, block_hash, _ in rows}

    def _check_dropped(self, now: dict[int, bytes]) -> None:
        """Blocks are dropped only for others that an upstream really has, up to a head that is as high."""
        dropped = [number for number, block_hash in self._stored.items() if now.get(number) != block_hash]
        if dropped:
            lowest, tip = min(dropped), max(self._stored)
            servers = self._servers().values()
            proven = any(server.has_replaced(lowest, self._stored[lowest], tip) for server in servers)
            assert proven, f"blocks {lowest} to {tip} were dropped, and no upstream has others"


@cache
def _config() -> Config:
    return load("node", ["--data-dir=simulated"], {}, Path()).config


def _chain_config(world: World, hosts: list[str]) -> ChainConfig:
    table = {
        "id": str(world.recording.meta["chainId"]),
        "rpc": [f"http://{host}" for host in hosts],
        "teleporter": "0x253b2784c75e510dd0ff1da844684a1ac0aa5fcf",
        "start_block": world.first,
    }
    return with_chains(_config(), [table], "simulation").chain[0]
