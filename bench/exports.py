"""`icefall export` of a million ERC-20 transfers in each format: rows per CPU second, bytes of a row, memory.

Each export is killed in the middle and continued: its files up to the one that was being written equal those of a run
that was not killed. DuckDB and pyarrow find in every file the rows and the sum that are in the store, and pages of the
API equal the rows that DuckDB finds.

ICEFALL_BENCH_TRANSFERS sets how many. In ICEFALL_BENCH_FOLDER, if it is given, the chain and the files are kept; of a
chain that is there already, so many transfers are exported.
"""

import asyncio
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from pyarrow import compute, csv, decimal128, parquet
from pyarrow import json as jsonl
from tests.server import serving

from bench.data import ADDRESSES, CHAIN, COUNT, PER_BLOCK, fill
from bench.evm_rows import BUSY, TOKENS, address
from icefall.compose.stores import Stores
from icefall.evm.encoding import BITS
from icefall.evm.storing.store import store_path
from icefall.exports.files import MANIFEST
from icefall.exports.formats import FORMATS

TABLE, FILES, KILLED_AFTER, PAGES = "erc20_transfers", 10, 5, 60
_TOTALS = "select count(*), sum(value::hugeint) from read_{}('{}')"
_ROWS = """select block_number, log_index, tx_hash, token, from_address, to_address, value from '{}/*.parquet'
where block_number >= ? and block_number < ? and ? in {} order by block_number desc, log_index desc limit 100"""
Totals = tuple[int, int]  # rows, and the sum of their amounts


def run() -> None:
    transfers = int(os.environ.get("ICEFALL_BENCH_TRANSFERS", COUNT))
    with TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("ICEFALL_BENCH_FOLDER", temporary))
        if not store_path(folder / "data", CHAIN).exists():
            with closing(Stores(folder / "data", "", "bench")) as stores:
                asyncio.run(fill(stores, transfers))
        stored = totals_of_store(folder, transfers)
        print(f"exports: {transfers} transfers in {FILES} files")
        print(f"  {'format':<10}{'rows per CPU s':>15}{'bytes of a row':>15}{'MB of memory':>14}")
        for file_format in FORMATS:
            exported(folder, file_format, stored)
        print(f"  {compared_pages(folder)} rows of pages of the API equal those of the Parquet files")


