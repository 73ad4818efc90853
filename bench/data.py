"""The chain data API on a million transfers: a busy and a quiet address, first and last pages.

On SQLite each call is compared with a bare granian worker that sends the same bytes. With `--store=URL` the same rows
are also put into that server: `p50` is the time of a page when nothing else is asked.
`ICEFALL_BENCH_TRANSFERS` sets how many transfers.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from tests.server import Server, serving

from bench.bare import bare_server
from bench.evm_rows import BUSY, QUIET, Rows, mark_audited, runs
from bench.load import descendants, measure, one_by_one, paced, worker_pids
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter
from icefall.run.stores import Stores

TRANSFERS, PER_BLOCK, ADDRESSES = 1_000_000, 20, 10_000
CHAIN = "777"
BUSY_EVERY = 5  # transfers of the busy address: 200,000
LOAD = 0.7  # of what the worker can answer at most


def run(urls: Sequence[str] = ()) -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", TRANSFERS))
    print(f"data: {transfers} ERC-20 transfers, {ADDRESSES} addresses, one with {transfers // BUSY_EVERY}; one worker")
    print("  p50: one request at a time; p99: at 70 % of the most that the worker answers; CPU: the worker's")
    for url in ("", *urls):
        with filled(url, transfers) as (server, where):
            print(f"  {where}")
            _suite(server, has_bare=not url)


@contextmanager
def filled(url: str, transfers: int) -> Iterator[tuple[Server, str]]:
    """A data worker on a store with that many transfers, and what kind of store it is."""
    prefix = f"bench{os.getpid()}_{time.time_ns() % 10**6}"
    with TemporaryDirectory() as folder, closing(Stores(Path(folder) / "data", url, prefix)) as stores:
        asyncio.run(_fill(stores, transfers))
        config = Path(folder) / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{CHAIN}"\nrpc = "http://127.0.0.1:1"\nname = "bench"\n')
        settings = [f"--config-file={config}", *([f"--store={url}", f"--store-prefix={prefix}"] if url else [])]
        try:
            with serving("data", Path(folder), *settings) as server:
                yield server, stores.chain_location(CHAIN)[0] if url else "SQLite"
        finally:
            if url:
                _drop(url, prefix)


def _drop(url: str, prefix: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as session:
        for name in ("access", f"chain_{CHAIN}"):
            session.execute(f"drop schema if exists {prefix}_{name} cascade")


async def _fill(stores: Stores, transfers: int) -> None:
    store = ChainStore(stores.chain_store(CHAIN), [RollupWriter()])
    for run_of_blocks in runs(Rows(ADDRESSES, PER_BLOCK, BUSY_EVERY), transfers // PER_BLOCK):
        await store.commit(run_of_blocks)
    await mark_audited(store)
    store.close()


def _suite(server: Server, *, has_bare: bool) -> None:
    base = f"/v1/chains/{CHAIN}"
    busy, quiet = (f"{base}/addresses/0x{address.hex()}" for address in (BUSY, QUIET))
    calls = [
        ("2 latest blocks", f"{base}/blocks"),
        ("4 transactions, quiet", f"{quiet}/transactions"),
        ("4 transactions, busy", f"{busy}/transactions"),
        ("4 transactions, busy, last", _last_page(server, f"{busy}/transactions")),
        ("6 ERC-20 transfers, quiet", f"{quiet}/transactions:listErc20"),
        ("6 ERC-20 transfers, busy", f"{busy}/transactions:listErc20"),
        ("6 ERC-20 transfers, busy, last", _last_page(server, f"{busy}/transactions:listErc20")),
        ("13 ERC-20 balances, quiet", f"{quiet}/balances:listErc20"),
        ("13 ERC-20 balances, busy", f"{busy}/balances:listErc20"),
    ]
    print(f"  {'call':<34}{'rows':>5}{'p50 ms':>9}{'req/s':>9}{'p99 ms':>9}{'CPU us':>9}{'bare us':>9}{'ratio':>8}")
    for label, path in calls:
        _line(server, label, path, has_bare=has_bare)


def _line(server: Server, label: str, path: str, *, has_bare: bool) -> None:
    answer = server.ask("GET", path, listener="data")
    assert answer.status == 200, answer.body[:300]
    rows = next(len(value) for value in answer.json().values() if isinstance(value, list))
    url = server.url("data") + path
    alone, ours = one_by_one(url), measure(url, None, worker_pids(server))
    loaded = paced(url, LOAD * ours.per_second)
    text = f"  {label:<34}{rows:>5}{alone.p50_ms:>9.2f}{ours.per_second:>9.0f}{loaded.p99_ms:>9.2f}{ours.cpu_us:>9.1f}"
    if has_bare:
        with bare_server(answer.body) as (bare_url, pid):
            bare = measure(bare_url, None, descendants(pid))
        text += f"{bare.cpu_us:>9.1f}{ours.cpu_us / bare.cpu_us:>8.2f}"
    print(text, flush=True)


def _last_page(server: Server, path: str) -> str:
    """The page of the oldest ten: by a block range and a page token."""
    in_range = f"{path}?startBlock=0&endBlock=200"
    first = server.ask("GET", f"{in_range}&pageSize=1", listener="data").json()
    assert "nextPageToken" in first, first
    return f"{in_range}&pageSize=10&pageToken={quote(first['nextPageToken'])}"
