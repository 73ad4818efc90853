"""A listener and its workers: stateless readers of the store, made from the table."""

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from icefall import __version__
from icefall.access.clients import Proxies
from icefall.access.keeper import keep_limits, limits_socket
from icefall.access.leases import Leases
from icefall.access.limits import METRICS as METRICS_TIER
from icefall.access.limits import UNAUTHENTICATED, Tier, limits_are_on, tiers_with
from icefall.access.paging import NumberTokens, PageTokens
from icefall.access.store import AccessReader, open_reader, page_token_secret
from icefall.api.addresses import AddressParser
from icefall.api.app import App
from icefall.api.assemble import Mount, bases_of, meter_labels, routes_of
from icefall.api.dialect import DIALECTS, Dialect
from icefall.api.docs import page
from icefall.api.endpoint import DATA, METRICS, NODE
from icefall.api.endpoints import ENDPOINTS, INDEX, P, X, rows_of
from icefall.api.gate import LIMIT_HEADERS, AccessGate
from icefall.api.guards import Hosts, Origins
from icefall.api.handlers.metrics import MetricsClock
from icefall.api.handlers.pages import CounterSource, Pages
from icefall.api.openapi import document
from icefall.api.paging import NumberPaging, Paging
from icefall.api.routes import Routes
from icefall.api.rsgi import RsgiApp
from icefall.config.load import ChainConfig, Config
from icefall.db.engine import Reader
from icefall.db.sqlite import SqliteReader
from icefall.evm.enriching.selectors import method_names
from icefall.evm.reading.directory import ChainDirectory, ChainInfo, TokenInfo, open_chain, told_rpc_url
from icefall.evm.reading.state import RequestState
from icefall.ipc.socket import EngineLink, socket_path
from icefall.node.chains import Chain, Chains
from icefall.node.facts import NodeFacts
from icefall.node.health.runner import Freshness
from icefall.node.identity import ensure_identity
from icefall.node.index import ALL_SERIES, IndexReader
from icefall.node.store import NodeReader, facts_learned, store_path
from icefall.observe import counters as meters
from icefall.observe.log import LevelPage, Log, Logs, open_logs
from icefall.primary.network import LearnedNetwork, Network, is_public, network_of
from icefall.run.engine import logs_of
from icefall.run.supervisor import die_with_parent, when_orphaned
from icefall.wire.genesis.networks import network_name
from icefall.wire.ids import EMPTY_ID, PLATFORM_CHAIN, id_text
from icefall.xchain.store import AssetChainReader
from icefall.xchain.view import ChainView

_ORDERS = "_ICEFALL_WORKER_ORDERS"  # from a listener to its workers, through granian
_FOREVER_NS = 24 * 3600 * 10**9  # a timeout of 0 means none, as with the node
_SLACK_NS = 10 * 10**9  # a busy machine is no sick engine
_BROWSER_HEADERS = ("Origin", "Accept", "Content-Type", "X-Requested-With")
_KEY_HEADERS = ("X-Service-Api-Key", "X-Glacier-Api-Key", "X-App-Component")


class _WorkerArguments(msgspec.Struct):
    listener: str
    config: Config
    beside_engine: bool
    parent_pid: int


