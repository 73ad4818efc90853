"""The engine process: the one writer of a data directory, and what it is made of."""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from icefall import __version__
from icefall.access.keeper import keep_limits
from icefall.access.limits import limits_are_on
from icefall.api.dialect import DIALECTS
from icefall.api.routes import NODE_BASES
from icefall.config.load import ChainConfig, Config
from icefall.db.engine import StoreError, Transaction
from icefall.db.lock import StoreLock
from icefall.db.sqlite import SqliteStore
from icefall.demo.history import BEGUN
from icefall.errors import CallFailed, StartRefused
from icefall.evm.following.health import wellbeing
from icefall.evm.reading.chain import ChainReader
from icefall.evm.reading.directory import ChainFile
from icefall.evm.storing.store import store_path as store_path_of_chain
from icefall.ipc.socket import EngineServer, socket_path
from icefall.node import index
from icefall.node.admin.commands import Admin
from icefall.node.admin.profiles import LockStats, Profiles
from icefall.node.admission import StartRequest, admit, refusal
from icefall.node.chains import Chains
from icefall.node.health.checks import ChainCheck, EngineTraffic, MovingChain, Thresholds, node_checks, shutting_down
from icefall.node.health.runner import Check, Health, Unhealthy
from icefall.node.identity import ensure_identity
from icefall.node.store import PACKAGE, SQL, NodeReader, facts_learned, put_learned, read_fact, store_path
from icefall.observe import counters as meters
from icefall.observe.log import Log, Logs, open_logs
from icefall.primary.beginning import foreign_chains, genesis_time, put_state, take_over_history
from icefall.primary.following import NodeFollowing, greet, learn
from icefall.primary.network import AssetChainSpec, LearnedNetwork, Network, network_of
from icefall.run.supervisor import READY, when_orphaned
from icefall.wire.genesis.network import KNOWN_NETWORKS
from icefall.wire.genesis.networks import network_name
from icefall.xchain.chain import AssetChain, BlockPace
from icefall.xchain.ledger import Ledger
from icefall.xchain.model import AcceptedBlock
from icefall.xchain.store import Checkpoint

_LOOK_S = 1.0  # how often an indexer is looked after


class Issuer(Protocol):
    """Takes transactions for one asset chain."""

    async def issue(self, tx: str, encoding: str) -> bytes: ...

    def state_of(self, txid: bytes) -> str: ...


class ChainServices(NamedTuple):
    """What moves the chains: who takes transactions, who knows the heights, what must run for ever."""

    issuers: dict[bytes, Issuer]
    progress: dict[bytes, MovingChain]
    loops: list[Callable[[], Coroutine[Any, Any, None]]]
    following: NodeFollowing | None


class EngineContext(NamedTuple):
    """What everything in the engine is built upon."""

    config: Config
    network: Network
    store: SqliteStore
    logs: Logs


