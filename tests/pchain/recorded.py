"""A recorded network played back: the containers of X, P and C in the order of their acceptance, on a store of ours."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tests.store.opened import open_store
from tests.wire.platform_vectors import p_rows
from tests.wire.wire_vectors import VECTORS

from icefall.db.engine import Store
from icefall.node.store import PACKAGE, store_path
from icefall.node.sync.verify import ChainLinks, ChainPosition, FollowedChain, verify
from icefall.observe.log import LevelPage, Logs
from icefall.primary.chains import XChain, foreign_chains
from icefall.primary.network import Network, NetworkSettings, PlatformSettings, network_of
from icefall.primary.outbox import PrimaryOutbox
from icefall.primary.platform import PlatformChain, executed_chains
from icefall.upstream.node import FetchedContainer
from icefall.wire.text import checksum_hex
from icefall.xchain.ledger import Ledger

GENESIS_FILES = {"p-local-1": "genesis-local.json", "p-forks-1": "genesis.json"}


def recorded_network(recording: str) -> Network:
    """The network as it is configured with the files that the recorded node was started with."""
    folder = VECTORS / recording
    genesis = folder / GENESIS_FILES[recording]
    meta = json.loads((folder / "meta.json").read_bytes())
    upgrades = folder / "upgrade.json"
    settings = NetworkSettings(
        int(meta["networkID"]),
        str(genesis),
        1_000_000,
        1_000_000,
        platform=PlatformSettings(str(upgrades) if upgrades.exists() else ""),
    )
    return network_of(settings, int(json.loads(genesis.read_bytes())["startTime"]))


class RecordedContainer(NamedTuple):
    chain: str
    fetched: FetchedContainer
    accepted: str


def recorded_containers(recording: str) -> list[RecordedContainer]:
    """All containers in the order in which the node accepted them."""
    found = []
    for row in p_rows(recording, "containers"):
        if row["kind"] == "block":
            raw = checksum_hex.decode(row["bytes"])
            fetched = FetchedContainer(int(row["index"]), row["id"], raw, row["timestamp"])
            found.append(RecordedContainer(row["chain"], fetched, row["timestamp"]))
    return sorted(found, key=lambda one: (one.accepted, one.fetched.number))


class Playback:
    """The chains of a recorded network on a store. `platform` is P."""

    def __init__(
        self,
        directory: Path,
        recording: str,
        *,
        indexed: bool = True,
        store: Store | None = None,
        outbox: PrimaryOutbox | None = None,
    ) -> None:
        self.recording = recording
        self.network = recorded_network(recording)
        self.store = store or open_store(store_path(directory), PACKAGE)
        page = LevelPage.private(["P"])
        page.put("P", "OFF", "OFF")
        foreign = foreign_chains(self.network, self.store, indexed=indexed)
        log = Logs("test", page, None, "plain")["P"]
        followed, platform = executed_chains(self.network, self.store, foreign, log, lambda: 0.0, outbox)
        assert platform is not None
        self.platform: PlatformChain = platform
        spec = self.network.asset_chains[0]
        self.ledger = Ledger(
            self.store,
            spec.rules,
            spec.genesis,
            spec.block_0,
            self.network.subnet_of,
            outbox.put_asset if outbox is not None else None,
            outbox.preparing("X") if outbox is not None else None,
        )
        x_id = spec.chain.chain_id
        self.chains: dict[str, FollowedChain] = {**followed, "X": XChain(self.ledger)}
        self._links = {name: ChainLinks(name, x_id, None) for name in self.chains}

    async def start(self) -> None:
        await self.ledger.start()
        await self.platform.start()
        self._positions = {
            name: ChainPosition(chain.count, chain.last_container_id, chain.last_block_id)
            for name, chain in self.chains.items()
        }

    async def accept(self, name: str, batch: list[FetchedContainer]) -> None:
        """Verify and accept what a chain does not have yet."""
        new = [one for one in batch if one.number >= self.chains[name].count]
        if new:
            verified, self._positions[name] = verify(self._links[name], self._positions[name], new)
            await self.chains[name].accept(verified)

    async def play(self) -> None:
        """Accept everything; what follows each other on one chain is one batch."""
        for name, batch in groupby(recorded_containers(self.recording), key=lambda one: one.chain):
            await self.accept(name, [one.fetched for one in batch])


def recorded_answers(recording: str) -> Iterator[tuple[int, list[Any]]]:
    """Each height with the lines that were written there."""
    by_height: dict[int, list[Any]] = {}
    for row in p_rows(recording, "calls"):
        by_height.setdefault(row["height"], []).append(row)
    yield from sorted(by_height.items())
