"""Follows a chain in a process of its own, with audits and names, until it is killed."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from tests.evm.adversarial.nodes import CHAIN_ID
from tests.evm.indexed import Indexing, Log, indexing_of
from tests.store.opened import open_store

from icefall.db.engine import Store
from icefall.evm.enriching.loops import TokenMetadataLoop
from icefall.evm.enriching.nft_outcomes import EnrichCounts
from icefall.evm.indexing.follower import BlockRange
from icefall.evm.model import StoredRaw
from icefall.evm.storing.store import PACKAGE, ChainStore
from icefall.metrics.store import RollupWriter
from icefall.upstream.evm.upstream import EvmUpstream

_PAUSE_S = 0.05
_FASTER = 60  # than the clock: names are read again a minute after the last time


def fast_clock() -> float:
    return time.time() * _FASTER


def names_loop(store: Store, found: Indexing, wall: Callable[[], float] = fast_clock) -> TokenMetadataLoop:
    return TokenMetadataLoop(store, found.upstream, EnrichCounts(), wall)


async def follow(path: Path, url: str) -> None:
    stored = open_store(path, PACKAGE, exclusive=True)
    found = indexing_of(
        ChainStore(stored, [RollupWriter(lambda: 0.0)]),
        EvmUpstream([url], CHAIN_ID, Log()),
        BlockRange(),
        kept=StoredRaw(),
        poll_s=_PAUSE_S,
    )
    names = names_loop(stored, found)
    async with asyncio.TaskGroup() as group:
        group.create_task(found.follower.run())
        while True:
            if not await names.round():
                await asyncio.sleep(_PAUSE_S)


def run(path: Path, url: str) -> None:
    asyncio.run(follow(path, url))
