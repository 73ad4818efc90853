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
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote

from tests.server import Server, serving

from bench.aims import BALANCES, FIGURES, PAGE_CPU, TRANSACTIONS, TRANSFERS
from bench.bare import bare_server
from bench.evm_rows import BUSY, QUIET, Rows, address, mark_audited, runs
from bench.load import LoadStats, cpu_seconds, descendants, measure, one_by_one, paced, waited_s, worker_pids
from bench.opened_stores import OpenedStores, opened
from bench.page_profile import page_profile
from icefall.compose.stores import Stores
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter

COUNT, PER_BLOCK, ADDRESSES = 1_000_000, 20, 10_000
CHAIN = "777"
BUSY_EVERY = 5  # transfers of the busy address: 200,000
LOAD = 0.7  # of the worker's time
RUNS = 5  # under load, of each call


def run(urls: Sequence[str] = ()) -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", COUNT))
    addresses = addresses_of(transfers)
    print(f"data: {transfers} ERC-20 transfers, {addresses} addresses, one with {transfers // BUSY_EVERY}; one worker")
    print("  p50: one request at a time; p99: where the worker is busy for 70 % of the time; CPU: the worker's")
    for url in ("", *urls):
        with filled(url, transfers) as (server, stores):
            print(f"  {stores.name(CHAIN)}")
            _suite(server, stores, addresses, has_bare=not url)


def addresses_of(transfers: int) -> int:
    """So few that each of them sends something: of others only an upstream knows the balance."""
    return min(ADDRESSES, transfers // 20)


@contextmanager
def filled(url: str, transfers: int) -> Iterator[tuple[Server, OpenedStores]]:
    """A data worker on a store with that many transfers."""
    with opened(url, CHAIN) as stores:
        asyncio.run(fill(stores.stores, transfers))
        config = stores.configure(CHAIN)
        with serving("data", stores.folder, f"--config-file={config}", *stores.settings) as server:
            yield server, stores


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


def _suite(server: Server, stores: OpenedStores, addresses: int, *, has_bare: bool) -> None:
    base = f"/v1/chains/{CHAIN}"
    busy, quiet = (f"{base}/addresses/0x{one.hex()}" for one in (BUSY, QUIET))
    anyone = [f"{base}/addresses/0x{address(number).hex()}" for number in range(2, addresses)]
    last_pages = {list_: _last_page(server, f"{busy}/{list_}") for list_ in ("transactions", "transactions:listErc20")}
    calls = [
        Call("2 blocks, pages in turn", _pages(server, f"{base}/blocks", 500)),
        Call("2 latest blocks", [f"{base}/blocks"]),
    ]
    first_pages = {}
    for name, list_ in (
        (TRANSACTIONS, "transactions"),
        (TRANSFERS, "transactions:listErc20"),
        (BALANCES, "balances:listErc20"),
    ):
        first_pages[name] = Call(f"{name}, addresses in turn", [f"{one}/{list_}" for one in anyone])
        calls += [
            first_pages[name],
            Call(f"{name}, quiet", [f"{quiet}/{list_}"]),
            Call(f"{name}, busy", [f"{busy}/{list_}"]),
        ]
        if list_ in last_pages:
            calls.append(Call(f"{name}, busy, last", [last_pages[list_]]))
    print(f"  {'call':<38}{'rows':>5}{'p50 ms':>9}{'req/s':>9}{'at /s':>8}{'p99 ms':>9}", end="")
    print(f"{'busy':>6}{'waited':>8}{'CPU us':>9}", end="")
    print(f"{'bare us':>9}{'ratio':>8}{'bare p99':>10}" if has_bare else "")
    cpu_us = {call.label: _line(server, call, has_bare=has_bare) for call in calls}
    for name, call in first_pages.items():
        settings = [f"--config-file={stores.configure(CHAIN)}", *stores.settings]
        profile = page_profile(stores.folder, settings, call.targets)
        FIGURES.note(f"{PAGE_CPU}, {name}", stores.name(CHAIN), cpu_us[call.label], profile)


class Loaded(NamedTuple):
    """`busy` and `waited`: how much of the time the worker computed, and was ready and had no core."""

    rate: float
    p99_ms: float
    busy: float
    waited: float


def _line(server: Server, call: Call, *, has_bare: bool) -> float:
    """Print the line of a call; its CPU in microseconds per request."""
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
    return ours.cpu_us


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
