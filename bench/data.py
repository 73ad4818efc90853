"""The chain data API on a million transfers: a busy and a quiet address, first and last pages.

Each call is compared with a bare granian worker that sends the same bytes.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from tests.server import Server, serving

from bench.bare import bare_server
from bench.evm_rows import BUSY, QUIET, Rows, mark_audited, open_store, runs
from bench.load import LoadStats, descendants, measure, worker_pids
from icefall.evm.storing.store import store_path

TRANSFERS, PER_BLOCK, ADDRESSES = 1_000_000, 20, 10_000
CHAIN = "777"
BUSY_EVERY = 5  # transfers of the busy address: 200,000


def run() -> None:
    print(f"data: {TRANSFERS} ERC-20 transfers, {ADDRESSES} addresses, one with {TRANSFERS // BUSY_EVERY}; one worker")
    with TemporaryDirectory() as folder:
        data_dir = Path(folder)
        store_path(data_dir / "data", CHAIN).parent.mkdir(parents=True)
        asyncio.run(_fill(store_path(data_dir / "data", CHAIN)))
        config = data_dir / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{CHAIN}"\nrpc = "http://127.0.0.1:1"\nname = "bench"\n')
        with serving("data", data_dir, f"--config-file={config}") as server:
            _suite(server)


async def _fill(path: Path) -> None:
    store = open_store(path)
    for run_of_blocks in runs(Rows(ADDRESSES, PER_BLOCK, BUSY_EVERY), TRANSFERS // PER_BLOCK):
        await store.commit(run_of_blocks)
    await mark_audited(store)
    store.close()


def _suite(server: Server) -> None:
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
    print(f"  {'call':<34}{'rows':>5}{'req/s':>9}{'p99 ms':>9}{'CPU us':>9}{'bare us':>9}{'ratio':>8}")
    for label, path in calls:
        answer = server.ask("GET", path, listener="data")
        assert answer.status == 200, answer.body[:300]
        rows = next(len(value) for value in answer.json().values() if isinstance(value, list))
        ours = measure(server.url("data") + path, None, worker_pids(server))
        with bare_server(answer.body) as (url, pid):
            _line(label, rows, ours, measure(url, None, descendants(pid)))


def _line(label: str, rows: int, ours: LoadStats, bare: LoadStats) -> None:
    print(
        f"  {label:<34}{rows:>5}{ours.per_second:>9.0f}{ours.p99_ms:>9.2f}{ours.cpu_us:>9.1f}{bare.cpu_us:>9.1f}"
        f"{ours.cpu_us / bare.cpu_us:>8.2f}",
        flush=True,
    )


def _last_page(server: Server, path: str) -> str:
    """The page of the oldest ten: by a block range and a page token."""
    in_range = f"{path}?startBlock=0&endBlock=200"
    first = server.ask("GET", f"{in_range}&pageSize=1", listener="data").json()
    assert "nextPageToken" in first, first
    return f"{in_range}&pageSize=10&pageToken={quote(first['nextPageToken'])}"
