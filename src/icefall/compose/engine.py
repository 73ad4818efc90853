"""The engine process: the only writer of the node's store. This is its composition root."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from icefall import __version__
from icefall.access.budget_server import serve_budgets
from icefall.api.dialect import DIALECTS
from icefall.compose.chain_checks import chain_check, replica_check, watch_chain_checks
from icefall.compose.child import DRAINING, ENGINE, READY, watch_stop
from icefall.compose.node_setup import configured_network, node_logs, unstored_path
from icefall.compose.stores import Stores, stores_of
from icefall.compose.webhook_state import WebhookState, watch_webhooks
from icefall.compose.webhooks import primary_outbox
from icefall.config.settings import Config
from icefall.db.disk import DiskGuard, GuardedStore
from icefall.db.engine import Store, StoreError, StoreLost, Transaction
from icefall.demo import history
from icefall.errors import CallFailed, StartRefused
from icefall.ipc.socket import SocketServer, socket_path
from icefall.node.admin.commands import Admin
from icefall.node.admin.profiles import LockStats, Profiles
from icefall.node.chains import NODE_BASES, Chains
from icefall.node.health.checks import ChainCheck, EngineTraffic, MovingChain, Thresholds, node_checks, shutting_down
from icefall.node.health.runner import Check, Health, UnstoredFailure
from icefall.node.identity import ensure_identity
from icefall.node.store import SQL, NodeReader, StartRequest, admit, put_learned, read_learned, read_meta, refusal
from icefall.node.sync.foreign import ForeignChain
from icefall.observe import counters
from icefall.observe.cpu_samples import SampledProgram, samples_directory
from icefall.observe.log import Log, Logs
from icefall.observe.program import program_pid, program_processes
from icefall.primary.chains import foreign_chains, genesis_time, import_history, index_x, put_state
from icefall.primary.listed import ListedCore, ListedPlatform, Steps, list_stored
from icefall.primary.network import AssetChainSpec, LearnedNetwork, Network
from icefall.primary.outbox import PrimaryOutbox
from icefall.primary.platform import executed_chains
from icefall.primary.sync import NodeFollowing, check_upstreams, learn
from icefall.webhooks.model import PRIMARY
from icefall.wire.genesis.network import KNOWN_NETWORKS
from icefall.wire.ids import network_name
from icefall.xchain.chain import AssetChain, BlockPace
from icefall.xchain.ledger import Ledger
from icefall.xchain.listed import StoredTxs
from icefall.xchain.model import AcceptedBlock
from icefall.xchain.store import Checkpoint

_WATCH_EVERY_S = 1.0


class Issuer(Protocol):
    """Accepts transactions for one asset chain."""

    async def issue(self, tx: str, encoding: str) -> bytes: ...

    def state_of(self, txid: bytes) -> str: ...


class ChainServices(NamedTuple):
    """What extends the chains: issuers of transactions, chains with their heights (both by chain ID), loops to run."""

    issuers: dict[bytes, Issuer]
    progress: dict[bytes, MovingChain]
    loops: list[Callable[[], Coroutine[Any, Any, None]]]
    following: NodeFollowing | None
    foreign: dict[str, ForeignChain]


class EngineContext(NamedTuple):
    """What the parts of the engine are built from."""

    config: Config
    network: Network
    store: Store
    logs: Logs
    disk: DiskGuard
    stores: Stores
    indexes: bool
    webhooks: WebhookState
    outbox: PrimaryOutbox


async def run_engine(config: Config, *, indexes: bool, restarted: bool = False) -> int:
    """Runs until it is stopped; the process's exit code. `indexes`: EVM chains are indexed by a process next to it.
    `restarted`: the program has been running already."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    running: RunningEngine | None = None

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    def received(message: str) -> None:
        if message == DRAINING and running is not None:
            draining.append(asyncio.ensure_future(running.health.register(shutting_down())))

    draining: list[asyncio.Future[None]] = []  # a task without a reference may be collected
    watch_stop(stop, received=received)
    starting = asyncio.create_task(_start(config, stop, indexes=indexes, restarted=restarted))
    either: set[asyncio.Future[Any]] = {starting, stopped}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():  # stopped while still starting
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return stopped.result()
    running = await starting
    log = running.context.logs["main"]
    log.info("the engine is ready", network=network_name(config.network_id), version=__version__)
    with suppress(BrokenPipeError):
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
    code = await stopped
    await running.close()
    log.info("the engine has stopped", code=code)
    return code


class RunningEngine(NamedTuple):
    """A started engine."""

    context: EngineContext
    services: ChainServices
    health: Health
    server: SocketServer
    tasks: list[asyncio.Task[None]]

    async def close(self) -> None:
        await self.server.stop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.services.following:
            await self.services.following.close()
        self.context.webhooks.close()
        self.context.outbox.close()
        self.context.store.close()
        self.context.stores.close()


