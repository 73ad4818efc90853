"""The composition root: which processes a verb means, and what each of them is made of. Nothing else constructs."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from icefall import __version__, meters
from icefall.api.app import App
from icefall.api.assemble import bases_of, meter_labels, routes_of
from icefall.api.dialect import DIALECTS, Dialect
from icefall.api.docs import page
from icefall.api.endpoint import DATA, METRICS, NODE
from icefall.api.endpoints import ENDPOINTS, rows_of
from icefall.api.guards import Hosts, Origins
from icefall.api.handlers.pages import MeterSource, Pages
from icefall.api.openapi import document
from icefall.api.routes import Routes
from icefall.api.rsgi import RsgiApp
from icefall.config import Config
from icefall.db.engine import StoreError
from icefall.db.lock import StoreLock
from icefall.db.sqlite import SqliteReader, SqliteStore
from icefall.errors import StartRefused
from icefall.link import EngineLink, EngineServer, socket_path
from icefall.node.admin import Admin
from icefall.node.chains import Chain, Chains, primary_chains
from icefall.node.checks import ChainStatus, Thresholds, Traffic, node_checks, shutting_down
from icefall.node.facts import NodeFacts
from icefall.node.health import Health
from icefall.node.identity import IdentityError, ensure_identity
from icefall.node.profiles import LockStats, Profiles
from icefall.node.store import PACKAGE, NodeReader, bind_network, store_path
from icefall.observe import LevelPage, Logs
from icefall.processes import (
    READY,
    Address,
    Supervisor,
    claim,
    die_with_parent,
    orders,
    when_orphaned,
)
from icefall.wire.errors import WireError
from icefall.wire.genesis import KNOWN_NETWORKS, NetworkGenesis, network_genesis, packaged_genesis
from icefall.wire.ids import EMPTY_ID, id_text
from icefall.wire.networks import FUJI_ID, MAINNET_ID, network_name

LISTENERS_OF = {"up": (NODE, DATA, METRICS), "node": (NODE,), "data": (DATA,), "metrics": (METRICS,)}
HAS_ENGINE = ("up", "node")
_WORKER_ORDERS = "ICEFALL_TEST_WORKER_ORDERS"  # from a listener to its workers, through granian
_VERSION_TEXT = f"icefall/{__version__}"
_BROWSER_HEADERS = ("Origin", "Accept", "Content-Type", "X-Requested-With")
_KEY_HEADERS = ("X-Service-Api-Key", "X-Glacier-Api-Key", "X-App-Component")


# -- the supervisor ----------------------------------------------------------------------------------------------


def run(verb: str, config: Config) -> int:
    """`icefall up | node | data | metrics`."""
    if config.upstream:
        raise StartRefused("this version does not follow an upstream yet: leave --upstream out")
    config, addresses = _claimed(verb, config)
    data_dir = _made(Path(config.data_dir))
    supervisor = Supervisor(verb, config, lambda text: print(f"icefall: {text}", file=sys.stderr, flush=True))
    supervisor.catch_signals()
    try:
        engine = supervisor.start("engine") if verb in HAS_ENGINE else None
        for listener in addresses:
            supervisor.start(listener)
        supervisor.await_listeners(addresses.values())
        process_file = data_dir / "process.json"
        process_file.write_text(
            json.dumps({"pid": os.getpid(), "enginePid": engine.pid if engine else None,
                        **{f"{name}Uri": address.url for name, address in addresses.items()}}, indent=2)
        )  # fmt: skip
        print(_greeting(verb, config, addresses), flush=True)
        code = supervisor.watch()
        process_file.unlink(missing_ok=True)
        return code
    except StartRefused as refused:
        if str(refused):
            raise
        return 1
    finally:
        supervisor.stop()


def _claimed(verb: str, config: Config) -> tuple[Config, dict[str, Address]]:
    """The configuration with real ports in place of 0, and the address of each listener."""
    ports = {NODE: "http_port", DATA: "data_port", METRICS: "metrics_port"}
    addresses = {
        listener: claim(listener, Address(config.http_host, getattr(config, ports[listener])))
        for listener in LISTENERS_OF[verb]
    }
    changed = {ports[listener]: address.port for listener, address in addresses.items()}
    return msgspec.structs.replace(config, **changed), addresses


def _made(data_dir: Path) -> Path:
    try:
        (data_dir / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartRefused(f"the data directory {data_dir} cannot be made: {error.strerror}") from error
    return data_dir


def _greeting(verb: str, config: Config, addresses: dict[str, Address]) -> str:
    lines = [f"Icefall {__version__} is up: network {network_name(config.network_id)}, data in {config.data_dir}", ""]
    lines += [f"  {name:<8} {address.url}   (read {address.url}/docs)" for name, address in addresses.items()]
    if NODE in addresses:
        url = addresses[NODE].url
        lines += ["", "Try:", f"  curl {url}/ext/health",
                  f"""  curl -H content-type:application/json {url}/ext/info \\
       -d '{{"jsonrpc":"2.0","id":1,"method":"info.getBlockchainID","params":{{"alias":"X"}}}}'"""]  # fmt: skip
    return "\n".join([*lines, "", "Stop with Ctrl-C." if verb == "up" else ""]).rstrip() + "\n"


# -- what engine and workers share -------------------------------------------------------------------------------


def _genesis(config: Config, now: int) -> NetworkGenesis:
    try:
        own = Path(config.genesis_file).read_bytes() if config.genesis_file else None
        if own is None and config.network_id == MAINNET_ID:
            raise StartRefused("mainnet's genesis is not part of the package: give it with --genesis-file")
        genesis = network_genesis(own or packaged_genesis(config.network_id), config.network_id, now)
    except OSError as error:
        raise StartRefused(f"--genesis-file {config.genesis_file}: {error.strerror}") from error
    except WireError as error:
        raise StartRefused(f"--genesis-file {config.genesis_file}: {error}") from error
    known = KNOWN_NETWORKS.get(config.network_id)
    wrong = known.differences(genesis) if known else []
    if wrong:
        name = network_name(config.network_id)
        raise StartRefused(
            f"--genesis-file {config.genesis_file} is not the genesis of {name}: other {', '.join(wrong)}"
        )
    return genesis


def _chains(genesis: NetworkGenesis) -> tuple[Chain, ...]:
    return primary_chains(
        genesis.x_chain_id, genesis.c_chain_id, genesis.x_block_0_id, genesis.p_block_0_id, genesis.c_block_0_id
    )


def _logs(config: Config, process: str, chains: tuple[Chain, ...], *, shared: bool, create: bool = False) -> Logs:
    names = ["main", "vm-factory", *(chain.name for chain in chains)]
    path = Path(config.data_dir) / "run" / "levels"
    page_ = LevelPage.shared(names, path, create=create) if shared else LevelPage.private(names)
    if create or not shared:
        for name in names:
            page_.put(name, config.log_level.upper(), config.log_display_level.upper())
    logs = Logs(process, page_, Path(config.log_dir), config.log_format)
    logs.adopt_libraries()
    return logs


def _enabled(config: Config) -> Callable[[str], bool]:
    return lambda setting: bool(getattr(config, setting.replace("-", "_")))


# -- the engine --------------------------------------------------------------------------------------------------


async def _engine(config: Config) -> int:
    data_dir = Path(config.data_dir)
    lock = StoreLock(data_dir / "node.lock")
    store = SqliteStore(store_path(data_dir), PACKAGE)
    start = await store.write(lambda tx: bind_network(tx, config.network_id, int(time.time())))
    genesis = _genesis(config, start)
    chains = _chains(genesis)
    logs = _logs(config, "engine", chains, shared=True, create=True)
    meters.clear(data_dir / "run")
    ensure_identity(data_dir / "staking")

    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    def low_disk(text: str) -> None:
        logs["main"].fatal(text)
        stop(1)

    reader = NodeReader(store)
    bases = bases_of(
        routes_of(list(ENDPOINTS), lambda _: True, _AnyService(), DIALECTS[config.dialect], meters.Meters([], None))
    )
    admin = Admin(
        store,
        Chains(chains, reader),
        bases,
        logs,
        Profiles(Path(config.profile_dir), LockStats()),
        Path(config.plugin_dir),
    )
    await admin.restore_levels()
    traffic = Traffic(time.monotonic_ns)
    health = Health(store, logs["main"], config.health_check_frequency, config.health_check_timeout)
    await health.begin()
    limits = Thresholds(
        config.system_tracker_disk_warning_available_space_percentage,
        config.system_tracker_disk_required_available_space_percentage,
        config.router_health_max_outstanding_requests,
    )
    statuses = [ChainStatus(chain) for chain in chains]
    server = EngineServer(socket_path(data_dir), admin.commands(), traffic.call)
    for check in node_checks(statuses, store, data_dir, limits, traffic, low_disk):
        await health.register(check)
    await server.start()
    runner = asyncio.create_task(health.run_forever())
    _follow_supervisor(health, stop)
    logs["main"].info("the engine is ready", network=network_name(config.network_id), version=__version__)
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    code = await stopped
    runner.cancel()
    await server.stop()
    store.close()
    lock.release()
    logs["main"].info("the engine has stopped", code=code)
    return code


def _follow_supervisor(health: Health, stop: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()

    def heard(line: str) -> None:
        if line == "draining":
            asyncio.run_coroutine_threadsafe(health.register(shutting_down()), loop)
        elif not line:
            loop.call_soon_threadsafe(stop, 1)

    when_orphaned(heard)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, 0)


class _AnyService(dict[type, Any]):
    """Stands for every service where rows are only counted, never called."""

    def __missing__(self, _: type) -> None:
        return None


# -- a listener and its workers ----------------------------------------------------------------------------------


def _listen(listener: str, config: Config) -> int:
    from granian import Granian  # noqa: PLC0415  the engine has no use for a server
    from granian.constants import HTTPModes, Interfaces, Loops  # noqa: PLC0415
    from granian.http import HTTP1Settings  # noqa: PLC0415
    from granian.log import LogLevels  # noqa: PLC0415

    os.environ[_WORKER_ORDERS] = msgspec.json.encode({"listener": listener, "config": config}).decode()
    when_orphaned(lambda line: None if line else os.kill(os.getpid(), signal.SIGTERM))
    port = {NODE: config.http_port, DATA: config.data_port, METRICS: config.metrics_port}[listener]
    Granian(
        "icefall.runtime:worker_app",
        factory=True,
        address=config.http_host or "0.0.0.0",  # noqa: S104  an empty host means all, as with the node
        port=port,
        interface=Interfaces.RSGI,
        workers=config.http_workers,
        loop=Loops.uvloop,
        http=HTTPModes.auto,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=max(1, config.http_idle_timeout // 10**6)),
        log_level=LogLevels.error,
        respawn_failed_workers=True,
        respawn_interval=0.5,
        workers_kill_timeout=max(1, config.http_shutdown_timeout // 10**9 - 2),
    ).serve()
    return 0


def worker_app() -> RsgiApp:
    """What a granian worker serves."""
    die_with_parent()
    told = msgspec.json.decode(os.environ[_WORKER_ORDERS], type=_WorkerOrders)
    return RsgiApp(build_app(told.listener, told.config))


class _WorkerOrders(msgspec.Struct):
    listener: str
    config: Config


def build_app(listener: str, config: Config) -> App:
    """The app of one listener, from its part of the table."""
    dialect = DIALECTS[config.dialect]
    rows = rows_of(listener)
    labels = meter_labels(ENDPOINTS)
    data_dir = Path(config.data_dir)
    meter = meters.Meters(labels, data_dir / "run")
    openapi = document(listener, rows, __version__)
    services: dict[type, Any] = {
        Dialect: dialect,
        Pages: Pages(msgspec.json.encode(openapi), page(listener, rows, __version__)),
    }
    headers: list[tuple[str, str]] = []
    node: NodeReader | None = None
    if listener == NODE:
        genesis = _genesis(config, int(time.time()))
        chains = _chains(genesis)
        logs = _logs(config, "worker", chains, shared=True)
        node_id = ensure_identity(data_dir / "staking").node_id_text
        node = NodeReader(SqliteReader(store_path(data_dir)))
        services |= {
            NodeReader: node,
            Chains: Chains(chains, node),
            LevelPage: logs.page,
            EngineLink: EngineLink(socket_path(data_dir)),
            MeterSource: MeterSource(data_dir / "run", labels, __version__),
            NodeFacts: _facts(config, genesis, node_id),
        }
        headers = [("node-id", node_id)]
    else:
        logs = _logs(config, "worker", (), shared=False)
    paths = routes_of(rows, _enabled(config), services, dialect, meter)
    return App(
        listener,
        Routes(paths, bases_of(paths), node, full=dialect.alias_of_endpoint),
        dialect,
        Hosts(config.http_allowed_hosts),
        Origins(config.http_allowed_origins, _BROWSER_HEADERS if listener == NODE else _BROWSER_HEADERS + _KEY_HEADERS),
        meter,
        logs["main"],
        headers,
        config.http_read_timeout / 1e9,
    )


def _facts(config: Config, genesis: NetworkGenesis, node_id: str) -> NodeFacts:
    public = config.network_id in (MAINNET_ID, FUJI_ID)  # fees and schedule are the network's, not the operator's
    return NodeFacts(
        node_id_text=node_id,
        version=_VERSION_TEXT,
        network_id=config.network_id,
        network_name=network_name(config.network_id),
        address=f"{config.http_host}:{config.http_port}",
        tx_fee=1_000_000 if public else config.tx_fee,
        create_asset_tx_fee=10_000_000 if public else config.create_asset_tx_fee,
        stop_vertex_text=id_text(genesis.stop_vertex_id if public else EMPTY_ID),
    )


def _child() -> int:
    """`python -m icefall.runtime <role>`, started by the supervisor."""
    told = orders()
    try:
        if told.role == "engine":
            import uvloop  # noqa: PLC0415

            return uvloop.run(_engine(told.config))
        return _listen(told.role, told.config)
    except (StartRefused, StoreError, IdentityError) as error:
        print(f"icefall: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    raise SystemExit(_child())
