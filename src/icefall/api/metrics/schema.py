"""The metrics interface: series by day (version 1), and series, windows and chains (version 2)."""

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from icefall.api.http.rest_params import (
    ChainName,
    EvmAddress,
    HoldersPageSize,
    MetricsPageSize,
    Network,
    PageToken,
    Threshold,
    TimeInterval,
    Timestamp,
    one_of,
)
from icefall.api.http.structs import Page, RestParams, RestResult
from icefall.metrics.catalogue import METRICS
from icefall.metrics.rollup import SpanName

ChainMetric = Annotated[str, one_of(*(metric.camel_name for metric in METRICS))]
RollingMetric = Annotated[str, one_of(*(metric.camel_name for metric in METRICS if metric.has_rolling))]


class DaysParams(RestParams, frozen=True):
    chain_id: ChainName
    page_token: PageToken = ""


class SeriesParams(RestParams, frozen=True):
    chain_id: ChainName
    metric: ChainMetric
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    time_interval: TimeInterval = "day"
    page_token: PageToken = ""
    page_size: MetricsPageSize = 100


class RollingParams(RestParams, frozen=True):
    chain_id: ChainName
    metric: RollingMetric


class MeasuredChainsParams(RestParams, frozen=True):
    network: Network = None
    page_token: PageToken = ""


class MeasuredChainParams(RestParams, frozen=True):
    chain_id: ChainName


class PointResult(RestResult, frozen=True):
    timestamp: int
    value: int | float


class DaysResult(RestResult, frozen=True):
    results: list[PointResult]
    status: int
    last_run: int
    next_page_token: str | UnsetType = UNSET


class SeriesResult(RestResult, frozen=True):
    results: list[PointResult]
    next_page_token: str | UnsetType = UNSET


class WindowsResult(RestResult, frozen=True):
    last_hour: int | float
    last_day: int | float
    last_month: int | float
    last_year: int | float
    all_time: int | float


class RollingResult(RestResult, frozen=True):
    result: WindowsResult


class MetricResult(RestResult, frozen=True):
    name: str
    chain_metric: str
    unit: str
    description: str
    time_intervals: list[SpanName]
    rolling_windows: bool


class MetricsResult(RestResult, frozen=True):
    metrics: list[MetricResult]


class MeasuredChain(RestResult, frozen=True):
    evm_chain_id: int
    chain_name: str
    blockchain_id: str
    subnet_id: str
    network: Literal["mainnet", "testnet"]


class MeasuredChains(RestResult, frozen=True):
    chains: list[MeasuredChain]
    next_page_token: str | UnsetType = UNSET


class NftHoldersParams(RestParams, frozen=True):
    chain_id: ChainName
    address: EvmAddress
    page_token: PageToken = ""
    page_size: HoldersPageSize = 1000


class HoldersAboveParams(RestParams, frozen=True):
    """The time frame is from `startTimestamp` to before `endTimestamp`."""

    chain_id: ChainName
    address: EvmAddress
    threshold: Threshold
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    page_token: PageToken = ""
    page_size: HoldersPageSize = 1000


class ListedAddress(RestResult, frozen=True, gc=False):
    address: str
    sort_key: str


class AddressList(Page, frozen=True, kw_only=True):
    addresses: list[ListedAddress]


class NftHolderList(AddressList, frozen=True, kw_only=True):
    nft_collection_name: list[str] | UnsetType = UNSET
    nft_symbol: list[str] | UnsetType = UNSET
    total_holders: int
    total_tokens: int
