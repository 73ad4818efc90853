"""Fill in logs and calls in this process, and die at the n-th statement of a transaction."""

import asyncio
from pathlib import Path

from tests.evm.indexed import Log, fill
from tests.store.opened import die_at

from icefall.evm.indexing import filling
from icefall.upstream.evm.upstream import EvmUpstream


async def _fill(path: Path, url: str, chain_id: int) -> None:
    upstream = EvmUpstream([url], chain_id, Log())
    try:
        await fill(path, upstream)
    finally:
        await upstream.close()


def run(path: Path, url: str, chain_id: int, die: int) -> None:
    filling.STEP_BYTES = 32 << 10  # many steps, of few blocks
    die_at(die)
    asyncio.run(_fill(path, url, chain_id))