async def _start(config: Config, stop: Callable[[int], None], *, indexes: bool, restarted: bool) -> RunningEngine:
    """First everything that may be refused, then what is written, then what runs."""
    data_dir = Path(config.data_dir)
    stores = stores_of(config)
    store = stores.node_store()
    wanted = StartRequest(config.network_id, bool(config.upstream), config.index_enabled, config.index_allow_incomplete)
    reason = refusal(partial(read_meta, store), wanted)
    if reason is not None:
        raise StartRefused(reason)
    start, recorded = genesis_time(store, with_history=wants_history(config))
    found = await _learned(config, store)
    network = configured_network(config, start, found)
    if config.upstream:
        await check_upstreams(config.upstream, network)
    await store.write(partial(_bind, wanted, start, found, recorded))

    disk = DiskGuard(data_dir, config.system_tracker_disk_required_available_space_percentage)
    logs = node_logs(config, "engine", network, create=True)
    chain_ids = [*(chain.id for chain in config.chain), PRIMARY]
    webhooks = WebhookState(stores, lambda: chain_ids)
    outbox = primary_outbox(config, stores, network)
    context = EngineContext(config, network, store, logs, disk, stores, indexes, webhooks, outbox)
    if not restarted:
        counters.clear(data_dir / "run")
    ensure_identity(data_dir / "staking")
    _create(Path(config.plugin_dir))
    services = await _chain_services(context)
    admin = await _admin(context)
    traffic = EngineTraffic(time.monotonic_ns)
    health = await _health(context, services, traffic)
    commands = {**admin.commands(), **_issue_commands(services.issuers), **_platform_commands(services.following)}
    server = SocketServer(socket_path(data_dir), commands, traffic.call)
    await server.start()
    log = context.logs["main"]
    loops = [health.run_forever, *services.loops]
    loops.append(partial(serve_budgets, data_dir, stores.access_store))
    loops.append(partial(list_stored, _listed(context, services), log))
    if stores.url:
        loops.append(partial(_watch_session, store))
    if config.chain:
        loops.append(partial(watch_chain_checks, _chain_checks(context), health))
    loops.append(partial(watch_webhooks, context.webhooks, health))
    tasks = [asyncio.create_task(loop()) for loop in loops]
    for task in tasks:
        task.add_done_callback(lambda done: _ended(done, log, stop))
    followers = services.following.tasks() if services.following else []
    for task in followers:
        task.add_done_callback(lambda done: _ended(done, log, stop, may_return=True))
    return RunningEngine(context, services, health, server, [*tasks, *followers])


def _listed(context: EngineContext, services: ChainServices) -> list[Steps]:
    """The chains of the primary network whose stored blocks are put into lists."""
    store = context.store
    return [
        StoredTxs(store, context.network.genesis.x_chain_id),
        ListedPlatform(store),
        ListedCore(store, services.foreign["C"], context.outbox),
    ]


