"""Executing a P-Chain from stored containers: blocks per second on one core, memory, and sets at old and new heights.

ICEFALL_BENCH_BLOCKS sets how many; a million take about ten minutes and 2 GB.
"""

import asyncio
import gc
import os
import time
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.platform_chain import NETWORK_ID, PlatformBlocks, genesis
from icefall.compose.child import GC_THRESHOLDS
from icefall.db.sqlite import SqliteStore
from icefall.node.store import PACKAGE
from icefall.node.sync.foreign import ForeignContainer
from icefall.observe.log import quiet
from icefall.pchain.reading import PlatformReader
from icefall.primary.chains import foreign_chains
from icefall.primary.network import NetworkSettings, network_of
from icefall.primary.platform import PlatformChain, executed_chains
from icefall.wire.ids import PRIMARY_NETWORK

BLOCKS = int(os.environ.get("ICEFALL_BENCH_BLOCKS", "30000"))
AIM_PER_S, AIM_RATIO = 3_000, 1.5
_STORED = 8_192  # containers that are stored and then executed
_ROUNDS = 60
_START = 1_794_753_768


def run() -> None:
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)  # as the engine has them
    with TemporaryDirectory() as folder:
        path = Path(folder) / "node.sqlite"
        asyncio.run(_executed(path))
        print(f"  {path.stat().st_size / BLOCKS:.0f} bytes on disk per block, with its container")


async def _executed(path: Path) -> None:
    """Print a line for each tenth: CPU alone, because other processes share the cores."""
    store = SqliteStore(path, PACKAGE)
    network = network_of(NetworkSettings(NETWORK_ID, "", 0, 0), _START)
    foreign = foreign_chains(network, store, indexed=True)
    _, platform = executed_chains(network, store, foreign, quiet(), time.monotonic)
    assert platform is not None
    assert network.genesis.p_genesis == genesis().p_genesis
    print(f"platform: {BLOCKS} P-Chain blocks of one transaction, executed from stored containers on SQLite")
    print(f"  {'blocks':>10}{'per s of CPU':>14}{'memory MB':>11}")
    made = PlatformBlocks().containers(BLOCKS)
    done, spent, since, tenth = 0, 0.0, 0, 1
    while rows := [ForeignContainer(c.container_id, c.raw, b.block_id, b.height) for c, b in islice(made, _STORED)]:
        await foreign["P"].accept(rows, lambda tx: None)
        began = time.process_time()
        await platform.catch_up()
        spent += time.process_time() - began
        assert platform.why is None, platform.why
        done, since = done + len(rows), since + len(rows)
        if done * 10 >= BLOCKS * tenth:
            print(f"  {done:>10}{since / spent:>14.0f}{_memory_mb():>11.0f}", flush=True)
            spent, since, tenth = 0.0, 0, done * 10 // BLOCKS + 1
    await _sets(store, platform)
    store.close()


def _memory_mb() -> float:
    """Memory of the process itself: pages of the store that are mapped into it do not count."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) * 1024 / 1e6


async def _sets(store: SqliteStore, platform: PlatformChain) -> None:
    """Compare the median of reading validator sets at the first heights with that at the last."""
    reader = PlatformReader(store, platform.ledger.parameters)
    last = platform.ledger.height
    found = []
    for first in (1, last - _ROUNDS):
        each = []
        for height in range(first, first + _ROUNDS):
            began = time.process_time()
            await reader.validators_at(PRIMARY_NETWORK, height)
            each.append(time.process_time() - began)
        found.append(median(each) * 1e6)
    old, new = found
    missed = "" if max(old, new) / min(old, new) <= AIM_RATIO else "  missed"
    print(f"  set at heights from 1 on {old:.0f} us, up to {last} {new:.0f} us: ratio {new / old:.2f}{missed}")
