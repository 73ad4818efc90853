"""Handlers of operations that every chain has: each is passed on to the chain that the path names."""

from msgspec import UNSET, UnsetType, structs

from icefall.api.http.paging import Paging, pack_cursor
from icefall.api.networks.handlers import blocks, c_chain, outputs, transactions, utxos, x_chain
from icefall.api.networks.handlers.utxos import NetworkClock
from icefall.api.networks.handlers.x_chain import cut, range_of
from icefall.api.networks.network import C_CHAIN, P_CHAIN, X_CHAIN, Networks
from icefall.api.networks.render.blocks import platform_block
from icefall.api.networks.render.c_chain import c_block
from icefall.api.networks.render.x_chain import x_block
from icefall.api.networks.schema.blocks import (
    PlatformBlockParams,
    PlatformBlocksParams,
    PrimaryNetworkBlock,
    PrimaryNetworkBlockPage,
)
from icefall.api.networks.schema.c_chain import (
    AddressesBody,
    ChainUtxosParams,
    CTransaction,
    CTransactionPage,
    NodeBlocksParams,
    PostedUtxosParams,
)
from icefall.api.networks.schema.transactions import (
    ListedTxsParams,
    PlatformBalancesParams,
    PlatformBalancesResult,
    PlatformTransaction,
    PlatformTransactionPage,
    PlatformTxParams,
    PlatformUtxoPage,
)
from icefall.api.networks.schema.x_chain import (
    CBalancesResult,
    ChainUtxoPage,
    XBalancesResult,
    XTransaction,
    XTransactionPage,
)
from icefall.errors import BadRequest

AnyTransactionPage = PlatformTransactionPage | XTransactionPage | CTransactionPage
AnyTransaction = PlatformTransaction | XTransaction | CTransaction
AnyUtxoPage = PlatformUtxoPage | ChainUtxoPage
AnyBalances = PlatformBalancesResult | XBalancesResult | CBalancesResult
_OF_NODE = "nodeBlocks"


async def list_blocks(params: PlatformBlocksParams, networks: Networks, paging: Paging) -> PrimaryNetworkBlockPage:
    chain = networks.which(params.network, params.blockchain_id)
    handler = {P_CHAIN: blocks.list_blocks, X_CHAIN: x_chain.list_blocks, C_CHAIN: c_chain.list_blocks}[chain]
    return await handler(params, networks, paging)


async def get_block(params: PlatformBlockParams, networks: Networks) -> PrimaryNetworkBlock:
    chain = networks.which(params.network, params.blockchain_id)
    return await {P_CHAIN: blocks.get_block, X_CHAIN: x_chain.get_block, C_CHAIN: c_chain.get_block}[chain](
        params, networks
    )


async def list_node_blocks(params: NodeBlocksParams, networks: Networks, paging: Paging) -> PrimaryNetworkBlockPage:
    """Blocks that a node proposed, newest first."""
    chain = networks.which(params.network, params.blockchain_id)
    network = await networks.listed(params.network, chain)
    if chain == P_CHAIN:
        count, first_height = (await network.platform.ledger()).height + 1, network.lists.first_height
    elif chain == X_CHAIN:
        count, first_height = (await network.x_lists.counts())[0], network.x_lists.first_height
    else:
        count, first_height = await network.c_lists.block_count(), network.c_lists.first_height
    of = await range_of(_OF_NODE, params, paging, count, first_height, upwards=False)
    limit = params.page_size + 1
    heights = await network.outputs.proposed(network.chain_id(chain), params.node_id, of.low, of.below, limit)
    shown, last = cut(heights, heights, params.page_size, limit)
    if chain == P_CHAIN:
        found = [platform_block(row) for row in await network.lists.blocks_at(shown)]
    elif chain == X_CHAIN:
        found = [x_block(row) for row in await network.x_lists.blocks_at(shown)]
    else:
        found = [block for row in await network.c_lists.blocks_at(shown) if (block := c_block(row)) is not None]
    token: str | UnsetType = UNSET if last is None else paging.token(_OF_NODE, params, pack_cursor(last))
    return PrimaryNetworkBlockPage(next_page_token=token, blocks=found, chain_info=network.info(chain))


async def list_transactions(params: ListedTxsParams, networks: Networks, paging: Paging) -> AnyTransactionPage:
    chain = networks.which(params.network, params.blockchain_id)
    if params.l1_validation_id is not None and chain != P_CHAIN:
        raise BadRequest("l1ValidationId is for transactions of the P-Chain only")
    if chain == P_CHAIN:
        return await transactions.list_transactions(params, networks, paging)
    if chain == X_CHAIN:
        return await x_chain.list_transactions(params, networks, paging)
    return await c_chain.list_transactions(params, networks, paging)


async def get_transaction(params: PlatformTxParams, networks: Networks) -> AnyTransaction:
    chain = networks.which(params.network, params.blockchain_id)
    if chain == P_CHAIN:
        return await transactions.get_transaction(params, networks)
    if chain == X_CHAIN:
        return await x_chain.get_transaction(params, networks)
    return await c_chain.get_transaction(params, networks)


async def list_utxos(params: ChainUtxosParams, networks: Networks, paging: Paging) -> AnyUtxoPage:
    chain = networks.which(params.network, params.blockchain_id)
    if chain == P_CHAIN:
        return await utxos.list_utxos(params, networks, paging)
    return await outputs.list_utxos(chain, params, networks, paging)


async def posted_utxos(
    params: PostedUtxosParams, body: AddressesBody, networks: Networks, paging: Paging
) -> AnyUtxoPage:
    asked = ChainUtxosParams(addresses=body.read(), **structs.asdict(params))
    return await list_utxos(asked, networks, paging)


async def balances(params: PlatformBalancesParams, networks: Networks, clock: NetworkClock) -> AnyBalances:
    chain = networks.which(params.network, params.blockchain_id)
    if chain == P_CHAIN:
        return await utxos.balances(params, networks, clock)
    return await outputs.balances(chain, params, networks, utxos.time_of(params, clock))
