"""The chain data API on a million transfers: a busy and a quiet address, first and last pages.

Pages and addresses in turn are asked for the first time, as far as a worker is concerned; the others again and again.
On SQLite each call is compared with a bare granian worker that sends the same bytes. `bare p99` is that of a bare
worker which computes for as long as ours for each answer, at the same rate: what client and machine make of such a
load. p99 is taken where the worker is busy for 70 % of the time (`busy`): requests that come one by one wake it each
time, and cost up to twice the CPU of those that 16 connections send as fast as they can. It is that of the run, of
several, in which the worker was nearest to it: the speed of a machine changes from second to second, and what waits
behind a busy worker says nothing of an answer. `waited`: how much of the time our worker was ready and had no core.
With `--store=URL` the same rows are also put into that server: `p50` is the time of a page when nothing else is asked.
`ICEFALL_BENCH_TRANSFERS` sets how many transfers.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import quote

from tests.server import Server, serving

from bench.bare import bare_server
from bench.evm_rows import BUSY, QUIET, Rows, address, mark_audited, runs
from bench.load import LoadStats, cpu_seconds, descendants, measure, one_by_one, paced, waited_s, worker_pids
from icefall.compose.stores import Stores
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter

TRANSFERS, PER_BLOCK, ADDRESSES = 1_000_000, 20, 10_000
CHAIN = "777"
BUSY_EVERY = 5  # transfers of the busy address: 200,000
LOAD = 0.7  # of the worker's time
RUNS = 5  # under load, of each call


def run(urls: Sequence[str] = ()) -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", TRANSFERS))
    addresses = addresses_of(transfers)
    print(f"data: {transfers} ERC-20 transfers, {addresses} addresses, one with {transfers // BUSY_EVERY}; one worker")
    print("  p50: one request at a time; p99: where the worker is busy for 70 % of the time; CPU: the worker's")
    for url in ("", *urls):
        with filled(url, transfers) as (server, where):
            print(f"  {where}")
            _suite(server, addresses, has_bare=not url)


def addresses_of(transfers: int) -> int:
    """So few that each of them sends something: of others only an upstream knows the balance."""
    return min(ADDRESSES, transfers // 20)


@contextmanager
def filled(url: str, transfers: int) -> Iterator[tuple[Server, str]]:
    """A data worker on a store with that many transfers, and what kind of store it is."""
    prefix = f"bench{os.getpid()}_{time.time_ns() % 10**6}"
    with TemporaryDirectory() as folder, closing(Stores(Path(folder) / "data", url, prefix)) as stores:
        asyncio.run(fill(stores, transfers))
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


async def fill(stores: Stores, transfers: int) -> None:
    """Write a chain with that many transfers."""
    store = ChainStore(stores.chain_store(CHAIN), [RollupWriter()])
    for run_of_blocks in runs(Rows(addresses_of(transfers), PER_BLOCK, BUSY_EVERY), transfers // PER_BLOCK):
        await store.commit(run_of_blocks)
    await mark_audited(store)
    store.close()


class Call(NamedTuple):
    """`targets`: paths that are asked for in turn."""

    label: str
    targets: list[str]


def _suite(server: Server, addresses: int, *, has_bare: bool) -> None:
    base = f"/v1/chains/{CHAIN}"
    busy, quiet = (f"{base}/addresses/0x{one.hex()}" for one in (BUSY, QUIET))
    anyone = [f"{base}/addresses/0x{address(number).hex()}" for number in range(2, addresses)]
    last_pages = {list_: _last_page(server, f"{busy}/{list_}") for list_ in ("transactions", "transactions:listErc20")}
    calls = [
        Call("2 blocks, pages in turn", _pages(server, f"{base}/blocks", 500)),
        Call("2 latest blocks", [f"{base}/blocks"]),
    ]
    for number, name, list_ in (
        (4, "transactions", "transactions"),
        (6, "ERC-20 transfers", "transactions:listErc20"),
        (13, "ERC-20 balances", "balances:listErc20"),
    ):
        calls += [
            Call(f"{number} {name}, addresses in turn", [f"{one}/{list_}" for one in anyone]),
            Call(f"{number} {name}, quiet", [f"{quiet}/{list_}"]),
            Call(f"{number} {name}, busy", [f"{busy}/{list_}"]),
        ]
        if list_ in last_pages:
            calls.append(Call(f"{number} {name}, busy, last", [last_pages[list_]]))
    print(f"  {'call':<38}{'rows':>5}{'p50 ms':>9}{'req/s':>9}{'at /s':>8}{'p99 ms':>9}", end="")
    print(f"{'busy':>6}{'waited':>8}{'CPU us':>9}", end="")
    print(f"{'bare us':>9}{'ratio':>8}{'bare p99':>10}" if has_bare else "")
    for call in calls:
        _line(server, call, has_bare=has_bare)


class Loaded(NamedTuple):
    """`busy` and `waited`: how much of the time the worker computed, and was ready and had no core."""

    rate: float
    p99_ms: float
    busy: float
    waited: float


def _line(server: Server, call: Call, *, has_bare: bool) -> None:
    answer = server.ask("GET", call.targets[0], listener="data")
    assert answer.status == 200, answer.body[:300]
    rows = next(len(value) for value in answer.json().values() if isinstance(value, list))
    url = server.url("data") + call.targets[0]
    pids = worker_pids(server)
    alone, ours = one_by_one(url), measure(url, None, pids, call.targets)
    loaded = _loaded(url, call, pids, ours)
    text = f"  {call.label:<38}{rows:>5}{alone.p50_ms:>9.2f}{ours.per_second:>9.0f}{loaded.rate:>8.0f}"
    text += f"{loaded.p99_ms:>9.2f}{loaded.busy:>6.0%}{loaded.waited:>8.0%}{ours.cpu_us:>9.1f}"
    if has_bare:
        with bare_server(answer.body) as (bare_url, pid):
            bare = measure(bare_url, None, descendants(pid))
        with bare_server(answer.body, max(0.0, ours.cpu_us - bare.cpu_us)) as (bare_url, _):
            bare_loaded = paced(bare_url, loaded.rate)
        text += f"{bare.cpu_us:>9.1f}{ours.cpu_us / bare.cpu_us:>8.2f}{bare_loaded.p99_ms:>10.2f}"
    print(text, flush=True)


def _loaded(url: str, call: Call, pids: list[int], ours: LoadStats) -> Loaded:
    """The run in which the worker was busy for LOAD of the time, as nearly as can be: each has the rate that would have
    kept it so in the one before, the first half of its capacity."""
    runs: list[Loaded] = []
    rate = ours.per_second / 2
    for _ in range(1 + RUNS):
        used, before, began = cpu_seconds(pids), waited_s(pids), time.monotonic()
        latency = paced(url, rate, call.targets)
        elapsed = time.monotonic() - began
        busy, waited = (cpu_seconds(pids) - used) / elapsed, (waited_s(pids) - before) / elapsed
        runs.append(Loaded(rate, latency.p99_ms, busy, waited))
        rate *= LOAD / busy
    return min(runs[1:], key=lambda run: abs(run.busy - LOAD))


def _pages(server: Server, path: str, count: int) -> list[str]:
    """The first pages of a list."""
    pages = [path]
    while len(pages) < count:
        token = server.ask("GET", pages[-1], listener="data").json().get("nextPageToken")
        if token is None:
            break
        pages.append(f"{path}?pageToken={quote(token)}")
    return pages


def _last_page(server: Server, path: str) -> str:
    """The page of the oldest ten: by a block range and a page token."""
    in_range = f"{path}?startBlock=0&endBlock=200"
    first = server.ask("GET", f"{in_range}&pageSize=1", listener="data").json()
    assert "nextPageToken" in first, first
    return f"{in_range}&pageSize=10&pageToken={quote(first['nextPageToken'])}"
