"""Handlers of metrics of EVM chains. Pages are newest first; a page token continues below the last period."""

import time
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import UNSET

from icefall.api.http.paging import NumberPaging
from icefall.api.http.row import Handler
from icefall.api.http.structs import NoParams, address_text
from icefall.api.metrics.schema import (
    AddressList,
    DaysParams,
    DaysResult,
    HoldersAboveParams,
    ListedAddress,
    MeasuredChain,
    MeasuredChainParams,
    MeasuredChains,
    MeasuredChainsParams,
    MetricResult,
    MetricsResult,
    NftHolderList,
    NftHoldersParams,
    PointResult,
    RollingParams,
    RollingResult,
    SeriesParams,
    SeriesResult,
    WindowsResult,
)
from icefall.errors import BadRequest
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.evm.reading.holders import NFTS, HolderRead, HolderTotal
from icefall.evm.reading.model import AFTER_ALL
from icefall.metrics.catalogue import METRIC_BY_CAMEL_NAME, METRICS, Metric
from icefall.metrics.reader import MetricsReader, SeriesPage
from icefall.metrics.rollup import DAY, SPAN_NAMES

DAYS_PER_PAGE = 100
CHAINS_PER_PAGE = 100
_SERIES, _CHAINS = "chainMetrics", "metricsChains"
_NFT_HOLDERS, _ABOVE = "nftHolders", "holdersAbove"


class MetricsClock(msgspec.Struct, frozen=True):
    """Unix time, for windows that end now."""

    now: Callable[[], float] = time.time


def days_of(metric: Metric) -> Handler:
    """The handler of one series of version 1."""

    async def days(params: DaysParams, chains: ChainDirectory, paging: NumberPaging) -> DaysResult:
        reader = MetricsReader((await chains.find(params.chain_id)).reader)
        before = paging.after(metric.name, params)
        page = await reader.series(metric, DAY, None, None, before, DAYS_PER_PAGE)
        more = UNSET if page.next_before is None else paging.token(metric.name, params, page.next_before)
        return DaysResult(results=_points(page), status=200, last_run=await reader.last_run(), next_page_token=more)

    return days


async def list_metrics(_: NoParams) -> MetricsResult:
    return MetricsResult(
        metrics=[
            MetricResult(
                name=metric.name,
                chain_metric=metric.camel_name,
                unit=metric.unit,
                description=metric.summary,
                time_intervals=[SPAN_NAMES[span] for span in metric.spans],
                rolling_windows=metric.has_rolling,
            )
            for metric in METRICS
        ]
    )


async def series(params: SeriesParams, chains: ChainDirectory, paging: NumberPaging) -> SeriesResult:
    metric, span = METRIC_BY_CAMEL_NAME[params.metric], SPAN_NAMES.index(params.time_interval)
    if span not in metric.spans:
        allowed = ", ".join(SPAN_NAMES[one] for one in metric.spans)
        raise BadRequest(f"timeInterval of {params.metric} must be one of {allowed}, got {params.time_interval}")
    start, end = params.start_timestamp, params.end_timestamp
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startTimestamp must not be after endTimestamp, got {start} and {end}")
    reader = MetricsReader((await chains.find(params.chain_id)).reader)
    before = paging.after(_SERIES, params)
    page = await reader.series(metric, span, start, end, before, params.page_size)
    more = UNSET if page.next_before is None else paging.token(_SERIES, params, page.next_before)
    return SeriesResult(results=_points(page), next_page_token=more)


async def rolling(params: RollingParams, chains: ChainDirectory, clock: MetricsClock) -> RollingResult:
    reader = MetricsReader((await chains.find(params.chain_id)).reader)
    windows = await reader.rolling(METRIC_BY_CAMEL_NAME[params.metric], int(clock.now()))
    return RollingResult(result=WindowsResult(**windows))


async def list_chains(params: MeasuredChainsParams, chains: ChainDirectory, paging: NumberPaging) -> MeasuredChains:
    network = "testnet" if params.network == "fuji" else params.network
    wanted = [one for one in chains.all() if not one.info.private and network in (None, _network(one))]
    begin = paging.after(_CHAINS, params) or 0
    end = begin + CHAINS_PER_PAGE
    rendered = [await _chain(one) for one in wanted[begin:end]]
    if end >= len(wanted):
        return MeasuredChains(chains=rendered)
    return MeasuredChains(chains=rendered, next_page_token=paging.token(_CHAINS, params, end))


async def get_chain(params: MeasuredChainParams, chains: ChainDirectory) -> MeasuredChain:
    return await _chain(await chains.find(params.chain_id))


def _network(chain: EvmChain) -> Literal["mainnet", "testnet"]:
    return "testnet" if chain.info.testnet else "mainnet"


async def _chain(chain: EvmChain) -> MeasuredChain:
    return MeasuredChain(
        evm_chain_id=int(chain.info.id),
        chain_name=chain.info.shown_name,
        blockchain_id=await chain.blockchain_id(),
        subnet_id=chain.info.subnet_id,
        network=_network(chain),
    )


def _points(page: SeriesPage) -> list[PointResult]:
    return [PointResult(timestamp=point.timestamp, value=point.value) for point in page.points]


async def nft_holders(params: NftHoldersParams, chains: ChainDirectory, paging: NumberPaging) -> NftHolderList:
    chain = await chains.find(params.chain_id)
    after = paging.after(_NFT_HOLDERS, params) or 0
    totals = [one for one in await chain.holders.totals(params.address) if one.standard in NFTS]
    total = totals[0] if totals else HolderTotal(NFTS[0], 0, 0)
    rows, more = await chain.holders.by_id(params.address, total.standard, after, params.page_size)
    contract = await chain.tokens.contract(params.address)
    return NftHolderList(
        next_page_token=UNSET if more is None else paging.token(_NFT_HOLDERS, params, more),
        addresses=[_listed(row) for row in rows],
        nft_collection_name=[contract.name] if contract is not None and contract.name else UNSET,
        nft_symbol=[contract.symbol] if contract is not None and contract.symbol else UNSET,
        total_holders=total.holders,
        total_tokens=total.tokens,
    )


async def holders_above(params: HoldersAboveParams, chains: ChainDirectory, paging: NumberPaging) -> AddressList:
    """List who held more than the threshold at any time of the frame; without a frame, at any time."""
    start, end = params.start_timestamp, params.end_timestamp
    if start is not None and end is not None and start > end:
        raise BadRequest(f"startTimestamp must not be after endTimestamp, got {start} and {end}")
    chain = await chains.find(params.chain_id)
    after = paging.after(_ABOVE, params) or 0
    blocks = range(await _first_block(chain, start, 0), await _first_block(chain, end, AFTER_ALL))
    rows, more = await chain.holders.above(params.address, params.threshold, blocks, after, params.page_size)
    token = UNSET if more is None else paging.token(_ABOVE, params, more)
    return AddressList(next_page_token=token, addresses=[_listed(row) for row in rows])


async def _first_block(chain: EvmChain, time: int | None, absent: int) -> int:
    """The first block at this time or later."""
    if time is None:
        return absent
    earlier = await chain.blocks.at_or_before(time - 1) if time else None
    return earlier.number + 1 if earlier is not None else 0


def _listed(row: HolderRead) -> ListedAddress:
    return ListedAddress(address_text(row.address), f"0x{row.address.hex()}")
