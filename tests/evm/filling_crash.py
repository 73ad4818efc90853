"""Fill in logs and calls in this process, and die at the n-th statement of a transaction.

`python -m tests.evm.filling_crash <store> <upstream> <chain ID> <die at the n-th statement>`
"""

import asyncio
import sys
from pathlib import Path

from tests.evm.indexed import Log, fill
from tests.store.opened import die_at

from icefall.evm.indexing import filling
from icefall.upstream.evm.upstream import EvmUpstream


async def run(path: Path, url: str, chain_id: int) -> None:
    upstream = EvmUpstream([url], chain_id, Log())
    try:
        await fill(path, upstream)
    finally:
        await upstream.close()


if __name__ == "__main__":
    filling.STEP_BYTES = 32 << 10  # many steps, of few blocks
    die_at(int(sys.argv[4]))
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
