"""Metrics of EVM chains. Pages are newest first; a page token continues below the last period shown."""

import time
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import UNSET

from icefall.api.endpoints.row import Handler
from icefall.api.paging import NumberPaging
from icefall.api.params.node_binder import NoParams
from icefall.api.schema.metrics import (
    DaysParams,
    DaysResult,
    MeasuredChain,
    MeasuredChainParams,
    MeasuredChains,
    MeasuredChainsParams,
    MetricResult,
    MetricsResult,
    PointResult,
    RollingParams,
    RollingResult,
    SeriesParams,
    SeriesResult,
    WindowsResult,
)
from icefall.errors import BadRequest
from icefall.evm.reading.directory import ChainDirectory, EvmChain
from icefall.metrics.catalogue import METRIC_BY_CAMEL_NAME, METRICS, Metric
from icefall.metrics.periods import DAY, SPAN_NAMES
from icefall.metrics.reader import MetricsReader, SeriesPage

DAYS_PER_PAGE = 100
CHAINS_PER_PAGE = 100
_SERIES, _CHAINS = "chainMetrics", "metricsChains"


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
    shown = [await _chain(one) for one in wanted[begin:end]]
    if end >= len(wanted):
        return MeasuredChains(chains=shown)
    return MeasuredChains(chains=shown, next_page_token=paging.token(_CHAINS, params, end))


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
