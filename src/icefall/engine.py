"""The engine process: the one writer of a data directory, and what it is made of."""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from icefall import __version__, meters
from icefall.api.routes import NODE_BASES
from icefall.config import Config
from icefall.db.engine import Transaction
from icefall.db.lock import StoreLock
from icefall.db.sqlite import SqliteStore
from icefall.errors import CallFailed
from icefall.link import EngineServer, socket_path
from icefall.network import Network, network_of
from icefall.node import index
from icefall.node.admin import Admin
from icefall.node.chains import Chains
from icefall.node.checks import ChainStatus, Thresholds, Traffic, node_checks, shutting_down
from icefall.node.health import Health
from icefall.node.identity import ensure_identity
from icefall.node.profiles import LockStats, Profiles
from icefall.node.store import PACKAGE, NodeReader, bind_network, store_path
from icefall.observe import Logs, open_logs
from icefall.processes import READY, when_orphaned
from icefall.wire.ids import id_text
from icefall.wire.networks import network_name
from icefall.xchain.chain import AssetChain, Pace
from icefall.xchain.ledger import Ledger
from icefall.xchain.model import Accepted
from icefall.xchain.store import Checkpoint


async def run_engine(config: Config) -> int:
    """Until told to stop; the process's exit code."""
    data_dir = Path(config.data_dir)
    lock = StoreLock(data_dir / "node.lock")
    store = SqliteStore(store_path(data_dir), PACKAGE)
    start = await store.write(lambda tx: _admitted(tx, config))
    network = network_of(config, start)
    logs = logs_of(config, "engine", network, create=True)
    meters.clear(data_dir / "run")
    ensure_identity(data_dir / "staking")

    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    ledgers = _ledgers(config, network, store, logs)
    for chain in ledgers.values():
        await chain.ledger.start()
        logs["main"].info("a chain is open", chain=id_text(chain.ledger.rules.chain_id), height=chain.ledger.height)
    admin = await _admin(config, network, store, logs)
    traffic = Traffic(time.monotonic_ns)
    health = await _health(config, network, store, logs, ledgers, traffic, stop)
    server = EngineServer(socket_path(data_dir), {**admin.commands(), **_ledger_commands(ledgers)}, traffic.call)
    await server.start()
    tasks = [asyncio.create_task(health.run_forever())]
    tasks += [asyncio.create_task(chain.run_forever()) for chain in ledgers.values()]
    for task in tasks:
        task.add_done_callback(lambda done: _ended(done, logs, stop))
    _follow_supervisor(health, stop)
    logs["main"].info("the engine is ready", network=network_name(config.network_id), version=__version__)
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    code = await stopped
    await server.stop()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    store.close()
    lock.release()
    logs["main"].info("the engine has stopped", code=code)
    return code


def _admitted(tx: Transaction, config: Config) -> int:
    """In one transaction: the data directory is this network's, and its index stays what it promised to be."""
    start = bind_network(tx, config.network_id, int(time.time()))
    index.admit(tx, enabled=config.index_enabled, allow_incomplete=config.index_allow_incomplete)
    return start


def logs_of(config: Config, process: str, network: Network, *, create: bool) -> Logs:
    return open_logs(
        process,
        ["main", "vm-factory", *(chain.name for chain in network.chains)],
        Path(config.log_dir),
        (config.log_level.upper(), config.log_display_level.upper()),
        config.log_format,
        shared=Path(config.data_dir) / "run" / "levels",
        create=create,
    )


def _ended(task: asyncio.Task[Any], logs: Logs, stop: Callable[[int], None]) -> None:
    """A loop that must run for ever has ended: nothing it should do is being done, so neither are we."""
    if task.cancelled():
        return
    logs["main"].fatal("the engine cannot go on", error=repr(task.exception()))
    stop(1)


def _ledgers(config: Config, network: Network, store: SqliteStore, logs: Logs) -> dict[bytes, AssetChain]:
    pace = Pace(config.block_time / 1e9, config.block_txs_max)
    indexed = network.genesis.x_chain_id if config.index_enabled else b""
    chains = {}
    for spec in network.asset_chains:
        on_accept = index_x if spec.chain.chain_id == indexed else None
        ledger = Ledger(store, spec.rules, spec.genesis, spec.block_0, network.subnet_of, on_accept)
        chains[spec.chain.chain_id] = AssetChain(ledger, pace, logs[spec.chain.name])
    return chains


def index_x(tx: Transaction, at: Checkpoint, accepted: Accepted) -> None:
    """The X-Chain's block and transactions, as they enter the index."""
    when = accepted.accepted_ns
    index.append(tx, index.X_BLOCK, [(accepted.container_id, when, accepted.block.height, None)])
    numbered = enumerate(accepted.effects, at.next_seq)
    index.append(tx, index.X_TX, [(row.tx.txid, when, seq, None) for seq, row in numbered])


def _ledger_commands(ledgers: dict[bytes, AssetChain]) -> dict[str, Callable[..., Any]]:
    def of(chain: bytes) -> AssetChain:
        if chain not in ledgers:
            raise CallFailed("no such chain")
        return ledgers[chain]

    return {
        "issue_tx": lambda chain, tx, encoding: of(chain).issue(tx, encoding),
        "is_processing": lambda chain, txid: of(chain).is_processing(txid),
    }


async def _admin(config: Config, network: Network, store: SqliteStore, logs: Logs) -> Admin:
    locks = LockStats()
    admin = Admin(
        store,
        Chains(network.chains, NodeReader(store)),
        NODE_BASES,
        logs,
        Profiles(Path(config.profile_dir), locks),
        Path(config.plugin_dir),
        locks,
    )
    await admin.restore_levels()
    return admin


async def _health(
    config: Config,
    network: Network,
    store: SqliteStore,
    logs: Logs,
    ledgers: dict[bytes, AssetChain],
    traffic: Traffic,
    stop: Callable[[int], None],
) -> Health:
    def low_disk(text: str) -> None:
        logs["main"].fatal(text)
        stop(1)

    health = Health(store, logs["main"], config.health_check_frequency, config.health_check_timeout)
    await health.begin()
    limits = Thresholds(
        config.system_tracker_disk_warning_available_space_percentage,
        config.system_tracker_disk_required_available_space_percentage,
        config.router_health_max_outstanding_requests,
    )
    moving = {chain_id: chain.ledger for chain_id, chain in ledgers.items()}
    statuses = [ChainStatus(chain, moving.get(chain.chain_id)) for chain in network.chains]
    for check in node_checks(statuses, store, Path(config.data_dir), limits, traffic, low_disk):
        await health.register(check)
    return health


def _follow_supervisor(health: Health, stop: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()

    def heard(line: str) -> None:
        if line == "draining":
            draining: Awaitable[None] = health.register(shutting_down())
            loop.call_soon_threadsafe(asyncio.ensure_future, draining)
        elif not line:
            loop.call_soon_threadsafe(stop, 1)

    when_orphaned(heard)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, 0)
