"""Random P-Chains, executed into a store and folded by a naive implementation: both have the same state.

ICEFALL_FUZZ_SEEDS chains are drawn, from ICEFALL_FUZZ_SEED on.
"""

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.pchain.drawing import X_CHAIN
from tests.pchain.drawn_chains import DrawnChain
from tests.pchain.drawn_equality import expected, stored
from tests.store.opened import open_store

from icefall.node.store import PACKAGE, store_path
from icefall.pchain import stakers
from icefall.pchain.ledger import PlatformLedger, ReceivedBlock
from icefall.pchain.reading import PlatformReader
from icefall.primary.listed import ListedPlatform
from icefall.primary.shared_memory import PlatformMoves
from icefall.wire.ids import hash256
from icefall.wire.pvm import bodies
from icefall.wire.pvm.types import BlockType, PlatformBlock

SEED = int(os.environ.get("ICEFALL_FUZZ_SEED", "1"))
SEEDS = int(os.environ.get("ICEFALL_FUZZ_SEEDS", "4"))
BLOCKS = 150
WIDELY_DRAWN = 4  # chains that together have every type
RARE = ("L1 validators evicted", "L1 validators active again", "several signatures", "locked stake")


class Executed:
    """A drawn chain in a store of ours. Reopening loads the state anew, as after a restart."""

    def __init__(self, directory: Path, chain: DrawnChain) -> None:
        self.store = open_store(store_path(directory), PACKAGE)
        self._moves = PlatformMoves(X_CHAIN, ListedPlatform(self.store))
        self._chain = chain
        self.reader = PlatformReader(self.store, chain.rules)

    async def reopen(self) -> None:
        chain = self._chain
        self.ledger = PlatformLedger(self.store, chain.rules, chain.genesis, lambda _: None, self._moves)
        await self.ledger.start()

    async def accept(self, batch: list[PlatformBlock]) -> None:
        received = [ReceivedBlock(hash256(b"c" + one.raw), one.raw, one.raw, False) for one in batch]
        await self.ledger.accept(received)

    async def check(self) -> None:
        naive = self._chain.naive
        ours, wanted = await stored(self.store, self.reader, naive), expected(naive)
        for name, value in wanted.items():
            assert ours[name] == value, f"{name} at height {self.ledger.height}"

    async def check_sets(self, heights: list[int]) -> None:
        for height in heights:
            assert await self.reader.all_validators_at(height) == self._chain.naive.sets[height], height


@pytest.mark.parametrize("seed", range(SEED, SEED + SEEDS))
def test_a_drawn_chain_is_executed_as_a_naive_implementation_folds_it(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks come in batches of any size, and now and then after a restart; whole sets are stored often."""
    monkeypatch.setattr(stakers, "SNAPSHOT_CHANGES_MIN", 3)
    source = random.Random(seed)

    async def run() -> None:
        chain = DrawnChain(seed)
        executed = Executed(tmp_path, chain)
        await executed.reopen()
        await executed.check()
        batch: list[PlatformBlock] = []
        checked = 0
        for block in chain.blocks(BLOCKS):
            batch.append(block)
            if source.random() < 0.2:
                if source.random() < 0.2:
                    await executed.reopen()
                await executed.accept(batch)
                batch = []
                await executed.check()
                await executed.check_sets(list(range(checked, executed.ledger.height + 1)))
                checked = executed.ledger.height
        if batch:
            await executed.accept(batch)
        await executed.check()
        executed.reader._sets.clear()
        await executed.check_sets(list(range(len(chain.naive.sets))))
        executed.store.close()

    asyncio.run(run())


def test_drawn_chains_have_every_type() -> None:
    """What is drawn includes every block and transaction through Granite, and L1 validators that are evicted."""
    drawn: Counter[str] = Counter()
    for seed in range(WIDELY_DRAWN):
        chain = DrawnChain(seed)
        for _ in chain.blocks(4 * BLOCKS):
            pass
        drawn.update(chain.drawn)
    types = {tx_type.__name__ for tx_type in (*bodies._WITH_BASE, *bodies._WITHOUT_BASE)}
    wanted = {*types, *[block_type.name for block_type in BlockType], *RARE}
    assert {name for name in wanted if not drawn[name]} == set()