def _create(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartRefused(f"{directory} cannot be created: {error.strerror}") from error


def _bind(wanted: StartRequest, start: int, found: LearnedNetwork | None, recorded: bool, tx: Transaction) -> None:
    admit(tx, wanted, start)
    if recorded:
        put_state(history.BEGUN, tx)
    if found is not None:
        put_learned(tx, found.x_genesis, found.c_chain_id)


def wants_history(config: Config) -> bool:
    fees = config.tx_fee, config.create_asset_tx_fee
    return config.demo and history.fits(config.network_id, config.genesis_file, config.upstream, fees)


async def _learned(config: Config, store: Store) -> LearnedNetwork | None:
    """A network that we have no genesis of is learned from an upstream once, and stored."""
    if not config.upstream or config.genesis_file or config.network_id in KNOWN_NETWORKS:
        return None
    known = read_learned(store)
    return LearnedNetwork(*known) if known else await learn(config.upstream, config.network_id)


async def _chain_services(context: EngineContext) -> ChainServices:
    config, network, store, logs, *_ = context
    if config.upstream:
        return await _following(context)
    await store.write(lambda tx: tx.run(SQL.put_meta, {"name": "bootstrapping", "value": "[]"}))
    pace = BlockPace(config.block_time / 1e9, config.block_txs_max)
    foreign = foreign_chains(network, store, indexed=config.index_enabled)
    followed, platform = executed_chains(network, store, foreign, logs["P"], time.monotonic, context.outbox)
    if platform is not None:
        await platform.start()
        await platform.catch_up()
    chains = {}
    for spec in network.asset_chains:
        chain = AssetChain(
            _ledger(context, spec),
            pace,
            logs[spec.chain.name],
            check_space=context.disk.check,
            remembers_all_refusals=DIALECTS[config.dialect].remembers_all_refusals,
        )
        await chain.ledger.start()
        if spec.chain.chain_id == network.genesis.x_chain_id:
            await import_history(store, chain.ledger, followed, logs["main"])
        logs["main"].info("chain loaded", chain=spec.chain.id_text, height=chain.ledger.height)
        chains[spec.chain.chain_id] = chain
    progress: dict[bytes, MovingChain] = {chain_id: chain.ledger for chain_id, chain in chains.items()}
    progress |= {chain.chain_id: chain for chain in foreign.values()}
    return ChainServices(dict(chains), progress, [chain.run_forever for chain in chains.values()], None, foreign)


async def _following(context: EngineContext) -> ChainServices:
    config, network, store, logs, *_ = context
    if config.asset_chain:
        raise StartRefused("[[asset_chain]] is for a network of your own: it cannot be combined with --upstream")
    x = network.asset_chains[0]
    ledger = _ledger(context, x)
    await ledger.start()
    following = NodeFollowing(
        config.upstream, network, store, ledger, logs, indexed=config.index_enabled, outbox=context.outbox
    )
    await following.start()
    progress: dict[bytes, MovingChain] = {chain.chain_id: chain for chain in following.foreign.values()}
    progress[x.chain.chain_id] = ledger
    loops = [following.report_progress, following.observing.run]
    return ChainServices({x.chain.chain_id: following}, progress, loops, following, following.foreign)


def _ledger(context: EngineContext, spec: AssetChainSpec) -> Ledger:
    is_x = spec.chain.chain_id == context.network.genesis.x_chain_id
    subnet_of, outbox = context.network.subnet_of, context.outbox
    if not is_x:
        return Ledger(context.store, spec.rules, spec.genesis, spec.block_0, subnet_of)

    def on_accept(tx: Transaction, at: Checkpoint, accepted: AcceptedBlock) -> None:
        if context.config.index_enabled:
            index_x(tx, at, accepted)
        outbox.put_asset(tx, at, accepted)

    prepare = outbox.preparing("X")
    return Ledger(context.store, spec.rules, spec.genesis, spec.block_0, subnet_of, on_accept, prepare)


def _ended(task: asyncio.Task[Any], log: Log, stop: Callable[[int], None], *, may_return: bool = False) -> None:
    """Stops the engine when a loop that must run for ever has ended.

    A follower may return: it has logged why. One that raises is a bug, which must not go unnoticed.
    """
    if task.cancelled() or (may_return and task.exception() is None):
        return
    log.fatal("the engine cannot go on", error=repr(task.exception()))
    stop(1)


def _issue_commands(issuers: dict[bytes, Issuer]) -> dict[str, Callable[..., Any]]:
    def of(chain: bytes) -> Issuer:
        if chain not in issuers:
            raise CallFailed("no such chain")
        return issuers[chain]

    return {
        "issue_tx": lambda chain, tx, encoding: of(chain).issue(tx, encoding),
        "tx_state": lambda chain, txid: of(chain).state_of(txid),
    }


def _platform_commands(following: NodeFollowing | None) -> dict[str, Callable[..., Any]]:
    if following is None:
        return {}
    return {"platform_call": following.ask_platform, "platform_issue": following.issue_platform}


async def _admin(context: EngineContext) -> Admin:
    config, network, store, logs, *_ = context
    locks = LockStats()
    admin = Admin(
        GuardedStore(store, context.disk),
        Chains(network.chains, NodeReader(store)),
        NODE_BASES,
        logs,
        Profiles(Path(config.profile_dir), locks, _sampled_program(Path(config.data_dir))),
        Path(config.plugin_dir),
        locks,
        alias_in_bytes=DIALECTS[config.dialect].alias_in_bytes,
    )
    await admin.restore_levels()
    return admin


def _sampled_program(data_dir: Path) -> SampledProgram:
    def processes() -> dict[int, str]:
        found = {one.pid: one.role for one in program_processes(program_pid())}
        return found or {os.getpid(): ENGINE}  # no /proc

    return SampledProgram(samples_directory(data_dir / "run", program_pid()), processes)


async def _health(context: EngineContext, services: ChainServices, traffic: EngineTraffic) -> Health:
    config, network, store, logs, *_ = context
    data_dir = Path(config.data_dir)
    unstored = UnstoredFailure(unstored_path(data_dir))
    health = Health(store, logs["main"], config.health_check_frequency, config.health_check_timeout, unstored)
    await health.begin()
    limits = Thresholds(
        config.system_tracker_disk_warning_available_space_percentage,
        config.system_tracker_disk_required_available_space_percentage,
        config.router_health_max_outstanding_requests,
        config.network_health_min_conn_peers,
    )
    following = services.following
    statuses = [
        ChainCheck(
            chain,
            services.progress.get(chain.chain_id),
            partial(following.stats_of, chain.name) if following else None,
        )
        for chain in network.chains
    ]
    peers = following.peers if following else None
    if following:
        following.on_progress = health.refresh
    shows_idle_times = DIALECTS[config.dialect].shows_idle_times
    for check in node_checks(statuses, store, data_dir, limits, traffic, peers, shows_idle_times=shows_idle_times):
        await health.register(check)
    for check in _chain_checks(context):
        await health.register(check)
    if context.stores.replicas is not None:
        await health.register(replica_check(context.stores.replicas))
    return health


def _chain_checks(context: EngineContext) -> list[Check]:
    return [chain_check(one, context.stores, is_indexed_here=context.indexes) for one in context.config.chain]


async def _watch_session(store: Store) -> None:
    """Ends the engine when its session at the server is lost: what it knows may be outdated when it gets another."""
    while True:
        try:
            await store.write(lambda tx: None)
        except StoreLost:
            raise
        except StoreError:  # as the health checks will report
            pass
        await asyncio.sleep(_WATCH_EVERY_S)
