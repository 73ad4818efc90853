"""The rows of operations about the X-Chain and about addresses on every chain."""

from icefall.api.describing import examples
from icefall.api.http.row import DATA, Rest, Weight
from icefall.api.networks.handlers import activity, any_chain, x_chain
from icefall.api.networks.schema.blocks import PrimaryNetworkBlockPage
from icefall.api.networks.schema.c_chain import (
    ActivityParams,
    AddressesBody,
    ChainIdsParams,
    ChainsOfAddressesResult,
    LastActivity,
    NetworkChainParams,
    NodeBlocksParams,
    PostedUtxosParams,
)
from icefall.api.networks.schema.x_chain import (
    AssetDetails,
    AssetTxsParams,
    NetworkAssetParams,
    VertexParams,
    VerticesAtParams,
    VerticesParams,
    XTransactionPage,
    XVertex,
    XVertexPage,
)

NETWORK = "/v1/networks/{network}"
CHAIN = f"{NETWORK}/blockchains/{{blockchainId}}"

# fmt: off
X_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path=f"{CHAIN}/nodes/{{nodeId}}/blocks", params=NodeBlocksParams, result=PrimaryNetworkBlockPage,
         handler=any_chain.list_node_blocks, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listPrimaryNetworkBlocksByNodeId", examples=examples.NODE,
         summary="Blocks of a chain that a node proposed, newest first."),
    Rest(verb="POST", path=f"{CHAIN}/utxos", params=PostedUtxosParams, body=AddressesBody,
         result=any_chain.AnyUtxoPage, handler=any_chain.posted_utxos, listeners=(DATA,), weight=Weight.XL,
         operation="getUtxosByAddressesV2", body_example=examples.BECH32_ADDRESSES,
         summary="Outputs of up to 1,024 addresses on a chain, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/lastActivityTimestampByAddresses", params=ActivityParams, result=LastActivity,
         handler=activity.last_activity, listeners=(DATA,), weight=Weight.XL,
         operation="getLastActivityTimestampByAddresses",
         summary="The newest transaction of addresses on a chain."),
    Rest(verb="POST", path=f"{CHAIN}/lastActivityTimestampByAddresses", params=NetworkChainParams, body=AddressesBody,
         result=LastActivity, handler=activity.posted_last_activity, listeners=(DATA,), weight=Weight.XL,
         operation="getLastActivityTimestampByAddressesV2", body_example=examples.BECH32_ADDRESSES,
         summary="The newest transaction of up to 1,024 addresses on a chain."),
    Rest(verb="GET", path=f"{CHAIN}/assets/{{assetId}}", params=NetworkAssetParams, result=AssetDetails,
         handler=x_chain.get_asset, listeners=(DATA,), weight=Weight.XL, operation="getAssetDetails",
         examples=examples.X_ASSET, summary="An asset of the X-Chain."),
    Rest(verb="GET", path=f"{CHAIN}/assets/{{assetId}}/transactions", params=AssetTxsParams, result=XTransactionPage,
         handler=x_chain.list_asset_transactions, listeners=(DATA,), weight=Weight.XL,
         operation="listAssetTransactions", examples=examples.X_ASSET,
         summary="Transactions of the X-Chain that consumed or made some of an asset, newest first."),
    Rest(verb="GET", path=f"{CHAIN}/vertices", params=VerticesParams, result=XVertexPage,
         handler=x_chain.list_vertices, listeners=(DATA,), weight=Weight.MEDIUM,
         operation="listLatestXChainVertices", examples=examples.X_CHAIN,
         summary="Vertices of the X-Chain, from before its blocks, the last of the index first."),
    Rest(verb="GET", path=f"{CHAIN}/vertices/{{vertexHash}}", params=VertexParams, result=XVertex,
         handler=x_chain.get_vertex, listeners=(DATA,), weight=Weight.MEDIUM, operation="getVertexByHash",
         examples=examples.X_CHAIN, summary="A vertex of the X-Chain, from before its blocks."),
    Rest(verb="GET", path=f"{CHAIN}/vertices:listByHeight", params=VerticesAtParams, result=XVertexPage,
         handler=x_chain.list_vertices_at, listeners=(DATA,), weight=Weight.MEDIUM, operation="getVertexByHeight",
         examples=examples.X_CHAIN,
         summary="Vertices of the X-Chain at a height, by their position in the index."),
    Rest(verb="GET", path=f"{NETWORK}/addresses:listChainIds", params=ChainIdsParams, result=ChainsOfAddressesResult,
         handler=activity.chain_ids, listeners=(DATA,), weight=Weight.XL, operation="getChainIdsForAddresses",
         summary="Chains on which addresses ever owned an output."),
)
# fmt: on
