"""Follow an upstream whose X-Chain had a DAG to its tip in this process, and die at the n-th write if requested."""

import asyncio
from pathlib import Path

from tests.store.opened import die_at
from tests.sync.dag_scene import DagScene, config_of, dag_network, started

TIP = (76, 13, 12)


async def follow(directory: Path, url: str) -> None:
    config = config_of(directory, url)
    async with started(DagScene(config, dag_network(config), 4, had_dag=True)) as at:
        await at.until(lambda: at.counts() == TIP, "the tip")


def run(directory: Path, url: str, die_at_write: int | None = None) -> None:
    if die_at_write is not None:
        die_at(die_at_write)
    asyncio.run(follow(directory, url))
