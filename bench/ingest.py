"""Indexing an EVM chain from a local replay: transfers per second, compared with parts of the work alone.

`download` only fetches and decodes the same JSON; `SQLite alone` only writes the same rows; `started and ended` indexes
block 0 alone. `make bench ARGS="ingest --store=postgresql://..."`: the same chain into each server too.
"""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from tests.upstream.evm_recording import recording

from bench import storing
from bench.aims import FIGURES, INDEXED, INDEXED_BYTES, MIXED, MIXED_BYTES
from bench.evm_chain import CHAIN_ID, EncodedBlock, TransferChain
from bench.evm_upstream import EncodedChain, upstream
from bench.opened_stores import opened
from icefall.db.engine import Transaction
from icefall.db.sqlite import SqliteStore
from icefall.demo.recording import answer
from icefall.evm.auditing.audit import Auditor
from icefall.evm.storing.store import PACKAGE, ChainStore, store_path
from icefall.observe.log import quiet
from icefall.upstream.evm.upstream import EvmUpstream

BLOCKS, PER_BLOCK, ADDRESSES = 4_000, 20, 10_000
_POLL_S = 0.02


def run(urls: Sequence[str] = ()) -> None:
    blocks = int(os.environ.get("ICEFALL_BENCH_BLOCKS", BLOCKS))
    chain = TransferChain(PER_BLOCK, ADDRESSES)
    encoded = list(chain.blocks(blocks))
    transfers = sum(one.block.count(b'"0xa9059cbb') for one in encoded)
    print(f"ingest: {blocks} blocks, {transfers} ERC-20 transfers among {ADDRESSES} addresses, call traces and diffs")

    read_by = None if os.environ.get("ICEFALL_BENCH_BY_LOGS") else chain.read_by  # without it, no layout is proven
    with upstream(EncodedChain(CHAIN_ID, encoded, chain.state, read_by)) as (url, _pid):
        sqlite_s, sqlite_bytes = _suite(url, CHAIN_ID, transfers, len(encoded) - 1)
        FIGURES.note(INDEXED, "SQLite", transfers / sqlite_s)
        FIGURES.note(INDEXED_BYTES, "SQLite", sqlite_bytes / transfers)
        for store in urls:
            _on_server(url, transfers, len(encoded) - 1, store, sqlite_s)
    _recorded("anvil-1")
    storing.run()


def _suite(url: str, chain_id: int, transfers: int, last: int) -> tuple[float, int]:
    """The seconds of indexing with proven roots, and the bytes of the store."""
    print(f"  {'what':<34}{'per s':>9}{'seconds':>9}{'CPU us':>9}{'of SQLite':>11}{'RSS MB':>8}")
    seconds, cpu = asyncio.run(_download(url, chain_id, last))
    _line("download and decode", transfers, seconds, cpu)
    with TemporaryDirectory() as folder:
        data_dir = Path(folder)
        config = data_dir / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{chain_id}"\nrpc = "{url}"\n')
        results = {"started and ended": indexed(data_dir, config, 0)}
        for label, setting in (("indexed, roots proven", "true"), ("indexed, roots not proven", "false")):
            shutil.rmtree(data_dir / "data", ignore_errors=True)
            results[label] = indexed(data_dir, config, last, f"--verify-roots={setting}")
        path = store_path(data_dir / "data", str(chain_id))
        alone = _sqlite_alone(path, data_dir / "alone.sqlite")
        _line("SQLite alone", transfers, *alone)
        for label, one in results.items():
            _line(label, transfers, one.seconds, one.cpu, alone[0] / one.seconds, one.rss_mb)
            print(f"  {'  of which commits':<52}{one.commits / transfers * 1e6:>9.1f}")
        size = path.stat().st_size
        print(f"  {size / transfers:.0f} bytes on disk per transfer, with its transaction and all indexes")
        asyncio.run(_audits(url, chain_id, path, results["indexed, roots proven"].cpu))
        return results["indexed, roots proven"].seconds, size


def _on_server(url: str, transfers: int, last: int, store: str, sqlite_s: float) -> None:
    """The ratio is to SQLite's transfers per second; the CPU of the server is not counted."""
    with opened(store, str(CHAIN_ID)) as stores:
        config = stores.configure(str(CHAIN_ID), url)
        spent = indexed(stores.folder, config, last, *stores.settings)
        name, size = stores.name(str(CHAIN_ID)), stores.stores.chain_location(str(CHAIN_ID))[1]
        _line(f"indexed on {name}"[:34], transfers, spent.seconds, spent.cpu, sqlite_s / spent.seconds, spent.rss_mb)
        print(f"  {size / transfers:.0f} bytes there per transfer; the ratio is to SQLite indexed with roots proven")
        FIGURES.note(INDEXED, name, transfers / spent.seconds)
        FIGURES.note(INDEXED_BYTES, name, size / transfers)


def _line(
    what: str, count: int, seconds: float, cpu: float, ratio: float | None = None, rss: float | None = None
) -> None:
    text = f"  {what:<34}{count / seconds:>9.0f}{seconds:>9.2f}{cpu / count * 1e6:>9.1f}"
    print(text + (f"{ratio:>11.2f}" if ratio is not None else " " * 11) + (f"{rss:>8.0f}" if rss is not None else ""))


