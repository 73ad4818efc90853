"""What a worker serves until the engine is ready: liveness and health. Everything else is a 503.

An engine may wait long before it is ready, for an upstream that answers slowly. Nothing is written here, because the
engine may yet find that the data directory belongs to another program.
"""

import time
from typing import Any

import msgspec

from icefall.access.store import AccessReader
from icefall.api.dialect import DIALECTS
from icefall.api.http.app import App
from icefall.api.http.assemble import counter_labels, routes_of
from icefall.api.http.guards import Hosts
from icefall.api.http.routes import Route, Routes
from icefall.api.http.row import NODE
from icefall.api.table import rows_of
from icefall.compose.app_parts import FOREVER_NS, chain_directory, node_origins, service_origins
from icefall.compose.stores import stores_of
from icefall.config.settings import Config
from icefall.errors import Unavailable
from icefall.evm.reading.directory import ChainDirectory
from icefall.node.health.runner import CheckResult, Freshness
from icefall.node.store import NodeReader, StoredResult
from icefall.observe.counters import CallCounters
from icefall.observe.log import quiet
from icefall.wire.text.go_text import rfc3339_nano

_STARTING = "Icefall is starting: the engine is not ready yet, it may be waiting for an upstream; try again later"
_SERVED = ("/ext/health", "/v1/health-check")


class _StartingNode:
    """Takes the place of NodeReader, whose store may not exist yet."""

    async def health_results(self, _kind: str) -> list[StoredResult]:
        now_ns = time.time_ns()
        result = CheckResult(None, _STARTING, rfc3339_nano(now_ns), 0)
        return [StoredResult("engine", [], False, msgspec.Raw(msgspec.json.encode(result)), now_ns)]


class _StartingRoutes(Routes):
    async def find(self, path: str) -> tuple[Route, tuple[str, ...]] | None:
        raise Unavailable(_STARTING)


def starting_app(listener: str, config: Config) -> App:
    dialect = DIALECTS[config.dialect]
    rows = [row for row in rows_of(listener) if row.path.startswith(_SERVED)]
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
    return {AccessReader: AccessReader(stores.access_reader()), ChainDirectory: chain_directory(config, stores)}
