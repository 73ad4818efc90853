"""Follow an upstream to its tip in this process, and die at the n-th write if requested."""

import asyncio
from pathlib import Path

from tests.store.opened import die_at, open_store
from tests.sync.history import START

from icefall.compose.node_setup import configured_network, node_logs
from icefall.config.load import load
from icefall.node.store import PACKAGE, StartRequest, admit, store_path
from icefall.primary.chains import index_x
from icefall.primary.sync import NodeFollowing
from icefall.xchain.ledger import Ledger

TIP = {"X": 176, "P": 13, "C": 12}


async def follow(directory: Path, url: str) -> None:
    (directory / "run").mkdir(exist_ok=True)
    arguments = [f"--data-dir={directory}", f"--upstream={url}", "--index-enabled=true", "--log-display-level=off"]
    config = load("node", arguments, {}, directory).config
    network = configured_network(config, START)
    store = open_store(store_path(directory), PACKAGE)
    await store.write(lambda tx: admit(tx, StartRequest(config.network_id, True, True, False), START))
    spec = network.asset_chains[0]
    ledger = Ledger(store, spec.rules, spec.genesis, spec.block_0, network.subnet_of, index_x)
    await ledger.start()
    logs = node_logs(config, "engine", network, create=True)
    following = NodeFollowing(config.upstream, network, store, ledger, logs, run_max=16, indexed=True)
    tasks = following.tasks()
    while (ledger.height, *(following.foreign[name].position.count for name in ("P", "C"))) != tuple(TIP.values()):
        assert not any(task.done() for task in tasks)
        await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await following.close()
    store.close()


def run(directory: Path, url: str, die_at_write: int | None = None) -> None:
    if die_at_write is not None:
        die_at(die_at_write)
    asyncio.run(follow(directory, url))
