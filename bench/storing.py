"""Whether the last transfer costs as much as the first: only rows, without an upstream.

ICEFALL_BENCH_TRANSFERS and ICEFALL_BENCH_HOLDERS set how many; ten million among 300,000 take half an hour.
"""

import asyncio
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.evm_rows import Rows, open_store, runs

TRANSFERS, HOLDERS, PER_BLOCK, BUSY_EVERY = 1_000_000, 10_000, 20, 5


def run() -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", TRANSFERS))
    holders = int(os.environ.get("ICEFALL_BENCH_HOLDERS", HOLDERS))
    print(f"storing: {transfers} transfers, {holders} addresses, one in every fifth")
    print(f"  {'stored':>12}{'CPU us per transfer':>21}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "chain.sqlite"
        asyncio.run(_stored(path, Rows(holders, PER_BLOCK, BUSY_EVERY), transfers))
        print(f"  {path.stat().st_size / transfers:.0f} bytes on disk per transfer")


async def _stored(path: Path, rows: Rows, transfers: int) -> None:
    """Prints a line for each tenth, as soon as it is stored."""
    store = open_store(path)
    stored, spent, done, tenths = 0, 0.0, 0, 0
    for run_of_blocks in runs(rows, transfers // PER_BLOCK):
        began = time.process_time()
        await store.commit(run_of_blocks)
        spent += time.process_time() - began
        done += len(run_of_blocks) * PER_BLOCK
        if stored + done >= transfers * (tenths + 1) // 10:  # at the end of a batch
            print(f"  {stored + done:>12}{spent / done * 1e6:>21.1f}", flush=True)
            stored, spent, done, tenths = stored + done, 0.0, 0, tenths + 1
    store.close()
