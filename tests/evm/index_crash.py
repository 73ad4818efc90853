"""Index a chain to a block in this process, and die at the n-th write if requested.

`python -m tests.evm.index_crash <store> <upstream> <chain ID> <last block>` is killed from outside.
"""

import asyncio
import random
import sys
from pathlib import Path

from tests.evm.indexed import Log, indexing_of
from tests.store.opened import die_at, open_store

from icefall.evm.indexing import batches
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.storing.store import PACKAGE, ChainStore
from icefall.metrics.store import RollupWriter
from icefall.upstream.evm.upstream import EvmUpstream


async def index(path: Path, url: str, chain_id: int, last: int) -> None:
    store = ChainStore(open_store(path, PACKAGE, exclusive=True), [RollupWriter()])
    upstream = EvmUpstream([url], chain_id, Log())
    try:
        await indexing_of(store, upstream, BlockRange(last=last)).follower.run()
    finally:
        await upstream.close()
        store.close()


def run(path: Path, url: str, chain_id: int, last: int, die: int | None = None) -> None:
    batches.BATCH_BLOCKS = random.randint(1, 24)  # a crash meets batches of any size
    if die is not None:
        die_at(die)
    asyncio.run(index(path, url, chain_id, last))


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
