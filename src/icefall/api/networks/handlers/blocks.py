"""Handlers of network details and of blocks of the P-Chain."""

from msgspec import UNSET, UnsetType

from icefall.api.http.paging import Paging, cursor_of, pack_cursor
from icefall.api.networks.network import Networks
from icefall.api.networks.render.blocks import platform_block
from icefall.api.networks.schema.assets import NetworkParams
from icefall.api.networks.schema.blocks import (
    NetworkDelegators,
    NetworkDetails,
    NetworkValidators,
    PlatformBlockParams,
    PlatformBlocksParams,
    PrimaryNetworkBlock,
    PrimaryNetworkBlockPage,
    StakingDistribution,
)
from icefall.errors import BadRequest, NotFound
from icefall.pchain.model import Priority
from icefall.wire.ids import PRIMARY_NETWORK

_BLOCKS = "platformBlocks"
_RATIO_DECIMALS = 20
UNKNOWN_VERSION = "offline"  # what the hosted service calls the version of nodes it is not connected to


async def network_details(params: NetworkParams, networks: Networks) -> NetworkDetails:
    network = await networks.find(params.network)
    own = await network.lists.stake_sums(PRIMARY_NETWORK, Priority.VALIDATOR)
    delegated = await network.lists.stake_sums(PRIMARY_NETWORK, Priority.DELEGATOR)
    supply = await network.platform.supply(PRIMARY_NETWORK) or 0
    staked = own.weight + delegated.weight
    return NetworkDetails(
        validator_details=NetworkValidators(
            validator_count=own.count,
            total_amount_staked=str(own.weight),
            estimated_annual_staking_reward=str(own.reward + delegated.reward),
            staking_distribution_by_version=[
                StakingDistribution(version=UNKNOWN_VERSION, amount_staked=str(staked), validator_count=own.count)
            ],
            staking_ratio=ratio_text(staked, supply),
        ),
        delegator_details=NetworkDelegators(delegator_count=delegated.count, total_amount_staked=str(delegated.weight)),
    )


def ratio_text(part: int, whole: int) -> str:
    """Write a ratio with 20 decimals, exactly, rounded down."""
    scale = 10**_RATIO_DECIMALS
    scaled = part * scale // whole if whole else 0
    return f"{scaled // scale}.{scaled % scale:0{_RATIO_DECIMALS}d}"


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
