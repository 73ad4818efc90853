"""SQLite and servers side by side: rows in, bytes on disk, and ten-row pages over HTTP, one request at a time.

`make bench ARGS="stores --store=postgresql://... --store=postgresql://..."`: each server besides SQLite.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from tests.server import Server, serving

from bench.evm_rows import BUSY, Rows, mark_audited, runs
from bench.load import WARM_UP, cpu_seconds, one_by_one, worker_pids
from icefall.compose.stores import Stores
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter

CHAIN, TRANSFERS, PER_BLOCK, ADDRESSES, BUSY_EVERY = "777", 200_000, 20, 10_000, 5
REQUESTS = 300


def run(urls: Sequence[str] = ()) -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", TRANSFERS))
    print(f"stores: {transfers} ERC-20 transfers; pages of ten of an address with {transfers // BUSY_EVERY}")
    print(f"  {'store':<34}{'transfers/s':>12}{'CPU us':>9}{'B each':>8}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}")
    for url in ("", *urls):
        prefix = f"bench{os.getpid()}_{time.time_ns() % 10**6}"
        with TemporaryDirectory() as folder, closing(Stores(Path(folder) / "data", url, prefix)) as stores:
            seconds, cpu = asyncio.run(_fill(stores, transfers))
            where, size = stores.chain_location(CHAIN)
            config = Path(folder) / "icefall.toml"
            config.write_text(f'[[chain]]\nid = "{CHAIN}"\nrpc = "http://127.0.0.1:1"\nname = "bench"\n')
            settings = [f"--config-file={config}", *([f"--store={url}", f"--store-prefix={prefix}"] if url else [])]
            with serving("data", Path(folder), *settings) as server:
                p50, p99, page_cpu = _pages(server)
            if url:
                with psycopg.connect(url, autocommit=True) as server_session:
                    for name in ("access", f"chain_{CHAIN}"):
                        server_session.execute(f"drop schema if exists {prefix}_{name} cascade")
        shown = where if url else "SQLite"
        print(
            f"  {shown:<34}{transfers / seconds:>12.0f}{cpu / transfers * 1e6:>9.1f}{size / transfers:>8.0f}"
            f"{p50:>9.2f}{p99:>9.2f}{page_cpu:>9.1f}",
            flush=True,
        )


async def _fill(stores: Stores, transfers: int) -> tuple[float, float]:
    """Seconds, and those of CPU in this process."""
    store = ChainStore(stores.chain_store(CHAIN), [RollupWriter()])
    seconds = cpu = 0.0
    for blocks in runs(Rows(ADDRESSES, PER_BLOCK, BUSY_EVERY), transfers // PER_BLOCK):
        began, began_cpu = time.perf_counter(), time.process_time()
        await store.commit(blocks)
        seconds += time.perf_counter() - began
        cpu += time.process_time() - began_cpu
    await mark_audited(store)
    store.close()
    return seconds, cpu


def _pages(server: Server) -> tuple[float, float, float]:
    """Milliseconds, and microseconds of CPU of the worker, for a page of ten ERC-20 transfers."""
    target = f"/v1/chains/{CHAIN}/addresses/0x{BUSY.hex()}/transactions:listErc20?pageSize=10"
    url = server.url("data") + target
    one_by_one(url, 1)
    before = cpu_seconds(worker_pids(server))
    found = one_by_one(url, REQUESTS)
    spent = cpu_seconds(worker_pids(server)) - before
    return found.p50_ms, found.p99_ms, spent / (REQUESTS + WARM_UP) * 1e6
