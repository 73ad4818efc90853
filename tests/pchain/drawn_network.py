"""A random P-Chain in a store, its interface, and what a naive chain remembers of it.

ICEFALL_FUZZ_SEEDS chains are drawn, from ICEFALL_FUZZ_SEED on.
"""

import asyncio
import os
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from tests.api.networks_scene import asked, networks_app, walked
from tests.pchain.drawing import C_CHAIN, X_CHAIN
from tests.pchain.drawn_chains import DrawnChain
from tests.pchain.drawn_foreign import ForeignOutputs
from tests.pchain.naive_history import NaiveHistory
from tests.store.opened import open_store

from icefall.api.networks.network import AssetNames, Networks, PrimaryNetwork
from icefall.node.core_chain import CoreChainLists
from icefall.node.store import PACKAGE, store_path
from icefall.pchain.day_sums import DaySums
from icefall.pchain.ledger import PlatformLedger, ReceivedBlock
from icefall.pchain.observed import ObservedNodes
from icefall.pchain.reading import PlatformReader
from icefall.pchain.subnet_lists import SubnetLists
from icefall.primary.listed import ListedPlatform
from icefall.primary.shared_memory import PlatformMoves
from icefall.wire.ids import hash256, id_text
from icefall.wire.pvm.codec import unpack_genesis
from icefall.wire.pvm.types import PlatformTx
from icefall.wire.text import bech32
from icefall.xchain.listing import AssetChainLists, first_at
from icefall.xchain.outputs import OutputLists, put_outputs
from icefall.xchain.reading import AssetChainReader
from icefall.xchain.vertices import VertexLists

SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "1"))
SEEDS = int(os.environ.get("ICEFALL_FUZZ_SEEDS", "2"))
BLOCKS = 250
PRIMARY = bytes(32)
P = "/v1/networks/custom/blockchains/p-chain"


class NoAssets(AssetChainReader):
    """An X-Chain that knows no asset: none is drawn."""

    async def tx(self, txid: bytes) -> bytes | None:
        return None


class DrawnNetwork:
    """A drawn chain in a store, its interface, and what a naive chain remembers. `shared`: exports of X and C are
    drawn too, some of which are seen."""

    def __init__(
        self, directory: Path, seed: int, remembers: type[NaiveHistory] = NaiveHistory, *, shared: bool = False
    ) -> None:
        self._runner = asyncio.Runner()
        chain = DrawnChain(seed)
        self.naive = remembers(chain.rules)
        self.naive.begin(unpack_genesis(chain.genesis))
        self.store = open_store(store_path(directory), PACKAGE)
        moves = PlatformMoves(X_CHAIN, ListedPlatform(self.store))
        blocks = list(chain.blocks(BLOCKS))
        self.foreign = ForeignOutputs(seed, seen=shared)
        self.txs: list[tuple[PlatformTx, int, int, str]] = []  # as they were accepted: height, time and ID of the block
        for one in blocks:
            self.naive.accept(one)
            time = self.naive.time if one.time is None else one.time
            self.foreign.note(one.txs, time)
            proposed = () if one.proposal is None else (one.proposal,)
            self.txs += [(tx, one.height, time, id_text(one.block_id)) for tx in (*one.txs, *proposed)]

        async def started() -> PlatformLedger:
            ledger = PlatformLedger(self.store, chain.rules, chain.genesis, lambda _: None, moves)
            await ledger.start()
            return ledger

        async def fill() -> None:
            ledger, at, source = await started(), 0, random.Random(seed)
            await self.store.write(lambda tx: put_outputs(tx, self.foreign.early))
            while at < len(blocks):  # a proposal may be stored with an earlier batch than the block that decides it
                end = at + source.choice((1, 1, 2, 7, 40))
                batch = [ReceivedBlock(hash256(b"c" + one.raw), one.raw, one.raw, False) for one in blocks[at:end]]
                await ledger.accept(batch)
                at = end
                if source.random() < 0.1:  # a restart: everything is loaded from the store
                    ledger = await started()
            await self.store.write(lambda tx: put_outputs(tx, self.foreign.late))

        self._runner.run(fill())
        self._app = networks_app(Networks(self._network(chain)))

    def _network(self, chain: DrawnChain) -> PrimaryNetwork:
        async def no(*_: str) -> bool:
            return False

        store = self.store
        return PrimaryNetwork(
            public_name="custom",
            names=frozenset({"custom"}),
            chains={name: name for name in ("p-chain", "x-chain", "c-chain")},
            hrp="custom",
            hrps=frozenset({"custom"}),
            platform=PlatformReader(store, chain.rules),
            lists=SubnetLists(store),
            days=DaySums(store),
            observed=ObservedNodes(store),
            assets=AssetNames(chain.rules.avax_asset_id, NoAssets(store, X_CHAIN, lambda: 0)),
            x_chain_id=X_CHAIN,
            c_chain_id=C_CHAIN,
            is_executing=no,
            x_lists=AssetChainLists(store, X_CHAIN),
            c_lists=CoreChainLists(store, first_at),
            vertices=VertexLists(store, X_CHAIN),
            outputs=OutputLists(store),
            initial_supply=0,
            is_bootstrapping=no,
        )

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(coroutine)

    def get(self, target: str) -> Any:
        status, answer = self.run(asked(self._app, target))
        assert status == 200, (target, answer)
        return answer

    def walked(self, target: str, key: str, size: int) -> list[Any]:
        return walked(self.get, target, key, size)

    def close(self) -> None:
        self.store.close()
        self._runner.close()


def text(address: bytes) -> str:
    return bech32.encode("custom", address)
