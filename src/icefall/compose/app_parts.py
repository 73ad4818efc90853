"""The parts that the apps of the three listeners have in common, and the app that serves liveness and health until the
engine is ready.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from icefall import __version__
from icefall.access.budget_leases import BudgetLeases
from icefall.access.budget_server import StoredBudgets, budget_socket
from icefall.access.budgets import Tier, limits_are_on, tiers_with
from icefall.access.client_address import Proxies
from icefall.access.store import AccessReader
from icefall.access.usage_store import UsageRecorder
from icefall.api.describing.docs import page
from icefall.api.describing.openapi import document
from icefall.api.describing.site import Pages
from icefall.api.dialect import DIALECTS, Dialect
from icefall.api.http.app import App, Site
from icefall.api.http.assemble import Mount, bases_of, counter_labels, routes_of
from icefall.api.http.gate import LIMIT_HEADERS, AccessGate
from icefall.api.http.guards import Hosts, Origins
from icefall.api.http.routes import EndpointNames, Route, Routes
from icefall.api.http.row import DATA, METRICS, NODE, Rest, Rpc
from icefall.api.http.service import CounterSource
from icefall.api.table import rows_of
from icefall.compose.node_setup import configured_network, log_rotation, node_logs
from icefall.compose.served_chains import ServedChains
from icefall.compose.stores import Stores, stores_of
from icefall.compose.webhook_state import WebhookState
from icefall.config.settings import Config
from icefall.errors import Unavailable
from icefall.evm.reading.directory import ChainDirectory
from icefall.ipc.socket import SocketClient
from icefall.node.health.runner import CheckResult, Freshness
from icefall.node.store import NodeReader, StoredResult
from icefall.observe.counters import CallCounters, counters_directory
from icefall.observe.log import Log, Logs, open_logs, quiet
from icefall.observe.program import ProcessReader, program_pid
from icefall.web.site import Link, LinksPage
from icefall.wire.text.go_text import rfc3339_nano

FOREVER_NS = 24 * 3600 * 10**9  # a timeout of 0 means none, as with the node
_BROWSER_HEADERS = ("Origin", "Accept", "Content-Type", "X-Requested-With")
_KEY_HEADERS = ("X-Service-Api-Key", "X-Glacier-Api-Key", "X-App-Component")


def _closing(
    chains: ChainDirectory, also: Callable[[], None] | None, webhooks: WebhookState | None
) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        await chains.close()
        if webhooks is not None:
            webhooks.close()
        if also is not None:
            also()

    return close


def listener_app(
    listener: str,
    config: Config,
    services: Mapping[type, Any],
    log: Log,
    *,
    origins: Origins,
    gate: AccessGate | None = None,
    node: NodeReader | None = None,
    headers: Iterable[tuple[str, str]] = (),
    mounts: Iterable[Mount] = (),
    site: Site | None = None,
    served: ServedChains | None = None,
    reports_program: bool = True,
    close: Callable[[], None] | None = None,
    webhooks: WebhookState | None = None,
) -> App:
    """The app of a listener: its rows of the endpoint table, with the services their handlers use. `reports_program`:
    its counters include what belongs to the whole program. `served`: keeps the chains as the store has them. `close`:
    closes what handlers have opened besides the chains. `webhooks`: what of them the counters include."""
    dialect = DIALECTS[config.dialect]
    rows = rows_of(listener)
    counters_dir = counters_directory(Path(config.data_dir) / "run", program_pid(), listener)
    counters = CallCounters(counter_labels(rows), counters_dir)
    endpoints = EndpointNames()
    common: dict[type, Any] = {
        Dialect: dialect,
        EndpointNames: endpoints,
        Pages: _pages(listener, rows, config),
        CounterSource: CounterSource(
            counters_dir,
            counters.labels,
            __version__,
            listener,
            ProcessReader(program_pid()),
            Path(config.data_dir) if reports_program else None,
            node,
            services.get(Freshness),
            webhooks.read if webhooks is not None and reports_program else None,
        ),
    }
    paths = routes_of(rows, _enabled(config), {**common, **services}, dialect, counters, list(mounts))
    endpoints.routes = Routes(paths, bases_of(paths), node, full=dialect.alias_of_endpoint)
    return App(
        listener,
        endpoints.routes,
        dialect,
        Hosts(config.http_allowed_hosts),
        origins,
        counters,
        log,
        list(headers),
        (config.http_read_timeout or FOREVER_NS) / 1e9,
        gate,
        site,
        background=served.refresh_forever if served is not None else None,
        close=_closing(services[ChainDirectory], close, webhooks),
    )


def _pages(listener: str, rows: list[Rest | Rpc], config: Config) -> Pages:
    described = document(listener, rows, __version__, base_url(listener, config))
    return Pages(msgspec.json.encode(described), page(listener, __version__))


def base_url(listener: str, config: Config) -> str:
    """Return the address at which the listener is reached from this machine."""
    port = {NODE: config.http_port, DATA: config.data_port, METRICS: config.metrics_port}[listener]
    host = config.http_host or "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _enabled(config: Config) -> Callable[[str], bool]:
    return lambda setting: bool(getattr(config, setting.replace("-", "_")))


def node_origins(config: Config) -> Origins:
    return Origins(config.http_allowed_origins, _BROWSER_HEADERS)


def service_origins(config: Config) -> Origins:
    """Return the allowed origins of the chain data and metrics interfaces: browsers may send a key and read the
    limits."""
    return Origins(config.http_allowed_origins, _BROWSER_HEADERS + _KEY_HEADERS, LIMIT_HEADERS)


def service_logs(config: Config, *, with_engine: bool) -> Logs:
    """Next to an engine the levels are the engine's, which an administrator can change."""
    if with_engine:
        return node_logs(config, "worker", configured_network(config, int(time.time())), create=False)
    levels = (config.log_level.upper(), config.log_display_level.upper())
    return open_logs("worker", ["main"], Path(config.log_dir), levels, config.log_format, rotation=log_rotation(config))


