"""SQLite and servers side by side: rows in, bytes on disk, and first pages of ten over HTTP, one request at a time.

`make bench ARGS="stores --store=postgresql://... --store=postgresql://..."`: each server besides SQLite. All take
turns, batch by batch and page by page: so they compare with each other on a machine that others use too.
ICEFALL_BENCH_TRANSFERS sets how many transfers, ICEFALL_BENCH_HOLDERS among how many addresses.
"""

import asyncio
import http.client
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import psycopg
from tests.server import Server, serving

from bench.aims import FIGURES, FIRST_PAGE_MS, STORED, STORED_BYTES, TRANSACTIONS, TRANSFERS
from bench.evm_rows import BUSY, Rows, mark_audited, runs
from bench.load import WARM_UP, cpu_seconds, worker_pids
from bench.opened_stores import OpenedStores, opened
from icefall.evm.storing.store import ChainStore
from icefall.metrics.store import RollupWriter

CHAIN, COUNT, PER_BLOCK, ADDRESSES, BUSY_EVERY = "777", 200_000, 20, 10_000, 5
PAGES = 300
LARGEST = 12  # relations that are listed
_LISTS = {TRANSACTIONS: "transactions", TRANSFERS: "transactions:listErc20"}


class _Measured:
    """A store and what was measured of it."""

    def __init__(self, opened_stores: OpenedStores) -> None:
        self.opened = opened_stores
        self.stores = opened_stores.stores
        self.url = opened_stores.url
        self.seconds: list[float] = []  # by batch
        self.cpu_s = 0.0
        self.pages: dict[str, list[float]] = {}
        self.page_cpu_us = 0.0

    @property
    def name(self) -> str:
        return self.opened.name(CHAIN)

    def ratio_of_ends(self, sizes: Sequence[int]) -> float:
        """How much longer a transfer of the last tenth of all rows took than one of the first. Those of a batch are
        taken as equal."""
        tenth = sum(sizes) / 10

        def seconds_of(batches: Iterable[tuple[float, int]]) -> float:
            left, total = tenth, 0.0
            for seconds, size in batches:
                part = min(left, size)
                total += seconds * part / size
                left -= part
            return total

        batches = list(zip(self.seconds, sizes, strict=True))
        return seconds_of(reversed(batches)) / seconds_of(batches)