async def run_engine(config: Config) -> int:
    """Until told to stop; the process's exit code."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    told = _StopSignals(stop)
    starting = asyncio.create_task(_start(config, stop))
    either: set[asyncio.Future[Any]] = {starting, stopped}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():  # told to stop, or left alone, while still starting
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return stopped.result()
    running = await starting
    told.health = running.health
    log = running.world.logs["main"]
    log.info("the engine is ready", network=network_name(config.network_id), version=__version__)
    with suppress(BrokenPipeError):
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
    code = await stopped
    await running.close()
    log.info("the engine has stopped", code=code)
    return code


class RunningEngine(NamedTuple):
    """A started engine, and how to end it."""

    world: EngineContext
    moving: ChainServices
    health: Health
    server: EngineServer
    tasks: list[asyncio.Task[None]]
    lock: StoreLock

    async def close(self) -> None:
        await self.server.stop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.moving.following:
            await self.moving.following.close()
        self.world.store.close()
        self.lock.release()


async def _start(config: Config, stop: Callable[[int], None]) -> RunningEngine:
    """First everything that may refuse, then what is written, then what runs."""
    data_dir = Path(config.data_dir)
    lock = StoreLock(data_dir / "node.lock")
    store = SqliteStore(store_path(data_dir), PACKAGE)
    wanted = StartRequest(config.network_id, bool(config.upstream), config.index_enabled, config.index_allow_incomplete)
    reason = refusal(partial(read_fact, store), wanted)
    if reason is not None:
        raise StartRefused(reason)
    start, recorded = genesis_time(config, store)
    found = await _learned(config, store)
    network = network_of(config, start, found)
    if config.upstream:
        await greet(config, network)
    await store.write(partial(_bind, wanted, start, found, recorded))

    world = EngineContext(config, network, store, logs_of(config, "engine", network, create=True))
    meters.clear(data_dir / "run")
    ensure_identity(data_dir / "staking")
    _make(Path(config.plugin_dir))
    moving = await _moving(world)
    admin = await _admin(world)
    traffic = EngineTraffic(time.monotonic_ns)
    health = await _health(world, moving, traffic, stop)
    server = EngineServer(socket_path(data_dir), {**admin.commands(), **_issuing(moving.issuers)}, traffic.call)
    await server.start()
    log = world.logs["main"]
    loops = [health.run_forever, *moving.loops]
    if limits_are_on(config.rate_limits, config.http_host):
        loops.append(partial(keep_limits, data_dir))
    if config.chain:
        loops.append(partial(_watch_indexers, [_index_check(chain, data_dir) for chain in config.chain], health))
    tasks = [asyncio.create_task(loop()) for loop in loops]
    for task in tasks:
        task.add_done_callback(lambda done: _ended(done, log, stop))
    followers = moving.following.tasks() if moving.following else []
    for task in followers:
        task.add_done_callback(lambda done: _ended(done, log, stop, may_return=True))
    return RunningEngine(world, moving, health, server, [*tasks, *followers], lock)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartRefused(f"{directory} cannot be made: {error.strerror}") from error


def _bind(wanted: StartRequest, start: int, found: LearnedNetwork | None, recorded: bool, tx: Transaction) -> None:
    admit(tx, wanted, start)
    if recorded:
        put_state(BEGUN, tx)
    if found is not None:
        put_learned(tx, found.x_genesis, found.c_chain_id)


async def _learned(config: Config, store: SqliteStore) -> LearnedNetwork | None:
    """A network without a genesis file here is learnt from its upstream once, and remembered."""
    if not config.upstream or config.genesis_file or config.network_id in KNOWN_NETWORKS:
        return None
    known = facts_learned(store)
    return LearnedNetwork(*known) if known else await learn(config)


async def _moving(world: EngineContext) -> ChainServices:
    config, network, store, logs = world
    if config.upstream:
        return await _following(world)
    await store.write(lambda tx: tx.run(SQL.put_fact, {"name": "bootstrapping", "value": "[]"}))
    pace = BlockPace(config.block_time / 1e9, config.block_txs_max)
    foreign = foreign_chains(config, network, store)
    chains = {}
    for spec in network.asset_chains:
        chain = AssetChain(_ledger(world, spec), pace, logs[spec.chain.name])
        await chain.ledger.start()
        if spec.chain.chain_id == network.genesis.x_chain_id:
            await take_over_history(store, chain.ledger, foreign, logs["main"])
        logs["main"].info("a chain is open", chain=spec.chain.id_text, height=chain.ledger.height)
        chains[spec.chain.chain_id] = chain
    progress: dict[bytes, MovingChain] = {chain_id: chain.ledger for chain_id, chain in chains.items()}
    progress |= {chain.chain_id: chain for chain in foreign.values()}
    return ChainServices(dict(chains), progress, [chain.run_forever for chain in chains.values()], None)


async def _following(world: EngineContext) -> ChainServices:
    config, network, store, logs = world
    if config.asset_chain:
        raise StartRefused("[[asset_chain]] is for a network of your own: it cannot be combined with --upstream")
    x = network.asset_chains[0]
    ledger = _ledger(world, x)
    await ledger.start()
    following = NodeFollowing(config, network, store, ledger, logs)
    progress: dict[bytes, MovingChain] = {chain.chain_id: chain for chain in following.foreign.values()}
    progress[x.chain.chain_id] = ledger
    return ChainServices({x.chain.chain_id: following}, progress, [following.tell_progress], following)


def _ledger(world: EngineContext, spec: AssetChainSpec) -> Ledger:
    is_x = spec.chain.chain_id == world.network.genesis.x_chain_id
    on_accept = index_x if is_x and world.config.index_enabled else None
    return Ledger(world.store, spec.rules, spec.genesis, spec.block_0, world.network.subnet_of, on_accept)


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


def _ended(task: asyncio.Task[Any], log: Log, stop: Callable[[int], None], *, may_return: bool = False) -> None:
    """A loop that must run for ever has ended: nothing it should do is being done, so neither are we.

    A follower may return: it has said why. One that fails is a bug, and must not fail in silence.
    """
    if task.cancelled() or (may_return and task.exception() is None):
        return
    log.fatal("the engine cannot go on", error=repr(task.exception()))
    stop(1)


def index_x(tx: Transaction, at: Checkpoint, accepted: AcceptedBlock) -> None:
    """The X-Chain's block and transactions, as they enter the index."""
    when = accepted.accepted_ns
    index.append(tx, index.X_BLOCK, [(accepted.container_id, when, accepted.block.height, None)])
    numbered = enumerate(accepted.effects, at.next_seq)
    index.append(tx, index.X_TX, [(row.tx.txid, when, seq, None) for seq, row in numbered])


