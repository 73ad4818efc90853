"""The primary network as the chain data listener serves it: its names, and readers of the node's store."""

import time

from icefall.api.networks.network import C_CHAIN, P_CHAIN, X_CHAIN, AssetNames, PrimaryNetwork
from icefall.compose.node_setup import configured_network
from icefall.compose.stores import Stores
from icefall.config.settings import Config
from icefall.node.core_chain import CoreChainLists
from icefall.node.store import NodeReader, read_learned
from icefall.pchain.day_sums import DaySums
from icefall.pchain.observed import ObservedNodes
from icefall.pchain.reading import PlatformReader
from icefall.pchain.subnet_lists import SubnetLists
from icefall.primary.network import LearnedNetwork
from icefall.wire.ids import FUJI_ID, MAINNET_ID, PLATFORM_CHAIN, id_text, network_hrp, network_name
from icefall.wire.pvm.codec import unpack_genesis
from icefall.xchain.listing import AssetChainLists, first_at
from icefall.xchain.outputs import OutputLists
from icefall.xchain.reading import AssetChainReader
from icefall.xchain.vertices import VertexLists

_NAMES = {MAINNET_ID: "mainnet", FUJI_ID: "fuji"}
_HRPS = {"mainnet": "avax", "fuji": "fuji", "testnet": "fuji"}


def public_name(network_id: int, setting: str) -> str:
    """The name in answers, which is one that clients know: what the setting says, else the network's own, else fuji."""
    return setting or _NAMES.get(network_id, "fuji")


def accepted_names(network_id: int, setting: str) -> frozenset[str]:
    """The names in paths, the ID of the network among them; fuji and testnet mean the same."""
    names = {public_name(network_id, setting), network_name(network_id), str(network_id)}
    return frozenset(names | ({"fuji", "testnet"} if names & {"fuji", "testnet"} else set()))


def served_network(config: Config, stores: Stores) -> PrimaryNetwork:
    store, version = stores.node_reader(), stores.node_version()
    learned = read_learned(store) if config.upstream else None
    network = configured_network(config, int(time.time()), LearnedNetwork(*learned) if learned else None)
    x_chain_id, c_chain_id = network.genesis.x_chain_id, network.genesis.c_chain_id
    platform_store = None if network.learned else store
    node = NodeReader(store, version)
    chains = {name: name for name in (P_CHAIN, X_CHAIN, C_CHAIN)}
    for chain, chain_id in {P_CHAIN: PLATFORM_CHAIN, X_CHAIN: x_chain_id, C_CHAIN: c_chain_id}.items():
        chains[chain[0].upper()] = chains[id_text(chain_id)] = chain
    name, hrp = public_name(config.network_id, config.network_name), network_hrp(config.network_id)

    async def is_executing() -> bool:
        return bool(config.upstream) and "P" in await node.bootstrapping()

    async def is_bootstrapping(chain: str) -> bool:
        return bool(config.upstream) and chain in await node.bootstrapping()

    return PrimaryNetwork(
        public_name=name,
        names=accepted_names(config.network_id, config.network_name),
        chains=chains,
        hrp=hrp,
        hrps=frozenset({hrp, _HRPS[name]}),
        platform=PlatformReader(platform_store, network.platform, version),
        lists=SubnetLists(platform_store),
        days=DaySums(platform_store),
        observed=ObservedNodes(store),
        assets=AssetNames(network.platform.avax_asset_id, AssetChainReader(store, x_chain_id, version)),
        x_chain_id=x_chain_id,
        c_chain_id=c_chain_id,
        is_executing=is_executing,
        x_lists=AssetChainLists(store, x_chain_id),
        c_lists=CoreChainLists(store, first_at),
        vertices=VertexLists(store, x_chain_id),
        outputs=OutputLists(store),
        is_bootstrapping=is_bootstrapping,
        initial_supply=unpack_genesis(network.genesis.p_genesis).initial_supply if platform_store is not None else 0,
    )
