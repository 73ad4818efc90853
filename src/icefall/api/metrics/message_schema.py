"""Parameters and results of counts of messages between chains."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from icefall.api.http.rest_params import (
    ChainName,
    MaybeChain,
    MetricsPageSize,
    Network,
    PageToken,
    RestParamType,
    TimeInterval,
    Timestamp,
    one_of,
)
from icefall.api.http.structs import InvalidValue, RestParams, RestResult

SIDES = ("srcBlockchainId", "destBlockchainId")
_SIDE = "|".join(SIDES)


def _group_by(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(text.split(",")))
    if not set(words) <= set(SIDES):
        raise InvalidValue(f"{SIDES[0]}, {SIDES[1]}, or both, separated by a comma")
    return words


GROUP_BY = RestParamType(
    "words with commas",
    _group_by,
    {"type": "string", "pattern": f"^({_SIDE})(,({_SIDE}))*$"},
    SIDES[0],
    is_list=True,
)
GroupBy = Annotated[tuple[str, ...], GROUP_BY]
TeleporterMetric = Annotated[
    str, one_of("teleporterSourceTxnCount", "teleporterDestinationTxnCount", "teleporterTotalTxnCount")
]


class IcmSummaryParams(RestParams, frozen=True):
    """The chains are given by blockchain ID, or by EVM chain ID or alias if they are indexed here."""

    src_blockchain_id: MaybeChain = None
    dest_blockchain_id: MaybeChain = None
    network: Network = None
    group_by: GroupBy = ()


class IcmSeriesParams(IcmSummaryParams, frozen=True):
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None
    time_interval: TimeInterval = "day"
    page_token: PageToken = ""
    page_size: MetricsPageSize = 100


class TeleporterMetricParams(RestParams, frozen=True):
    chain_id: ChainName
    metric: TeleporterMetric


class IcmPoint(RestResult, frozen=True, kw_only=True):
    """The messages of a period. Periods without any are left out. The chains are there where `groupBy` names them."""

    timestamp: int
    value: int
    src_blockchain_id: str | UnsetType = UNSET
    dest_blockchain_id: str | UnsetType = UNSET


class IcmSeries(RestResult, frozen=True, kw_only=True):
    results: list[IcmPoint]
    next_page_token: str | UnsetType = UNSET


class IcmWindows(RestResult, frozen=True, kw_only=True):
    """The messages of each window. It ends now and begins with the whole hour in which its length ends."""

    last_hour: int
    last_day: int
    last_week: int
    last_month: int
    last90_days: int
    last_year: int
    all_time: int
    src_blockchain_id: str | UnsetType = UNSET
    dest_blockchain_id: str | UnsetType = UNSET


class IcmSummary(RestResult, frozen=True, kw_only=True):
    result: list[IcmWindows]


class TeleporterValue(RestResult, frozen=True):
    value: int


class TeleporterMetricResult(RestResult, frozen=True):
    result: TeleporterValue