def run_listener(listener: str, config: Config, *, beside_engine: bool) -> int:
    """Serve until told to stop. Granian starts the workers, and starts a dead one again."""
    from granian import Granian  # noqa: PLC0415  only the process that listens needs a server
    from granian.constants import HTTPModes, Interfaces, Loops  # noqa: PLC0415
    from granian.http import HTTP1Settings  # noqa: PLC0415
    from granian.log import LogLevels  # noqa: PLC0415

    os.environ[_ORDERS] = msgspec.json.encode(_WorkerArguments(listener, config, beside_engine, os.getpid())).decode()
    when_orphaned(lambda line: None if line else os.kill(os.getpid(), signal.SIGTERM))
    if listener != NODE and not beside_engine and limits_are_on(config.rate_limits, config.http_host):
        keeping = keep_limits(Path(config.data_dir))  # no engine owns the budgets, so this process may
        threading.Thread(target=asyncio.run, args=(keeping,), daemon=True).start()
    Granian(
        "icefall.run.worker:worker_app",
        factory=True,
        address=config.http_host or "0.0.0.0",  # noqa: S104  an empty host means all, as with the node
        port={NODE: config.http_port, DATA: config.data_port, METRICS: config.metrics_port}[listener],
        interface=Interfaces.RSGI,
        workers=config.http_workers,
        loop=Loops.uvloop,
        http=HTTPModes.http1,  # in `auto` a connection that never says anything would be kept for ever
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=max(1, (config.http_idle_timeout or _FOREVER_NS) // 10**6)),
        log_level=LogLevels.error,
        respawn_failed_workers=True,
        respawn_interval=0.5,
        workers_kill_timeout=max(1, config.http_shutdown_timeout // 10**9 - 2),
    ).serve()
    return 0


def worker_app() -> RsgiApp:
    """What a granian worker serves."""
    told = msgspec.json.decode(os.environ[_ORDERS], type=_WorkerArguments)
    die_with_parent(told.parent_pid)
    app = RsgiApp(build_app(told.listener, told.config, beside_engine=told.beside_engine))
    gc.collect()
    gc.freeze()  # what lives as long as the worker need not be looked at again and again
    gc.set_threshold(50_000, 20, 100)
    return app


def build_app(listener: str, config: Config, *, beside_engine: bool = False) -> App:
    """The app of one listener, from its part of the table. Beside an engine it obeys the engine's log levels."""
    dialect = DIALECTS[config.dialect]
    rows = rows_of(listener)
    data_dir = Path(config.data_dir)
    meter = meters.CallCounters(meter_labels(ENDPOINTS), data_dir / "run")
    services: dict[type, Any] = {
        Dialect: dialect,
        Pages: Pages(msgspec.json.encode(document(listener, rows, __version__)), page(listener, rows, __version__)),
    }
    headers: list[tuple[str, str]] = []
    mounts: list[Mount] = []
    node: NodeReader | None = None
    gate: AccessGate | None = None
    if listener == NODE:
        store = SqliteReader(store_path(data_dir))
        learned = facts_learned(store) if config.upstream else None
        network = network_of(config, int(time.time()), LearnedNetwork(*learned) if learned else None)
        logs = logs_of(config, "worker", network, create=False)
        node = NodeReader(store)
        facts = _facts(config, network, ensure_identity(data_dir / "staking").node_id_text)
        services |= {
            NodeReader: node,
            Chains: Chains(network.chains, node),
            LevelPage: logs.page,
            EngineLink: EngineLink(socket_path(data_dir)),
            NodeFacts: facts,
            Freshness: Freshness(2 * config.health_check_frequency + config.health_check_timeout + _SLACK_NS),
        }
        headers = [("node-id", facts.node_id_text)]
        mounts = _mounts(network, store, services[Chains], node if config.upstream else None)
    else:
        logs = _service_logs(config, beside_engine=beside_engine)
        services |= _access_services(data_dir)
        services[MetricsClock] = MetricsClock()
        gate = _gate(listener, config, services[AccessReader], logs["main"])
    services[ChainDirectory] = _directory(listener, config)
    services[CounterSource] = CounterSource(data_dir / "run", meter.labels, __version__, node)
    paths = routes_of(rows, _enabled(config), services, dialect, meter, mounts)
    return App(
        listener,
        Routes(paths, bases_of(paths), node, full=dialect.alias_of_endpoint),
        dialect,
        Hosts(config.http_allowed_hosts),
        _origins(listener, config),
        meter,
        logs["main"],
        headers,
        (config.http_read_timeout or _FOREVER_NS) / 1e9,
        gate,
    )


def _origins(listener: str, config: Config) -> Origins:
    if listener == NODE:
        return Origins(config.http_allowed_origins, _BROWSER_HEADERS)
    return Origins(config.http_allowed_origins, _BROWSER_HEADERS + _KEY_HEADERS, LIMIT_HEADERS)


def _service_logs(config: Config, *, beside_engine: bool) -> Logs:
    if beside_engine:
        return logs_of(config, "worker", network_of(config, int(time.time())), create=False)
    levels = (config.log_level.upper(), config.log_display_level.upper())
    return open_logs("worker", ["main"], Path(config.log_dir), levels, config.log_format)


def _access_services(data_dir: Path) -> dict[type, Any]:
    """What the chain data and metrics interfaces read of the access store, which the supervisor has made."""
    reader = open_reader(data_dir)
    secret = page_token_secret(reader)
    return {
        AccessReader: AccessReader(reader),
        Paging: Paging(PageTokens(secret)),
        NumberPaging: NumberPaging(NumberTokens(secret)),
    }


def _directory(listener: str, config: Config) -> ChainDirectory:
    """The EVM chains of the configuration; each one's file is opened when it is first asked for."""
    data_dir, names = Path(config.data_dir), method_names(config.method_signatures) if listener == DATA else {}
    return ChainDirectory(
        open_chain(_chain_info(one), data_dir, RequestState(one.rpc, int(one.id)) if listener == DATA else None, names)
        for one in config.chain
    )


def _chain_info(chain: ChainConfig) -> ChainInfo:
    token = chain.token
    return ChainInfo(
        id=chain.id,
        name=chain.name,
        token=TokenInfo(token.name, token.symbol, token.decimals, token.logo_uri, token.description),
        description=chain.description,
        aliases=chain.aliases,
        blockchain_id=chain.blockchain_id,
        subnet_id=chain.subnet_id,
        vm_id=chain.vm_id,
        explorer_url=chain.explorer_url,
        rpc_url=told_rpc_url(chain.public_rpc_url, chain.rpc[0]),
        ws_url=chain.ws_url,
        logo=chain.logo,
        testnet=chain.testnet,
        private=chain.private,
        features=chain.features,
        multicall=chain.multicall,
    )


def _gate(listener: str, config: Config, access: AccessReader, log: Log) -> AccessGate | None:
    """None where nobody is limited and there are no keys to look at."""
    limited, keyed = limits_are_on(config.rate_limits, config.http_host), listener == DATA
    if not limited and not keyed:
        return None
    owner = EngineLink(limits_socket(Path(config.data_dir)))
    return AccessGate(
        listener,
        access if keyed else None,
        Leases(owner.call, config.http_workers, log) if limited else None,
        tiers_with(Tier(tier.name, tier.per_minute, tier.per_day) for tier in config.tier),
        UNAUTHENTICATED if keyed else METRICS_TIER,
        Proxies(config.trusted_proxies),
        keys_required=keyed and config.api_keys_required,
    )


def _enabled(config: Config) -> Callable[[str], bool]:
    return lambda setting: bool(getattr(config, setting.replace("-", "_")))


def _mounts(network: Network, store: Reader, chains: Chains, followed: NodeReader | None) -> list[Mount]:
    """Each asset chain under all its names, each series of the index, and P under its own names."""
    mounts = []
    for spec in network.asset_chains:
        place = spec.view.place
        services: dict[type, Any] = {
            AssetChainReader: AssetChainReader(store, spec.chain.chain_id),
            ChainView: spec.view,
            AddressParser: AddressParser(chains, spec.chain.chain_id, place.chain, place.hrp),
        }
        mounts.append(Mount(X, _paths(spec.chain), services, _closed(followed, spec.chain)))
    x_chain_id = network.genesis.x_chain_id
    for series in ALL_SERIES:
        services = {IndexReader: IndexReader(store, series, x_chain_id)}
        mounts.append(Mount(INDEX, (f"/ext/index/{series.path}",), services))
    platform = next(chain for chain in network.chains if chain.chain_id == PLATFORM_CHAIN)
    return [*mounts, Mount(P, _paths(platform), {}, _closed(followed, platform))]


def _closed(followed: NodeReader | None, chain: Chain) -> Callable[[], Awaitable[bool]] | None:
    """Whether a chain is still catching up. Only followed ones ever do."""
    if followed is None:
        return None

    async def closed() -> bool:
        return chain.name in await followed.bootstrapping()

    return closed


def _paths(chain: Chain) -> tuple[str, ...]:
    names = (*(f"bc/{name}" for name in (*chain.aliases, chain.id_text)), *chain.aliases)
    return tuple(f"/ext/{name}" for name in names)


def _facts(config: Config, network: Network, node_id: str) -> NodeFacts:
    rules = network.asset_chains[0].rules
    stop_vertex_id = network.genesis.stop_vertex_id if is_public(config.network_id) else EMPTY_ID
    return NodeFacts(
        node_id_text=node_id,
        version=f"icefall/{__version__}",
        network_id=config.network_id,
        network_name=network_name(config.network_id),
        address=f"{config.http_host}:{config.http_port}",
        tx_fee=rules.tx_fee,
        create_asset_tx_fee=rules.create_asset_tx_fee,
        stop_vertex_text=id_text(stop_vertex_id),
    )
