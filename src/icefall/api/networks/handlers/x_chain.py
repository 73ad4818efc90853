"""Handlers of the X-Chain: blocks, transactions, assets and vertices."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.networks.handlers.blocks import check_times
from icefall.api.networks.handlers.transactions import SCAN_MAX
from icefall.api.networks.network import X_CHAIN, Networks, PrimaryNetwork
from icefall.api.networks.render.x_chain import asset_details, utxo_count, vertex, x_block, x_transactions
from icefall.api.networks.schema.blocks import (
    PlatformBlockParams,
    PlatformBlocksParams,
    PrimaryNetworkBlock,
    PrimaryNetworkBlockPage,
)
from icefall.api.networks.schema.transactions import PlatformTxParams, PlatformTxsParams
from icefall.api.networks.schema.x_chain import (
    AssetDetails,
    AssetTxsParams,
    NetworkAssetParams,
    VertexParams,
    VerticesAtParams,
    VerticesParams,
    XTransaction,
    XTransactionPage,
    XVertex,
    XVertexPage,
)
from icefall.errors import NotFound
from icefall.wire.avm import types as t
from icefall.wire.avm.codec import unpack_tx
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.xchain.listing import AssetChainTx
from icefall.xchain.store import NEWEST
from icefall.xchain.vertices import StoredVertex

UTXOS_MAX = 5000  # outputs on a page of transactions: it is shorter than asked for rather than larger
_BLOCKS, _TXS, _OF_ASSET = "xBlocks", "xTransactions", "xAssetTransactions"
_VERTICES, _VERTICES_AT = "xVertices", "xVerticesAt"
_TYPES = {kind.type_id: kind.__name__ for kind in (t.BaseTx, t.CreateAssetTx, t.OperationTx, t.ImportTx, t.ExportTx)}
_TYPE_AT = slice(2, 6)  # in the bytes of a transaction: behind the version
Listed = TypeVar("Listed")
_Read = Callable[[int, int, int], Awaitable[list[AssetChainTx]]]


class Range(msgspec.Struct, frozen=True):
    """The numbers that a page is read from: from `low` on, those below `below`."""

    low: int
    below: int


async def range_of(
    route: str,
    params: Any,
    paging: Paging,
    count: int,
    first_at: Callable[[int, int], Awaitable[int]],
    *,
    upwards: bool,
) -> Range:
    """The numbers of a time frame, both ends included, of which `count` is the end, and of what is left after a page.
    `first_at` finds the first number of a time."""
    check_times(params.start_timestamp, params.end_timestamp)
    low, below = 0, count
    if params.start_timestamp is not None:
        low = await first_at(params.start_timestamp, count)
    cursor = cursor_of(route, params, paging)
    if params.end_timestamp is not None and (cursor is None or upwards):
        below = await first_at(params.end_timestamp + 1, count)
    if cursor is not None:
        return Range(max(low, cursor[0] + 1), below) if upwards else Range(low, min(below, cursor[0]))
    return Range(low, below)


def cut(rows: Sequence[Listed], wanted: Sequence[Listed], size: int, limit: int) -> tuple[list[Listed], Listed | None]:
    """The rows of a page, and the one behind which the next page continues. `wanted` are those of `rows`, of which at
    most `limit` were read, that pass a filter."""
    if len(wanted) > size:
        return list(wanted[:size]), wanted[size - 1]
    return list(wanted), rows[-1] if len(rows) == limit else None


# -- blocks --------------------------------------------------------------------------------------------------------


async def list_blocks(params: PlatformBlocksParams, networks: Networks, paging: Paging) -> PrimaryNetworkBlockPage:
    network = await networks.listed(params.network, X_CHAIN)
    lists = network.x_lists
    count, _ = await lists.counts()
    of = await range_of(_BLOCKS, params, paging, count, lists.first_height, upwards=False)
    rows = await lists.blocks(of.low, of.below, params.page_size + 1)
    shown, last = cut(rows, rows, params.page_size, params.page_size + 1)
    token: str | UnsetType = UNSET if last is None else paging.token(_BLOCKS, params, pack_cursor(last.height))
    return PrimaryNetworkBlockPage(
        next_page_token=token, blocks=[x_block(row) for row in shown], chain_info=network.info(X_CHAIN)
    )


async def get_block(params: PlatformBlockParams, networks: Networks) -> PrimaryNetworkBlock:
    network = await networks.listed(params.network, X_CHAIN)
    row = await network.x_lists.block(params.block_id)
    if row is None:
        raise NotFound("the X-Chain has no such block")
    return x_block(row)


# -- transactions --------------------------------------------------------------------------------------------------


async def get_transaction(params: PlatformTxParams, networks: Networks) -> XTransaction:
    network = await networks.listed(params.network, X_CHAIN)
    row = await network.x_lists.tx(params.tx_hash)
    if row is None:
        raise NotFound("the X-Chain has no such transaction")
    return (await x_transactions(network, [row], with_keys=True))[0]


async def list_transactions(params: PlatformTxsParams, networks: Networks, paging: Paging) -> XTransactionPage:
    network = await networks.listed(params.network, X_CHAIN)
    addresses, upwards = network.parsed(params.addresses), params.sort_order == "asc"

    async def read(low: int, below: int, limit: int) -> list[AssetChainTx]:
        if addresses:
            return await network.x_lists.txs_of(addresses, low, below, limit, upwards=upwards)
        return await network.x_lists.txs(low, below, limit, upwards=upwards)

    return await _page(_TXS, params, network, paging, read, upwards=upwards)


async def list_asset_transactions(params: AssetTxsParams, networks: Networks, paging: Paging) -> XTransactionPage:
    network = await networks.find_x(params.network, params.blockchain_id)

    async def read(low: int, below: int, limit: int) -> list[AssetChainTx]:
        return await network.x_lists.txs_of_asset(params.asset_id, low, below, limit)

    return await _page(_OF_ASSET, params, network, paging, read, upwards=False)


async def _page(
    route: str,
    params: PlatformTxsParams | AssetTxsParams,
    network: PrimaryNetwork,
    paging: Paging,
    read: _Read,
    *,
    upwards: bool,
) -> XTransactionPage:
    _, count = await network.x_lists.counts()
    of = await range_of(route, params, paging, count, network.x_lists.first_seq, upwards=upwards)
    limit = SCAN_MAX if params.tx_types else params.page_size + 1
    rows = await read(of.low, of.below, limit)
    wanted = [row for row in rows if _type_of(row.raw) in params.tx_types] if params.tx_types else rows
    shown, last = cut(rows, wanted, params.page_size, limit)
    fitting = _fitting(shown)
    if fitting < len(shown):
        shown, last = shown[:fitting], shown[fitting - 1]
    token: str | UnsetType = UNSET if last is None else paging.token(route, params, pack_cursor(last.seq))
    return XTransactionPage(
        next_page_token=token,
        transactions=await x_transactions(network, shown),
        chain_info=network.info(X_CHAIN),
    )


def _type_of(raw: bytes) -> str:
    return _TYPES.get(int.from_bytes(raw[_TYPE_AT], "big"), "UNKNOWN")


def _fitting(rows: Sequence[AssetChainTx]) -> int:
    """How many of the transactions have no more outputs than fit on a page; at least one."""
    total = 0
    for number, row in enumerate(rows):
        total += utxo_count(row.raw)
        if total > UTXOS_MAX and number:
            return number
    return len(rows)


# -- assets and vertices -------------------------------------------------------------------------------------------


async def get_asset(params: NetworkAssetParams, networks: Networks) -> AssetDetails:
    network = await networks.find_x(params.network, params.blockchain_id)
    row = await network.x_lists.tx(params.asset_id)
    unsigned = unpack_tx(row.raw, GENESIS_SIZE_MAX).unsigned if row is not None else None
    if row is None or not isinstance(unsigned, t.CreateAssetTx):
        raise NotFound("the X-Chain has no such asset")
    return asset_details(row.txid, unsigned, row.time)


async def list_vertices(params: VerticesParams, networks: Networks, paging: Paging) -> XVertexPage:
    """Vertices, those at the end of the index first. A network that began with blocks has none."""
    network = await networks.find_x(params.network, params.blockchain_id)
    cursor = cursor_of(_VERTICES, params, paging)
    rows = await network.vertices.newest(NEWEST if cursor is None else cursor[0], params.page_size + 1)
    return await _vertex_page(_VERTICES, params, network, paging, rows)


async def list_vertices_at(params: VerticesAtParams, networks: Networks, paging: Paging) -> XVertexPage:
    network = await networks.find_x(params.network, params.blockchain_id)
    cursor, upwards = cursor_of(_VERTICES_AT, params, paging), params.sort_order == "asc"
    low, below = -1, NEWEST
    if cursor is not None:
        low, below = (cursor[0], below) if upwards else (low, cursor[0])
    rows = await network.vertices.at_height(params.vertex_height, low, below, params.page_size + 1, upwards=upwards)
    return await _vertex_page(_VERTICES_AT, params, network, paging, rows)


async def _vertex_page(
    route: str,
    params: VerticesParams | VerticesAtParams,
    network: PrimaryNetwork,
    paging: Paging,
    rows: Sequence[StoredVertex],
) -> XVertexPage:
    shown, last = cut(rows, rows, params.page_size, params.page_size + 1)
    token: str | UnsetType = UNSET if last is None else paging.token(route, params, pack_cursor(last.number))
    return XVertexPage(
        next_page_token=token, vertices=await _vertices(network, shown), chain_info=network.info(X_CHAIN)
    )


async def get_vertex(params: VertexParams, networks: Networks) -> XVertex:
    network = await networks.find_x(params.network, params.blockchain_id)
    row = await network.vertices.vertex(params.vertex_hash)
    if row is None:
        raise NotFound("the X-Chain here has no such vertex")
    return (await _vertices(network, [row]))[0]


async def _vertices(network: PrimaryNetwork, rows: Sequence[StoredVertex]) -> list[XVertex]:
    if not rows:
        return []
    txids = await network.vertices.txids(rows)
    time = await network.x_lists.block_0_time()
    return [vertex(row, txids[row.number], time) for row in rows]
