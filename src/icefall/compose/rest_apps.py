"""The apps of the two REST listeners: chain data and metrics, with the readers that their handlers take."""

from pathlib import Path
from typing import Any

from icefall.access.budgets import METRICS as METRICS_TIER
from icefall.access.budgets import UNAUTHENTICATED
from icefall.access.client_address import CurrentCaller
from icefall.access.page_tokens import NumberTokens, PageTokens
from icefall.access.store import AccessReader, page_token_secret
from icefall.access.usage_store import UsageReader
from icefall.api.http.app import App
from icefall.api.http.paging import NumberPaging, Paging
from icefall.api.http.row import DATA, METRICS
from icefall.api.metrics.handlers import MetricsClock
from icefall.api.networks.handlers.utxos import NetworkClock
from icefall.api.networks.network import Networks
from icefall.compose.app_parts import (
    access_gate,
    links_page,
    listener_app,
    service_logs,
    service_origins,
)
from icefall.compose.contract_abis import AbiParts
from icefall.compose.export_jobs import ExportJobs, export_services
from icefall.compose.labels import labels_of
from icefall.compose.served_chains import ServedChains
from icefall.compose.served_network import served_network
from icefall.compose.stores import stores_of
from icefall.compose.webhook_state import WebhookState
from icefall.compose.webhooks import WebhookParts, webhook_services
from icefall.config.settings import Config
from icefall.demo.pictures import demo_picture
from icefall.evm.enriching.pictures import Pictures, no_picture
from icefall.evm.enriching.selectors import method_names
from icefall.evm.reading.abis import ContractAbis
from icefall.evm.reading.directory import ChainDirectory
from icefall.evm.status import IndexerCalls
from icefall.web.site import Explorer, Link
from icefall.webhooks.model import PRIMARY


def data_app(config: Config, *, with_engine: bool) -> App:
    logs = service_logs(config, with_engine=with_engine)
    stores = stores_of(config)
    store = stores.access_reader()
    access = AccessReader(store)
    abis = AbiParts(config, stores, store, logs["main"])
    served = ServedChains(
        config,
        stores,
        method_names(config.method_signatures),
        None if with_engine else store,
        logs["main"],
        with_state=True,
        abis=abis.abis,
    )
    webhooks, exports = WebhookParts(config, stores, store), ExportJobs(config, stores, store)
    network = served_network(config, stores) if with_engine else None
    networks = Networks(network)
    services: dict[type, Any] = {
        AccessReader: access,
        UsageReader: UsageReader(store),
        CurrentCaller: CurrentCaller(),
        Paging: Paging(PageTokens(page_token_secret(store))),
        IndexerCalls: IndexerCalls(Path(config.data_dir)),
        ChainDirectory: served.directory,
        ContractAbis: abis.abis,
        **webhook_services(config, webhooks, network),
        **export_services(config, exports, store, networks),
        Pictures: Pictures(
            Path(config.data_dir) / "pictures",
            config.picture_cache << 20,
            config.ipfs_gateway,
            config.nft_metadata_networks,
            shipped=demo_picture if config.demo else no_picture,
        ),
        Networks: networks,
        NetworkClock: NetworkClock(),
    }

    def close() -> None:
        webhooks.close()
        exports.close()
        abis.close()

    gate = access_gate(DATA, config, stores, logs["main"], keys=access, anonymous_tier=UNAUTHENTICATED)
    return listener_app(
        DATA,
        config,
        services,
        logs["main"],
        origins=service_origins(config),
        gate=gate,
        served=served,
        reports_program=not with_engine,  # the node's listener does
        site=_explorer(config, with_engine=with_engine) if config.explorer else None,
        webhooks=WebhookState(
            stores, lambda: [chain.info.id for chain in served.directory.all()] + [PRIMARY] * with_engine
        ),
        close=close,
    )


def _explorer(config: Config, *, with_engine: bool) -> Explorer:
    """Next to an engine runs everything, on known ports. Alone, the settings say where the other interfaces are."""
    return Explorer(
        Link(config.node_url, config.http_port if with_engine else 0),
        Link(config.metrics_url, config.metrics_port if with_engine else 0),
        labels_of(config.labels),
        has_pictures=bool(config.picture_cache) or config.demo,
    )


def metrics_app(config: Config, *, with_engine: bool) -> App:
    logs = service_logs(config, with_engine=with_engine)
    stores = stores_of(config)
    store = stores.access_reader()
    served = ServedChains(config, stores, None, None if with_engine else store, logs["main"])
    services: dict[type, Any] = {
        AccessReader: AccessReader(store),
        NumberPaging: NumberPaging(NumberTokens(page_token_secret(store))),
        Paging: Paging(PageTokens(page_token_secret(store))),
        MetricsClock: MetricsClock(),
        ChainDirectory: served.directory,
        Networks: Networks(served_network(config, stores) if with_engine else None),
    }
    gate = access_gate(METRICS, config, stores, logs["main"], keys=None, anonymous_tier=METRICS_TIER)
    return listener_app(
        METRICS,
        config,
        services,
        logs["main"],
        origins=service_origins(config),
        gate=gate,
        served=served,
        reports_program=not with_engine,  # the node's listener does
        site=links_page("Metrics", config),
    )
