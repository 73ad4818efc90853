"""Whether the last transfer costs as much as the first: only rows, without an upstream.

`make bench ARGS="storing --store=postgresql://..."`: into each server too, with the CPU of its sessions, if it runs on
this machine. ICEFALL_BENCH_TRANSFERS and ICEFALL_BENCH_HOLDERS set how many; ten million among 300,000 take half an
hour.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from bench.evm_rows import Rows, runs
from bench.load import cpu_seconds
from bench.opened_stores import opened
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter

CHAIN, TRANSFERS, HOLDERS, PER_BLOCK, BUSY_EVERY = "777", 1_000_000, 10_000, 20, 5


def run(urls: Sequence[str] = ()) -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", TRANSFERS))
    holders = int(os.environ.get("ICEFALL_BENCH_HOLDERS", HOLDERS))
    print(f"storing: {transfers} transfers, {holders} addresses, one in every fifth")
    for url in ("", *urls):
        with opened(url, CHAIN) as stores, _sessions_of(url) as server_cpu:
            store = ChainStore(stores.stores.chain_store(CHAIN), [RollupWriter()])
            print(
                f"  {stores.name(CHAIN):<28}{'stored':>12}{'CPU us per transfer':>21}{'of its server':>15}{'/s':>8}",
                flush=True,
            )
            asyncio.run(_stored(store, Rows(holders, PER_BLOCK, BUSY_EVERY), transfers, server_cpu))
            store.close()
            print(f"  {stores.stores.chain_location(CHAIN)[1] / transfers:.0f} bytes per transfer", flush=True)


@contextmanager
def _sessions_of(url: str) -> Iterator[Callable[[], float]]:
    """What tells the CPU seconds of the server's sessions of this process; 0 for a file, and for a server elsewhere."""
    if not url:
        yield lambda: 0.0
        return
    with psycopg.connect(url, autocommit=True) as session:

        def spent() -> float:
            mine: Any = f"icefall {os.getpid()}"
            found = session.execute("select pid from pg_stat_activity where application_name = %s", (mine,)).fetchall()
            return cpu_seconds([pid for (pid,) in found if _is_server_process(pid)])

        yield spent


def _is_server_process(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "postgres"
    except OSError:
        return False


async def _stored(store: ChainStore, rows: Rows, transfers: int, server_cpu: Callable[[], float]) -> None:
    """Prints a line for each tenth, as soon as it is stored."""
    stored, spent, done, tenths = 0, 0.0, 0, 0
    of_server, seconds = server_cpu(), 0.0
    for run_of_blocks in runs(rows, transfers // PER_BLOCK):
        began, began_cpu = time.perf_counter(), time.process_time()
        await store.commit(run_of_blocks)
        spent += time.process_time() - began_cpu
        seconds += time.perf_counter() - began
        done += len(run_of_blocks) * PER_BLOCK
        if stored + done >= transfers * (tenths + 1) // 10:  # at the end of a batch
            now = server_cpu()
            each = (now - of_server) / done * 1e6
            print(
                f"  {'':<28}{stored + done:>12}{spent / done * 1e6:>21.1f}{each:>15.1f}{done / seconds:>8.0f}",
                flush=True,
            )
            stored, spent, done, tenths = stored + done, 0.0, 0, tenths + 1
            of_server, seconds = now, 0.0
