"""The app of the node listener: the interfaces of the node program."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from icefall import __version__
from icefall.api.dialect import DIALECTS
from icefall.api.http.app import App
from icefall.api.http.assemble import Mount
from icefall.api.http.row import NODE
from icefall.api.node.addresses import AddressParser
from icefall.api.node.asset_objects import AssetObjects
from icefall.api.node.endpoints import INDEX, X
from icefall.api.node.handlers.index import ContainerCache
from icefall.api.node.platform_endpoints import P
from icefall.api.node.platform_objects import PlatformObjects
from icefall.api.node.platform_upstream import PlatformUpstream
from icefall.compose.app_parts import links_page, listener_app, node_origins
from icefall.compose.node_setup import configured_network, freshness, health_limit_ns, node_logs
from icefall.compose.served_chains import ServedChains
from icefall.compose.stores import stores_of
from icefall.compose.webhook_state import WebhookState
from icefall.config.settings import Config
from icefall.db.engine import Reader
from icefall.evm.reading.directory import ChainDirectory
from icefall.ipc.socket import SocketClient, socket_path
from icefall.node.chains import Chain, Chains
from icefall.node.health.runner import Freshness
from icefall.node.index import ALL_SERIES, IndexReader
from icefall.node.info import NodeInfo, read_node_id
from icefall.node.store import NodeReader, read_learned
from icefall.observe.log import LevelPage
from icefall.pchain.reading import PlatformReader
from icefall.primary.network import LearnedNetwork, Network, is_public
from icefall.webhooks.model import PRIMARY
from icefall.wire.avm.json import ChainNaming
from icefall.wire.ids import EMPTY_ID, PLATFORM_CHAIN, id_text, network_name
from icefall.xchain.model import ChainView
from icefall.xchain.reading import AssetChainReader


def node_app(config: Config) -> App:
    data_dir = Path(config.data_dir)
    stores = stores_of(config)
    store = stores.node_reader()
    learned = read_learned(store) if config.upstream else None
    network = configured_network(config, int(time.time()), LearnedNetwork(*learned) if learned else None)
    logs = node_logs(config, "worker", network, create=False)
    version = stores.node_version()
    node = NodeReader(store, version)
    chains = Chains(network.chains, node)
    info = _node_info(config, network, read_node_id(data_dir / "staking"))
    engine = SocketClient(socket_path(data_dir), "the engine")
    followed = Followed(node, engine) if config.upstream else None
    services: dict[type, Any] = {
        NodeReader: node,
        Chains: chains,
        LevelPage: logs.page,
        SocketClient: engine,
        NodeInfo: info,
        Freshness: freshness(data_dir, health_limit_ns(config)),
        ChainDirectory: ServedChains(config, stores).directory,
    }
    chain_ids = [*(chain.id for chain in config.chain), PRIMARY]
    return listener_app(
        NODE,
        config,
        services,
        logs["main"],
        origins=node_origins(config),
        node=node,
        headers=[("node-id", info.node_id_text)],
        mounts=_mounts(network, store, version, chains, followed),
        webhooks=WebhookState(stores, lambda: chain_ids),
        site=links_page("Node interfaces", config) if DIALECTS[config.dialect].has_links_page else None,
    )


class Followed(NamedTuple):
    """A network that is followed: where it says which chains are bootstrapping, and who calls its nodes."""

    node: NodeReader
    engine: SocketClient


def _mounts(
    network: Network, store: Reader, version: Callable[[], int], chains: Chains, followed: Followed | None
) -> list[Mount]:
    """Each asset chain under all its names, each series of the index, and P."""
    mounts = []
    for spec in network.asset_chains:
        naming = spec.view.naming
        services: dict[type, Any] = {
            AssetChainReader: AssetChainReader(store, spec.chain.chain_id, version),
            ChainView: spec.view,
            AddressParser: AddressParser(chains, spec.chain.chain_id, naming.chain, naming.hrp),
            AssetObjects: AssetObjects(version),
        }
        mounts.append(Mount(X, _paths(spec.chain), services, _closed(followed, spec.chain)))
    x_chain_id = network.genesis.x_chain_id
    for series in ALL_SERIES:
        services = {IndexReader: IndexReader(store, series, x_chain_id, version), ContainerCache: ContainerCache()}
        mounts.append(Mount(INDEX, (f"/ext/index/{series.path}",), services))
    platform = next(chain for chain in network.chains if chain.chain_id == PLATFORM_CHAIN)
    naming = ChainNaming(platform.name, network.asset_chains[0].view.naming.hrp)
    services = {
        PlatformReader: PlatformReader(None if network.learned else store, network.platform, version),
        ChainNaming: naming,
        AddressParser: AddressParser(chains, PLATFORM_CHAIN, naming.chain, naming.hrp),
        PlatformObjects: PlatformObjects(version),
        PlatformUpstream: PlatformUpstream(followed.engine if followed else None),
    }
    return [*mounts, Mount(P, _paths(platform), services, _closed(followed, platform), version)]


def _closed(followed: Followed | None, chain: Chain) -> Callable[[], bool | Awaitable[bool]] | None:
    """Whether a chain is still bootstrapping, which only chains of an upstream do."""
    if followed is None:
        return None

    async def read() -> bool:
        return chain.name in await followed.node.bootstrapping()

    def closed() -> bool | Awaitable[bool]:
        known = followed.node.known_bootstrapping()
        return read() if known is None else chain.name in known

    return closed


def _paths(chain: Chain) -> tuple[str, ...]:
    names = (*(f"bc/{name}" for name in (*chain.aliases, chain.id_text)), *chain.aliases)
    return tuple(f"/ext/{name}" for name in names)


def _node_info(config: Config, network: Network, node_id: str) -> NodeInfo:
    rules = network.asset_chains[0].rules
    stop_vertex_id = network.genesis.stop_vertex_id if is_public(config.network_id) else EMPTY_ID
    return NodeInfo(
        node_id_text=node_id,
        version=f"icefall/{__version__}",
        network_id=config.network_id,
        network_name=network_name(config.network_id),
        address=f"{config.http_host}:{config.http_port}",
        tx_fee=rules.tx_fee,
        create_asset_tx_fee=rules.create_asset_tx_fee,
        stop_vertex_text=id_text(stop_vertex_id),
    )
