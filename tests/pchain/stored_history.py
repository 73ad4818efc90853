"""A recorded network stored container by container, as an older release did or as this one does, until killed."""

import asyncio
from itertools import groupby
from pathlib import Path

from tests.pchain.recorded import Playback, recorded_containers
from tests.store.opened import die_at

from icefall.primary.chains import FollowedForeignChain, foreign_chains

RECORDING = "p-local-1"


async def store_only(directory: Path, count: int = 1000) -> None:
    """Store what an older release stored of the first containers: P and C are not executed, and only their exports to
    X are noted."""
    playback = Playback(directory, RECORDING)
    foreign = foreign_chains(playback.network, playback.store, indexed=True)
    x_id = playback.network.genesis.x_chain_id
    await playback.start()
    playback.chains |= {name: FollowedForeignChain(chain, x_id) for name, chain in foreign.items()}
    for one in recorded_containers(RECORDING)[:count]:
        await playback.accept(one.chain, [one.fetched])
    playback.store.close()


async def execute_stored(directory: Path) -> None:
    """Execute in the background what is stored, then accept what is missing."""
    playback = Playback(directory, RECORDING)
    await playback.start()
    await playback.platform.catch_up()
    assert playback.platform.is_executed
    await playback.play()
    playback.store.close()


async def execute_in_batches(directory: Path, size: int) -> None:
    """Accept containers in batches of one chain, and stop for good where the process is killed."""
    playback = Playback(directory, RECORDING)
    await playback.start()
    await playback.platform.catch_up()
    for name, run in groupby(recorded_containers(RECORDING), key=lambda one: one.chain):
        batch = [one.fetched for one in run]
        for at in range(0, len(batch), size):
            await playback.accept(name, batch[at : at + size])
    playback.store.close()


def run_stored(directory: Path, die_at_write: int) -> None:
    die_at(die_at_write)
    asyncio.run(execute_stored(directory))


def run_batches(directory: Path, die_at_write: int) -> None:
    die_at(die_at_write)
    asyncio.run(execute_in_batches(directory, 3))