async def _audits(url: str, chain_id: int, path: Path, indexing_cpu: float) -> None:
    """What the audits of the indexed blocks cost, alone, beside what indexing them cost in all."""
    store = ChainStore(SqliteStore(path, PACKAGE))
    source = EvmUpstream([url], chain_id, quiet())

    def forget(tx: Transaction) -> None:
        tx.run("delete from audit")

    await store.write(forget)
    tip = store.tip()
    assert tip is not None
    fetched = _Requests(source)
    async for _ in source.fetch(range(tip.number + 1)):
        pass
    fetch_requests = fetched.count
    auditor = Auditor(store, source, 5_000, quiet())
    began, audited = time.process_time(), _Requests(source)
    while await auditor.step(tip):
        pass
    cpu = time.process_time() - began
    blocks, sent = tip.number + 1, audited.count
    share = 100 * cpu / indexing_cpu
    print(f"  audits: {auditor.checks} comparisons in {sent} requests, for blocks {fetch_requests} requests")
    print(f"  audits: {cpu / blocks * 1e6:.0f} us CPU per block, {share:.1f} % of the CPU of indexing (aim 5 %)")
    await source.close()
    store.close()


class _Requests:
    """Counts the HTTP requests of an upstream from here on."""

    def __init__(self, upstream: EvmUpstream) -> None:
        self.count = 0
        for source in upstream.pool.members:
            source.client.client.post = self._counted(source.client.client.post)  # type: ignore[assignment,method-assign]

    def _counted(self, post: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*args: Any, **options: Any) -> Any:
            self.count += 1
            return await post(*args, **options)

        return counted


async def _download(url: str, chain_id: int, last: int) -> tuple[float, float]:
    source = EvmUpstream([url], chain_id, quiet())
    began, cpu = time.monotonic(), time.process_time()
    async for block in source.fetch(range(last + 1)):
        for part in (block.block, block.receipts, block.calls, block.diffs):
            msgspec.json.decode(part or b"null")
    spent = time.monotonic() - began, time.process_time() - cpu
    await source.close()
    return spent


class _Indexed(NamedTuple):
    """What it took: CPU seconds of all processes, peak memory of all, and the CPU seconds of commits to SQLite."""

    seconds: float
    cpu: float
    rss_mb: float
    commits: float


def indexed(data_dir: Path, config: Path, last: int, *settings: str) -> _Indexed:
    command = [sys.executable, "-m", "bench.timed_index", "index", f"--config-file={config}", f"--to={last}"]
    command += [f"--data-dir={data_dir / 'data'}", "--log-level=off", *settings]
    before = os.times()
    began = time.monotonic()
    process = subprocess.Popen(command, env=os.environ | {"ICEFALL_BENCH_COMMITS": str(data_dir / "commits")})
    most = 0.0
    while process.poll() is None:
        most = max(most, _rss_mb(process.pid))
        time.sleep(_POLL_S)
    assert process.returncode == 0, process.returncode
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return _Indexed(time.monotonic() - began, cpu, most, float((data_dir / "commits").read_text()))


def _rss_mb(pid: int) -> float:
    """Resident memory of the process and its children."""
    total = 0
    for one in (pid, *_children(pid)):
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            continue
    return total / 2**20


def _children(pid: int) -> list[int]:
    try:
        pids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(one) for one in pids]


def _sqlite_alone(path: Path, copy: Path) -> tuple[float, float]:
    """Copies all rows of all tables into an empty file of the same schema, in key order, 256 blocks per transaction."""
    source = sqlite3.connect(path)
    schema = [
        row[0] for row in source.execute("select sql from sqlite_master where sql is not null order by type desc")
    ]
    tables = [row[0] for row in source.execute("select name from sqlite_master where type = 'table'")]
    rows = {name: source.execute(f"select * from {name}").fetchall() for name in tables}
    copy.unlink(missing_ok=True)
    target = sqlite3.connect(copy, isolation_level=None)
    target.execute("pragma page_size = 8192")
    target.execute("pragma journal_mode = wal")
    target.execute("pragma synchronous = normal")
    for statement in schema:
        target.execute(statement)
    runs = max(1, len(rows["block"]) // 256)
    began, cpu = time.monotonic(), time.process_time()
    for number in range(runs):
        target.execute("begin immediate")
        for name, all_rows in rows.items():
            part = all_rows[len(all_rows) * number // runs : len(all_rows) * (number + 1) // runs]
            if part:
                target.executemany(f"insert into {name} values ({','.join('?' * len(part[0]))})", part)
        target.execute("commit")
    spent = time.monotonic() - began, time.process_time() - cpu
    target.close()
    source.close()
    return spent


def _recorded(chain: str) -> None:
    """The same for a recorded chain, with state from the recording."""
    known = recording(chain)
    encoded = []
    for block in known.blocks.values():
        parts = (block.block, block.receipts, block.calls or b"[]", block.diffs or b"[]")
        encoded.append(EncodedBlock(block.number, block.hash, *parts))
    transfers = sum(part.receipts.count(b"0xddf252ad") for part in encoded)
    txs = sum(len(block.txids) for block in known.blocks.values())
    print(f"  {chain}: {len(encoded)} blocks, {txs} transactions, {transfers} Transfer logs; per transaction")

    def state(method: str, params: list[Any], number: int) -> str:
        if method == "eth_call":
            return answer(known.state, params[0], number)
        if method == "eth_getCode":
            return known.state.code(params[0], number)
        return hex(int(known.state.at(number, "native", params[0]) or 0))

    chain_id = int(known.meta["chainId"])
    with upstream(EncodedChain(chain_id, encoded, state)) as (url, _pid):
        seconds, size = _suite(url, chain_id, txs, len(encoded) - 1)
        FIGURES.note(MIXED, "SQLite", txs / seconds)
        FIGURES.note(MIXED_BYTES, "SQLite", size / txs)
