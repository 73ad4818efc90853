"""Handlers of the atomic side of the C-Chain: blocks and atomic transactions."""

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, pack_cursor
from icefall.api.networks.handlers.transactions import SCAN_MAX
from icefall.api.networks.handlers.x_chain import cut, range_of
from icefall.api.networks.network import C_CHAIN, Networks
from icefall.api.networks.render.c_chain import c_block, c_transactions
from icefall.api.networks.schema.blocks import (
    PlatformBlockParams,
    PlatformBlocksParams,
    PrimaryNetworkBlock,
    PrimaryNetworkBlockPage,
)
from icefall.api.networks.schema.c_chain import CTransaction, CTransactionPage
from icefall.api.networks.schema.transactions import PlatformTxParams, PlatformTxsParams
from icefall.errors import NotFound
from icefall.wire.container.core_txs import unpack_core_tx

_BLOCKS, _TXS = "cBlocks", "cTransactions"


async def list_blocks(params: PlatformBlocksParams, networks: Networks, paging: Paging) -> PrimaryNetworkBlockPage:
    network = await networks.listed(params.network, C_CHAIN)
    lists = network.c_lists
    of = await range_of(_BLOCKS, params, paging, await lists.block_count(), lists.first_height, upwards=False)
    rows = await lists.blocks(of.low, of.below, params.page_size + 1)
    shown, last = cut(rows, rows, params.page_size, params.page_size + 1)
    token: str | UnsetType = UNSET if last is None else paging.token(_BLOCKS, params, pack_cursor(last.height))
    blocks = [block for row in shown if (block := c_block(row)) is not None]
    return PrimaryNetworkBlockPage(next_page_token=token, blocks=blocks, chain_info=network.info(C_CHAIN))


async def get_block(params: PlatformBlockParams, networks: Networks) -> PrimaryNetworkBlock:
    network = await networks.listed(params.network, C_CHAIN)
    row = await network.c_lists.block(params.block_id)
    block = None if row is None else c_block(row)
    if block is None:
        raise NotFound("no such block of the C-Chain is stored here")
    return block


async def get_transaction(params: PlatformTxParams, networks: Networks) -> CTransaction:
    network = await networks.listed(params.network, C_CHAIN)
    row = await network.c_lists.tx(params.tx_hash)
    if row is None:
        raise NotFound("the C-Chain has no such atomic transaction")
    return (await c_transactions(network, [row], with_keys=True))[0]


async def list_transactions(params: PlatformTxsParams, networks: Networks, paging: Paging) -> CTransactionPage:
    network = await networks.listed(params.network, C_CHAIN)
    addresses, upwards = network.parsed(params.addresses, with_accounts=True), params.sort_order == "asc"
    lists = network.c_lists
    of = await range_of(_TXS, params, paging, await lists.tx_count(), lists.first_seq, upwards=upwards)
    limit = SCAN_MAX if params.tx_types else params.page_size + 1
    if addresses:
        rows = await lists.txs_of(addresses, of.low, of.below, limit, upwards=upwards)
    else:
        rows = await lists.txs(of.low, of.below, limit, upwards=upwards)
    wanted = [row for row in rows if not params.tx_types or _type_of(row.raw) in params.tx_types]
    shown, last = cut(rows, wanted, params.page_size, limit)
    token: str | UnsetType = UNSET if last is None else paging.token(_TXS, params, pack_cursor(last.seq))
    return CTransactionPage(
        next_page_token=token,
        transactions=await c_transactions(network, shown),
        chain_info=network.info(C_CHAIN),
    )


def _type_of(raw: bytes) -> str:
    return "ImportTx" if unpack_core_tx(raw).is_import else "ExportTx"
