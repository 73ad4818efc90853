"""Follow an upstream whose X-Chain had a DAG to its tip in this process, and die at the n-th write if requested.

`python -m tests.follow.dag_crash <directory> <upstream> [<die at the n-th write>]`
"""

import asyncio
import sys
from pathlib import Path

from tests.follow.dag_scene import DagScene, config_of, dag_network, started
from tests.store.opened import die_at

TIP = (76, 13, 12)


async def follow(directory: Path, url: str) -> None:
    config = config_of(directory, url)
    async with started(DagScene(config, dag_network(config), 4, had_dag=True)) as at:
        await at.until(lambda: at.counts() == TIP, "the tip")


def main() -> None:
    directory, url, *die = sys.argv[1:]
    if die:
        die_at(int(die[0]))
    asyncio.run(follow(Path(directory), url))


if __name__ == "__main__":
    main()