def access_gate(
    listener: str, config: Config, stores: Stores, log: Log, *, keys: AccessReader | None, anonymous_tier: str
) -> AccessGate | None:
    """None where there are neither limits nor keys. `keys` None: the interface knows no keys."""
    limited = limits_are_on(config.rate_limits, config.http_host)
    if not limited and keys is None:
        return None
    owner = SocketClient(budget_socket(Path(config.data_dir)), "the owner of the budgets")
    budgets = StoredBudgets(stores.access_store) if stores.url else owner  # a server is shared by several machines
    return AccessGate(
        listener,
        keys,
        BudgetLeases(budgets.call, config.http_workers, log) if limited else None,
        tiers_with(Tier(tier.name, tier.per_minute, tier.per_day) for tier in config.tier),
        anonymous_tier,
        Proxies(config.trusted_proxies),
        keys_required=keys is not None and config.api_keys_required,
        usage=UsageRecorder(owner.call) if keys is not None else None,
    )


def links_page(title: str, config: Config) -> LinksPage:
    """What is at `/` of a listener without the Explorer."""
    return LinksPage(title, Link(port=config.data_port if config.explorer else 0))


_STARTING = "Icefall is starting: the engine is not ready yet, it may be waiting for an upstream; try again later"
# Answered while the program starts, and later before other requests.
URGENT = ("/ext/health", "/v1/health-check", "/v2/health-check", "/v1/live-check")


class _StartingNode:
    """Takes the place of NodeReader, whose store may not exist yet."""

    async def health_results(self, _report: str) -> list[StoredResult]:
        now_ns = time.time_ns()
        result = CheckResult(None, _STARTING, rfc3339_nano(now_ns), 0)
        return [StoredResult("engine", [], False, msgspec.Raw(msgspec.json.encode(result)), now_ns)]


class _StartingRoutes(Routes):
    async def find(self, path: str) -> tuple[Route, tuple[str, ...]] | None:
        raise Unavailable(_STARTING)


def starting_app(listener: str, config: Config) -> App:
    dialect = DIALECTS[config.dialect]
    rows = [row for row in rows_of(listener) if row.path.startswith(URGENT)]
    counters = CallCounters(counter_labels(rows), None)
    paths = routes_of(rows, lambda _: config.api_health_enabled, _services(listener, config), dialect, counters)
    return App(
        listener,
        _StartingRoutes(paths, frozenset(), None, full=False),
        dialect,
        Hosts(config.http_allowed_hosts),
        node_origins(config) if listener == NODE else service_origins(config),
        counters,
        quiet(),
        [],
        (config.http_read_timeout or FOREVER_NS) / 1e9,
    )


def _services(listener: str, config: Config) -> dict[type, Any]:
    if listener == NODE:
        return {NodeReader: _StartingNode(), Freshness: Freshness(FOREVER_NS)}
    stores = stores_of(config)
    chains = ServedChains(config, stores).directory
    return {AccessReader: AccessReader(stores.access_reader()), ChainDirectory: chains}
