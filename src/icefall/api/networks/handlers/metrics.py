"""Handlers of the series of the primary network, from sums that are written with the blocks."""

from msgspec import UNSET

from icefall.api.http.paging import NumberPaging
from icefall.api.networks.network import Networks, PrimaryNetwork
from icefall.api.networks.schema.metrics import (
    NODE_FEES,
    STAKE_SERIES,
    SUBNET_FEES,
    TOTAL_FEES,
    VALIDATION_FEES,
    NetworkPoint,
    NetworkSeries,
    NodeFeeParams,
    StakerAddresses,
    StakerAddressPage,
    StakersParams,
    StakeSeriesParams,
    SubnetFeeParams,
    TotalFeeParams,
    ValidationFeeParams,
)
from icefall.errors import BadRequest, Unavailable
from icefall.pchain.day_sums import Frame
from icefall.pchain.l1_fees import FeeKey, FeeScope
from icefall.pchain.sums import ALL_SUBNETS, DAY_S

DAYS_MAX = 2160  # of a series that has no pages
_STAKES, _STAKERS = "stakingMetrics", "stakerAddresses"


async def stake_series(params: StakeSeriesParams, networks: Networks, paging: NumberPaging) -> NetworkSeries:
    frame = _frame(params.start_timestamp, params.end_timestamp)._replace(before=paging.after(_STAKES, params))
    network = await networks.find_staking(params.network)
    subnet_id = ALL_SUBNETS if params.subnet_id is None else params.subnet_id
    days, more = await network.days.stake(subnet_id, frame, params.page_size)
    field = STAKE_SERIES[params.metric]
    return NetworkSeries(
        results=[NetworkPoint(timestamp=one.day * DAY_S, value=getattr(one, field)) for one in days],
        next_page_token=UNSET if more is None else paging.token(_STAKES, params, more),
    )


async def total_fees(params: TotalFeeParams, networks: Networks) -> NetworkSeries:
    return await _fees(params, (FeeScope.ALL, b""), TOTAL_FEES[params.metric], networks)


async def subnet_fees(params: SubnetFeeParams, networks: Networks) -> NetworkSeries:
    return await _fees(params, (FeeScope.SUBNET, params.subnet_id), SUBNET_FEES[params.metric], networks)


async def node_fees(params: NodeFeeParams, networks: Networks) -> NetworkSeries:
    return await _fees(params, (FeeScope.NODE, params.node_id), NODE_FEES[params.metric], networks)


async def validation_fees(params: ValidationFeeParams, networks: Networks) -> NetworkSeries:
    return await _fees(params, (FeeScope.VALIDATION, params.l1_validation_id), VALIDATION_FEES[params.metric], networks)


_FeeParams = TotalFeeParams | SubnetFeeParams | NodeFeeParams | ValidationFeeParams


async def _fees(params: _FeeParams, key: FeeKey, field: str, networks: Networks) -> NetworkSeries:
    frame = _frame(params.start_timestamp, params.end_timestamp)
    network = await _with_fees(networks)
    days = await network.days.fees(key, frame, DAYS_MAX)
    return NetworkSeries(results=[NetworkPoint(timestamp=one.day * DAY_S, value=getattr(one, field)) for one in days])


async def _with_fees(networks: Networks) -> PrimaryNetwork:
    network = await networks.the_network()
    if not await network.days.has_fees():
        raise Unavailable(
            "L1 validators paid fees before this store had sums of them: follow the network in a new --data-dir"
        )
    return network


def _frame(start: int | None, end: int | None) -> Frame:
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startTimestamp must not be after endTimestamp, got {start} and {end}")
    return Frame(start, end)


async def staker_addresses(params: StakersParams, networks: Networks, paging: NumberPaging) -> StakerAddressPage:
    """List who gets the rewards of validations of a subnet whose transactions are in the time frame, newest first."""
    start, end, before = *_frame(params.start_timestamp, params.end_timestamp)[:2], paging.after(_STAKERS, params)
    network = await (networks.the_network() if params.network is None else networks.find_staking(params.network))
    count = await network.lists.tx_count()
    low = 0 if start is None else await network.lists.first_seq(start, count)
    below = count if end is None else await network.lists.first_seq(end, count)
    below = below if before is None else min(below, before)
    found = await network.days.staked_by(params.subnet_id, low, below, params.page_size + 1)
    page = found[: params.page_size]
    return StakerAddressPage(
        next_page_token=paging.token(_STAKERS, params, page[-1].seq) if len(found) > len(page) else UNSET,
        addresses=[StakerAddresses(network.addresses(one.addresses), str(one.time)) for one in page],
    )
