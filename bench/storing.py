"""Whether the last transfer costs as much as the first: only rows, without an upstream.

ICEFALL_BENCH_TRANSFERS and ICEFALL_BENCH_HOLDERS set how many; ten million among 300,000 take half an hour.
"""

import asyncio
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.evm_rows import Rows, open_store, runs
from icefall.db.sqlite import file_size

TRANSFERS, HOLDERS, PER_BLOCK, BUSY_EVERY = 1_000_000, 10_000, 20, 5


def run() -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", TRANSFERS))
    holders = int(os.environ.get("ICEFALL_BENCH_HOLDERS", HOLDERS))
    print(f"storing: {transfers} transfers, {holders} addresses, one in every fifth; by tenths")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "chain.sqlite"
        asyncio.run(_stored(path, Rows(holders, PER_BLOCK, BUSY_EVERY), transfers))
        print(f"  {path.stat().st_size / transfers:.0f} bytes on disk per transfer")


async def _stored(path: Path, rows: Rows, transfers: int) -> None:
    """Prints the CPU of each tenth in us per transfer, and at its end the size of the -wal file."""
    store = open_store(path)
    stored, spent, done = 0, 0.0, 0
    costs_us: list[float] = []
    waiting_mb: list[float] = []
    for run_of_blocks in runs(rows, transfers // PER_BLOCK):
        began = time.process_time()
        await store.commit(run_of_blocks)
        spent += time.process_time() - began
        done += len(run_of_blocks) * PER_BLOCK
        if stored + done >= transfers * (len(costs_us) + 1) // 10:  # at the end of a batch
            costs_us.append(spent / done * 1e6)
            waiting_mb.append((file_size(path) - path.stat().st_size) / 1e6)  # noqa: ASYNC240 - nothing waits
            stored, spent, done = stored + done, 0.0, 0
    store.close()
    print("  CPU us per transfer  " + " ".join(f"{cost_us:>6.1f}" for cost_us in costs_us))
    print("  MB of -wal file      " + " ".join(f"{size_mb:>6.0f}" for size_mb in waiting_mb))
