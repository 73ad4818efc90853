"""The chain whose tables `icefall export` writes, opened where its rows are: an EVM chain in a store of its own, P and
X in that of the node.

The node's store says which network it is bound to, so no setting of the network is needed.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from icefall.compose.stores import Stores
from icefall.errors import StartRefused
from icefall.exports.evm_tables import EvmTables
from icefall.exports.tables import ExportedChain
from icefall.node.store import read_meta
from icefall.primary.asset_tables import AssetChainTables
from icefall.primary.platform_tables import PlatformTables
from icefall.wire.ids import network_hrp

# What a user may write -> the chain.
PRIMARY_CHAINS = {
    "p": PlatformTables.name,
    "p-chain": PlatformTables.name,
    "x": AssetChainTables.name,
    "x-chain": AssetChainTables.name,
}


@contextmanager
def opened_tables(stores: Stores, name: str) -> Iterator[ExportedChain]:
    """The tables of P, of X, or of the EVM chain with this ID. StartRefused where nothing is stored of it."""
    if name not in PRIMARY_CHAINS:
        reader = stores.chain_blocking_reader(name, mapped=False) if stores.has_chain_store(name) else None
        if reader is None:
            raise StartRefused(f"chain {name} is not indexed in {stores.data_dir}: nothing to export")
        with closing(reader):
            yield EvmTables(reader, name)
        return
    with closing(stores.node_reader(mapped=False)) as node:
        network = read_meta(node, "network_id")
        if network is None:
            raise StartRefused(f"{stores.data_dir} holds no primary network: nothing to export")
        hrp = network_hrp(int(network))
        yield PlatformTables(node, hrp) if name == PlatformTables.name else AssetChainTables(node, hrp)