def run(urls: Sequence[str] = ()) -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", COUNT))
    holders = int(os.environ.get("ICEFALL_BENCH_HOLDERS", ADDRESSES))
    print(f"stores: {transfers} ERC-20 transfers among {holders} addresses, one in every fifth; in turns")
    with ExitStack() as stack:
        stores = [_Measured(stack.enter_context(opened(url, CHAIN))) for url in ("", *urls)]
        sizes = asyncio.run(_fill(stores, transfers, holders))
        _print_filled(stores, sizes)
        servers = [stack.enter_context(_serving(one)) for one in stores]
        _ask(stores, servers, transfers // PER_BLOCK)
        _print_pages(stores)
        for one in stores:
            largest = _largest(one, transfers)
            if largest:
                print(f"  bytes per transfer on {one.name}, by table and index:\n    {largest}")


async def _fill(stores: Sequence[_Measured], transfers: int, holders: int) -> list[int]:
    """Write the same rows into each store, batch by batch in turns; the number of transfers of each batch."""
    opened = [ChainStore(one.stores.chain_store(CHAIN), [RollupWriter()]) for one in stores]
    sizes = []
    for number, batch in enumerate(runs(Rows(holders, PER_BLOCK, BUSY_EVERY), transfers // PER_BLOCK)):
        turns = list(zip(stores, opened, strict=True))
        for measured, store in reversed(turns) if number % 2 else turns:
            began, began_cpu = time.perf_counter(), time.process_time()
            await store.commit(batch)
            measured.seconds.append(time.perf_counter() - began)
            measured.cpu_s += time.process_time() - began_cpu
        sizes.append(len(batch) * PER_BLOCK)
    for store in opened:
        await mark_audited(store)
        store.close()
    return sizes


@contextmanager
def _serving(one: _Measured) -> Iterator[Server]:
    config = one.opened.configure(CHAIN)
    with serving("data", one.opened.folder, f"--config-file={config}", *one.opened.settings) as server:
        yield server


def _ask(stores: Sequence[_Measured], servers: Sequence[Server], blocks: int) -> None:
    """Ask each server for the same pages in turns, each page once: none was answered before."""
    connections = []
    for server in servers:
        parts = urlsplit(server.url("data"))
        connections.append(http.client.HTTPConnection(parts.hostname or "", parts.port or 0))
    for label, list_ in _LISTS.items():
        used = [0.0] * len(servers)
        for number in range(WARM_UP + PAGES):
            if number == WARM_UP:
                used = [cpu_seconds(worker_pids(server)) for server in servers]
            target = f"/v1/chains/{CHAIN}/addresses/0x{BUSY.hex()}/{list_}?pageSize=10&startBlock=0"
            for one, connection in zip(stores, connections, strict=True):
                began = time.perf_counter()
                connection.request("GET", f"{target}&endBlock={blocks - 1 - number}")
                answer = connection.getresponse()
                body = answer.read()
                assert answer.status == 200, body[:300]
                if number >= WARM_UP:
                    one.pages.setdefault(label, []).append(time.perf_counter() - began)
        for one, server, before in zip(stores, servers, used, strict=True):
            one.page_cpu_us += (cpu_seconds(worker_pids(server)) - before) / PAGES / len(_LISTS) * 1e6


def _print_filled(stores: Sequence[_Measured], sizes: Sequence[int]) -> None:
    transfers = sum(sizes)
    print(f"  {'store':<28}{'transfers/s':>12}{'of first server':>17}{'CPU us':>8}{'B each':>8}{'last/first 10th':>17}")
    for one in stores:
        of_first = sum(stores[1].seconds) / sum(one.seconds) if len(stores) > 1 else 1.0
        size = one.stores.chain_location(CHAIN)[1]
        print(
            f"  {one.name:<28}{transfers / sum(one.seconds):>12.0f}{of_first:>17.2f}"
            f"{one.cpu_s / transfers * 1e6:>8.1f}{size / transfers:>8.0f}{one.ratio_of_ends(sizes):>17.2f}",
            flush=True,
        )
        FIGURES.note(STORED, one.name, transfers / sum(one.seconds))
        FIGURES.note(STORED_BYTES, one.name, size / transfers, _largest(one, transfers))


def _print_pages(stores: Sequence[_Measured]) -> None:
    print(f"  {'first pages of ten':<28}{'list':<20}{'p10 ms':>8}{'p50 ms':>8}{'p99 ms':>8}{'of first server':>18}")
    for label in _LISTS:
        for one in stores:
            p10, p50, p99 = _percentiles(one.pages[label])
            first = _percentiles((stores[1] if len(stores) > 1 else one).pages[label])
            ratios = f"{p10 / first[0]:.2f}, {p50 / first[1]:.2f}"
            print(f"  {one.name:<28}{label:<20}{p10:>8.2f}{p50:>8.2f}{p99:>8.2f}{ratios:>18}", flush=True)
            FIGURES.note(f"{FIRST_PAGE_MS}, {label}", one.name, p50)
    for one in stores:
        print(f"  {one.name:<28}{one.page_cpu_us:.0f} us CPU of the worker per page")


def _percentiles(times_s: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(times_s)
    p10, p50, p99 = (ordered[len(ordered) * part // 100] * 1e3 for part in (10, 50, 99))
    return p10, p50, p99


def _largest(one: _Measured, transfers: int) -> str:
    """The tables and indexes of a PostgreSQL server that take most: where the bytes of a transfer go."""
    if not one.name.startswith("PostgreSQL"):
        return ""
    with psycopg.connect(one.url, autocommit=True) as session:
        found = session.execute(
            "select relname, pg_relation_size(oid) from pg_class where relnamespace = to_regnamespace(%s) and "
            "relkind in ('r', 'i') order by 2 desc limit %s",
            (f"{one.opened.prefix}_chain_{CHAIN}", LARGEST),
        ).fetchall()
    return ", ".join(f"{name} {size / transfers:.0f}" for name, size in found)
