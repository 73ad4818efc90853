"""Handlers of blocks of the P-Chain."""

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.networks.network import Networks
from icefall.api.networks.render.blocks import platform_block
from icefall.api.networks.schema.blocks import (
    PlatformBlockParams,
    PlatformBlocksParams,
    PrimaryNetworkBlock,
    PrimaryNetworkBlockPage,
)
from icefall.errors import BadRequest, NotFound

_BLOCKS = "platformBlocks"


def check_times(start: int | None, end: int | None) -> None:
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startTimestamp must not be after endTimestamp, got {start} and {end}")


async def list_blocks(params: PlatformBlocksParams, networks: Networks, paging: Paging) -> PrimaryNetworkBlockPage:
    network = await networks.find(params.network, params.blockchain_id)
    check_times(params.start_timestamp, params.end_timestamp)
    (below,) = cursor_of(_BLOCKS, params, paging) or (None,)
    count, low, lists = (await network.platform.ledger()).height + 1, 0, network.lists
    if params.start_timestamp is not None:
        low = await lists.first_height(params.start_timestamp, count)
    if below is None:
        below = count if params.end_timestamp is None else await lists.first_height(params.end_timestamp + 1, count)
    rows = await lists.blocks(low, below, params.page_size + 1)
    token: str | UnsetType = UNSET
    if len(rows) > params.page_size:
        rows.pop()
        token = paging.token(_BLOCKS, params, pack_cursor(rows[-1].height))
    blocks = [platform_block(row) for row in rows]
    return PrimaryNetworkBlockPage(next_page_token=token, blocks=blocks, chain_info=network.chain_info)


async def get_block(params: PlatformBlockParams, networks: Networks) -> PrimaryNetworkBlock:
    network = await networks.find(params.network, params.blockchain_id)
    row = await network.lists.block(params.block_id)
    if row is None:
        raise NotFound("the P-Chain has no such block")
    return platform_block(row)
