"""The metrics interface: series by day as version 1 writes them, and what clients of version 2 ask for."""

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from icefall.api.rest_kinds import ChainName, MetricsPageSize, Network, PageToken, TimeInterval, Timestamp, one_of
from icefall.api.schema.names import RestAsk, RestTold
from icefall.metrics.catalogue import METRICS
from icefall.metrics.periods import SpanName

ChainMetric = Annotated[str, one_of(*(metric.camel_name for metric in METRICS))]
RollingMetric = Annotated[str, one_of(*(metric.camel_name for metric in METRICS if metric.rolls))]


class DaysAsk(RestAsk, frozen=True):
    chain_id: ChainName
    page_token: PageToken = ""


class SeriesAsk(RestAsk, frozen=True):
    chain_id: ChainName
    metric: ChainMetric
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    time_interval: TimeInterval = "day"
    page_token: PageToken = ""
    page_size: MetricsPageSize = 100


class RollingAsk(RestAsk, frozen=True):
    chain_id: ChainName
    metric: RollingMetric


class ChainsAsk(RestAsk, frozen=True):
    network: Network = None
    page_token: PageToken = ""


class ChainAsk(RestAsk, frozen=True):
    chain_id: ChainName


class PointTold(RestTold, frozen=True):
    timestamp: int
    value: int | float


class DaysTold(RestTold, frozen=True):
    results: list[PointTold]
    status: int
    last_run: int
    next_page_token: str | UnsetType = UNSET


class SeriesTold(RestTold, frozen=True):
    results: list[PointTold]
    next_page_token: str | UnsetType = UNSET


class WindowsTold(RestTold, frozen=True):
    last_hour: int | float
    last_day: int | float
    last_month: int | float
    last_year: int | float
    all_time: int | float


class RollingTold(RestTold, frozen=True):
    result: WindowsTold


class MetricTold(RestTold, frozen=True):
    name: str
    chain_metric: str
    unit: str
    description: str
    time_intervals: list[SpanName]
    rolling_windows: bool


class MetricsTold(RestTold, frozen=True):
    metrics: list[MetricTold]


class MeasuredChain(RestTold, frozen=True):
    evm_chain_id: int
    chain_name: str
    blockchain_id: str
    subnet_id: str
    network: Literal["mainnet", "testnet"]


class MeasuredChains(RestTold, frozen=True):
    chains: list[MeasuredChain]
    next_page_token: str | UnsetType = UNSET
