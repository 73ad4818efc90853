"""The app of the metrics listener: the metrics interface, which takes no keys."""

from typing import Any

from icefall.access.budgets import METRICS as METRICS_TIER
from icefall.access.page_tokens import NumberTokens
from icefall.access.store import AccessReader, page_token_secret
from icefall.api.http.app import App
from icefall.api.http.paging import NumberPaging
from icefall.api.http.row import METRICS
from icefall.api.metrics.handlers import MetricsClock
from icefall.compose.app_parts import (
    access_gate,
    chain_directory,
    links_page,
    listener_app,
    service_logs,
    service_origins,
)
from icefall.compose.stores import stores_of
from icefall.config.settings import Config
from icefall.evm.reading.directory import ChainDirectory


def metrics_app(config: Config, *, with_engine: bool) -> App:
    logs = service_logs(config, with_engine=with_engine)
    stores = stores_of(config)
    store = stores.access_reader()
    services: dict[type, Any] = {
        AccessReader: AccessReader(store),
        NumberPaging: NumberPaging(NumberTokens(page_token_secret(store))),
        MetricsClock: MetricsClock(),
        ChainDirectory: chain_directory(config, stores),
    }
    gate = access_gate(METRICS, config, stores, logs["main"], keys=None, anonymous_tier=METRICS_TIER)
    return listener_app(
        METRICS,
        config,
        services,
        logs["main"],
        origins=service_origins(config),
        gate=gate,
        reports_program=not with_engine,  # the node's listener does
        site=links_page("Metrics", config),
    )
