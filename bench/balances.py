"""Indexing with balances from storage against balances from logs, in turns: CPU and bytes per transfer, and comparisons
of audits. The same chain, from an upstream that offers what proofs need and from one that does not."""

import asyncio
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.evm_chain import CHAIN_ID, TransferChain
from bench.evm_upstream import EncodedChain, upstream
from bench.ingest import ADDRESSES, BLOCKS, PER_BLOCK, indexed
from icefall.db.engine import Transaction
from icefall.db.sqlite import SqliteStore
from icefall.evm.auditing.audit import Auditor
from icefall.evm.storing.store import PACKAGE, ChainStore, store_path
from icefall.observe.log import quiet
from icefall.upstream.evm.upstream import EvmUpstream

TURNS = 3


def run() -> None:
    blocks = int(os.environ.get("ICEFALL_BENCH_BLOCKS", BLOCKS))
    chain = TransferChain(PER_BLOCK, ADDRESSES)
    encoded = list(chain.blocks(blocks))
    transfers = sum(one.block.count(b'"0xa9059cbb') for one in encoded)
    print(f"balances: {blocks} blocks, {transfers} ERC-20 transfers, {TURNS} turns of each")
    cpu: dict[str, list[float]] = {"logs": [], "storage": []}
    sizes: dict[str, float] = {}
    checks: dict[str, int] = {}
    with (
        upstream(EncodedChain(CHAIN_ID, encoded, chain.state)) as (by_logs, _),
        upstream(EncodedChain(CHAIN_ID, encoded, chain.state, chain.read_by)) as (by_storage, _),
        TemporaryDirectory() as folder,
    ):
        data_dir = Path(folder)
        config = data_dir / "icefall.toml"
        for _ in range(TURNS):
            for name, url in (("logs", by_logs), ("storage", by_storage)):
                shutil.rmtree(data_dir / "data", ignore_errors=True)
                config.write_text(f'[[chain]]\nid = "{CHAIN_ID}"\nrpc = "{url}"\n')
                cpu[name].append(indexed(data_dir, config, len(encoded) - 1).cpu / transfers * 1e6)
                path = store_path(data_dir / "data", str(CHAIN_ID))
                sizes[name] = path.stat().st_size / transfers
                checks[name] = asyncio.run(_comparisons(path, url))
    for name, each in cpu.items():
        shown = ", ".join(f"{one:.1f}" for one in each)
        print(f"  {name:<8} CPU us per transfer {shown}; {sizes[name]:.1f} bytes; {checks[name]} comparisons of audits")
    more = min(cpu["storage"]) / min(cpu["logs"]) - 1, sizes["storage"] / sizes["logs"] - 1
    print(f"  with storage: {more[0]:+.1%} CPU (least of the turns), {more[1]:+.1%} bytes (aim +10 %)")
    print(f"  comparisons: {1 - checks['storage'] / checks['logs']:.1%} fewer (aim 90 %)")


async def _comparisons(path: Path, url: str) -> int:
    """How often audits of all blocks ask a contract."""
    store = ChainStore(SqliteStore(path, PACKAGE))
    source = EvmUpstream([url], CHAIN_ID, quiet())

    def forget(tx: Transaction) -> None:
        tx.run("delete from audit")

    await store.write(forget)
    tip = store.tip()
    assert tip is not None
    auditor = Auditor(store, source, 5_000, quiet())
    while await auditor.step(tip):
        pass
    await source.close()
    store.close()
    return auditor.checks
