"""Usage of the chain data interface by key: counts by day, and single requests."""

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from icefall.api.http.rest_params import PageSize, PageToken, RestParamType, Timestamp, one_of
from icefall.api.http.structs import InvalidValue, Page, RestParams, RestResult

GroupedBy: TypeAlias = Literal["requestPath", "responseCode", "chainId", "apiKeyId", "requestType", "None"]
GROUPS = ("requestPath", "responseCode", "chainId", "apiKeyId", "requestType")


def _text(text: str) -> str:
    if not text.isprintable() or len(text) > 200:
        raise InvalidValue("at most 200 printable characters")
    return text


Word = Annotated[str, RestParamType("string", _text, {"type": "string", "maxLength": 200})]
RequestType = Annotated[str | None, one_of("data", "rpc")]
GroupBy = Annotated[str | None, one_of(*GROUPS)]
UsageInterval = Annotated[str, one_of("daily", "weekly", "monthly", "hourly", "minute")]


class UsageFilter(RestParams, frozen=True):
    """The parameters of both. There are no organisations here: `orgId` is accepted and changes nothing."""

    org_id: Word = ""
    api_key_id: Word = ""
    chain_id: Word = ""
    request_path: Word = ""
    request_type: RequestType = None
    response_code: Word = ""
    start_timestamp: Timestamp = None
    end_timestamp: Timestamp = None


class UsageParams(UsageFilter, frozen=True):
    group_by: GroupBy = None
    time_interval: UsageInterval = "daily"


class LogsParams(UsageFilter, frozen=True):
    page_token: PageToken = ""
    page_size: PageSize = 10


class UsageValue(RestResult, frozen=True, kw_only=True):
    grouped_by: GroupedBy
    group_value: str | UnsetType = UNSET
    total_requests: int
    requests_per_second: float
    success_rate_percent: float
    median_response_time_msecs: float
    invalid_requests: int
    api_credits_used: int
    api_credits_wasted: int


class UsageMetric(RestResult, frozen=True):
    timestamp: int
    values: list[UsageValue]


class UsageMetrics(RestResult, frozen=True):
    aggregate_duration: str
    org_id: str
    metrics: list[UsageMetric]


class LogMetadata(RestResult, frozen=True):
    ip_address: str
    host: str
    user_agent: str


class LogEntry(RestResult, frozen=True, kw_only=True):
    org_id: str
    log_id: str
    event_timestamp: float
    api_key_id: str
    api_key_alias: str
    host_region: str
    request_type: Literal["data", "rpc"]
    request_path: str
    api_credits_consumed: int
    request_duration_msecs: float
    response_code: int
    chain_id: str | UnsetType = UNSET
    metadata: LogMetadata


class RequestLogPage(Page, frozen=True, kw_only=True):
    org_id: str
    logs: list[LogEntry]