def totals_of_store(folder: Path, transfers: int) -> list[Totals]:
    """What each file should have, read from the table itself: an amount is its length and its bytes."""
    found, rows = [], transfers // FILES
    with closing(sqlite3.connect(store_path(folder / "data", CHAIN))) as store:
        for number in range(FILES):
            span = (number * rows // PER_BLOCK << BITS, (number + 1) * rows // PER_BLOCK << BITS)
            values = store.execute("select value from erc20 where log_at >= ? and log_at < ?", span)
            amounts = [int.from_bytes(value[1:]) for (value,) in values]
            assert len(amounts) == rows, f"{transfers} transfers in {FILES} files of whole blocks"
            found.append((rows, sum(amounts)))
    return found


def exported(folder: Path, file_format: str, stored: list[Totals]) -> None:
    """Export all in one format and print its line."""
    size = stored[0][0] // PER_BLOCK  # blocks of a file
    flags = [f"--chain={CHAIN}", f"--table={TABLE}", f"--format={file_format}", f"--partition=range:{size}"]
    command = [sys.executable, "-m", "icefall", "export", f"--data-dir={folder / 'data'}", *flags]
    killed, whole = folder / file_format, folder / f"{file_format}-part"
    all_of_it = [*command, f"--out={killed}", f"--to={FILES * size - 1}"]
    spent = [_spent(all_of_it, killed), _spent(all_of_it)]
    spent.append(_spent([*command, f"--out={whole}", f"--to={(KILLED_AFTER + 1) * size - 1}"]))
    files, expected = _files(killed), _files(whole)
    assert files[: KILLED_AFTER + 1] == expected, "a run that was killed wrote other files"
    for file, totals in zip(files, stored, strict=True):
        path = killed / CHAIN / TABLE / file["name"]
        read = duckdb.sql(_TOTALS.format({"jsonl": "json"}.get(file_format, file_format), path)).fetchone()
        assert read == _totals_of_pyarrow(path) == totals == (file["rows"], totals[1]), (path, read, totals)
    speed = sum(one["rows"] for one in expected) / spent[-1][0]
    of_row = sum(one["bytes"] for one in files) / sum(one["rows"] for one in files)
    print(f"  {file_format:<10}{speed:>15.0f}{of_row:>15.1f}{max(mb for _, mb in spent):>14.0f}", flush=True)


def _files(out: Path) -> list[dict[str, Any]]:
    manifest = out / CHAIN / TABLE / MANIFEST
    return list(json.loads(manifest.read_text())["files"]) if manifest.exists() else []


def _spent(command: list[str], killed: Path | None = None) -> tuple[float, float]:
    """Run a command, and kill it while it writes the file after the first half; its CPU seconds and MB of memory."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    status, memory_kb = Path(f"/proc/{process.pid}/status"), 0
    while peak := re.search(r"VmHWM:\s+(\d+)", status.read_text()):  # its own: rusage counts what it was forked from
        memory_kb = int(peak[1])
        if killed and len(_files(killed)) == KILLED_AFTER and list(killed.glob(f"{CHAIN}/{TABLE}/*.tmp")):
            process.send_signal(signal.SIGKILL)
        time.sleep(0.05)
    _, ended, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(ended)
    assert process.returncode == (-signal.SIGKILL if killed else 0), process.returncode
    return usage.ru_utime + usage.ru_stime, memory_kb / 1024


def _totals_of_pyarrow(path: Path) -> Totals:
    rows, total = 0, 0
    opened = {".csv": csv.open_csv, ".jsonl": jsonl.open_json, ".parquet": parquet.ParquetFile}[path.suffix](path)
    for batch in opened.iter_batches() if path.suffix == ".parquet" else opened:
        rows += len(batch)
        total += int(compute.sum(compute.cast(batch.column("value"), decimal128(38))).as_py())
    return rows, total


def compared_pages(folder: Path) -> int:
    """Ask for pages of random addresses and tokens in random spans of blocks; return how many rows were compared."""
    chance, compared = random.Random(1), 0
    config = folder / "icefall.toml"
    config.write_text(f'[[chain]]\nid = "{CHAIN}"\nrpc = "http://127.0.0.1:1"\nname = "bench"\n')
    last = _files(folder / "parquet")[-1]["lastBlock"]
    with serving("data", folder, f"--config-file={config}") as server:
        for number in range(PAGES):
            first = chance.randrange(last)
            span = (first, min(last, first + 1_000) if number % 3 else last)  # without the second
            if number % 2:
                key, names, path = address(1_000_000 + chance.randrange(TOKENS)), "(token)", "tokens/{}/transfers"
            else:
                key = address(chance.randrange(2, ADDRESSES)) if number % 3 == 0 else BUSY
                names, path = "(from_address, to_address)", "addresses/{}/transactions:listErc20"
            target = f"/v1/chains/{CHAIN}/{path.format(f'0x{key.hex()}')}?startBlock={span[0]}&endBlock={span[1]}"
            answer = server.ask("GET", f"{target}&pageSize=100", listener="data")
            assert answer.status == 200, answer.body[:300]
            page = [_row(one) for value in answer.json().values() if isinstance(value, list) for one in value]
            statement = _ROWS.format(folder / "parquet" / CHAIN / TABLE, names)
            assert page == duckdb.execute(statement, [*span, f"0x{key.hex()}"]).fetchall(), target
            compared += len(page)
    return compared


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
    parties = (one[name]["address"].lower() for name in ("erc20Token", "from", "to"))
    return (int(one["blockNumber"]), one["logIndex"], one["txHash"], *parties, one["value"])
