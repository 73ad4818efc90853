"""Index a chain to a block in this process, and die at the n-th write if requested.

`python -m tests.evm.index_crash <store> <upstream> <chain ID> <last block> [<die at the n-th write>]`
"""

import asyncio
import os
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


def main(arguments: list[str]) -> None:
    path, url, chain_id, last, *die = arguments
    batches.BATCH_BLOCKS = random.randint(1, 24)  # a crash meets batches of any size
    if die:
        die_at(int(die[0]))
    asyncio.run(index(Path(path), url, int(chain_id), int(last)))


def forked(arguments: list[str], environment: dict[str, str]) -> None:
    """The same in a process that was forked with everything imported."""
    os.environ.update(environment)
    random.seed()
    main(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