def _issuing(issuers: dict[bytes, Issuer]) -> dict[str, Callable[..., Any]]:
    def of(chain: bytes) -> Issuer:
        if chain not in issuers:
            raise CallFailed("no such chain")
        return issuers[chain]

    return {
        "issue_tx": lambda chain, tx, encoding: of(chain).issue(tx, encoding),
        "tx_state": lambda chain, txid: of(chain).state_of(txid),
    }


async def _admin(world: EngineContext) -> Admin:
    config, network, store, logs = world
    locks = LockStats()
    admin = Admin(
        store,
        Chains(network.chains, NodeReader(store)),
        NODE_BASES,
        logs,
        Profiles(Path(config.profile_dir), locks),
        Path(config.plugin_dir),
        locks,
        alias_in_bytes=DIALECTS[config.dialect].alias_in_bytes,
    )
    await admin.restore_levels()
    return admin


async def _health(
    world: EngineContext, moving: ChainServices, traffic: EngineTraffic, stop: Callable[[int], None]
) -> Health:
    config, network, store, logs = world

    def low_disk(text: str) -> None:
        logs["main"].fatal(text)
        stop(1)

    health = Health(store, logs["main"], config.health_check_frequency, config.health_check_timeout)
    await health.begin()
    limits = Thresholds(
        config.system_tracker_disk_warning_available_space_percentage,
        config.system_tracker_disk_required_available_space_percentage,
        config.router_health_max_outstanding_requests,
        config.network_health_min_conn_peers,
    )
    following = moving.following
    statuses = [
        ChainCheck(
            chain,
            moving.progress.get(chain.chain_id),
            partial(following.figures, chain.name) if following else None,
        )
        for chain in network.chains
    ]
    peers = following.peers if following else None
    if following:
        following.on_progress = health.refresh
    for check in node_checks(statuses, store, Path(config.data_dir), limits, traffic, low_disk, peers):
        await health.register(check)
    for chain in config.chain:
        await health.register(_index_check(chain, Path(config.data_dir)))
    return health


def _index_check(chain: ChainConfig, data_dir: Path) -> Check:
    """How the indexer of an EVM chain does, as its store tells. Far behind the head is no failure: it is on its way."""
    reader = ChainReader(ChainFile(store_path_of_chain(data_dir, chain.id), f"chain {chain.id}"))

    async def run() -> Any:
        found = await wellbeing(reader, time.time())
        if found.complaint:
            raise Unhealthy(found.complaint, found.told or None)
        return found.told

    return Check(f"chain-{chain.id}", run)


async def _watch_indexers(checks: list[Check], health: Health) -> None:
    """An indexer begins, stops and recovers between two rounds of checks: health is told at once. Runs for ever."""
    known: list[bool] = []
    while True:
        now = [await _passes(check) for check in checks]
        if now != known:
            known = now
            health.refresh()
        await asyncio.sleep(_LOOK_S)


async def _passes(check: Check) -> bool:
    try:
        await check.run()
    except (Unhealthy, StoreError):
        return False
    return True


class _StopSignals:
    """What the supervisor and the system tell this process, from its first moment on."""

    def __init__(self, stop: Callable[[int], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = stop
        self.health: Health | None = None
        when_orphaned(self._heard)
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, stop, 0)

    def _heard(self, line: str) -> None:
        if not line:  # the supervisor is gone
            self._loop.call_soon_threadsafe(self._stop, 1)
        elif line == "draining" and self.health is not None:
            draining: Awaitable[None] = self.health.register(shutting_down())
            self._loop.call_soon_threadsafe(asyncio.ensure_future, draining)
