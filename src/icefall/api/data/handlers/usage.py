"""Usage of the chain data interface. A key sees its own; a caller on this machine, where limits are off, sees all."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import cast

from msgspec import UNSET

from icefall.access.budgets import DAY_S
from icefall.access.client_address import CurrentCaller
from icefall.access.usage import UsageRow, median_ms, total
from icefall.access.usage_store import UsageReader
from icefall.api.data.schema.usage import (
    GroupedBy,
    LogEntry,
    LogMetadata,
    LogsParams,
    RequestLogPage,
    UsageFilter,
    UsageMetric,
    UsageMetrics,
    UsageParams,
    UsageValue,
)
from icefall.api.http.paging import Paging
from icefall.errors import BadRequest, Forbidden, Unauthorized

DAYS_BY_DEFAULT = 30
_LOGS = "apiLogs"
_ID_MAX = 2**63 - 1
_GROUPS: dict[str, Callable[[UsageRow], str]] = {
    "requestPath": lambda row: row.key.path,
    "responseCode": lambda row: str(row.key.status),
    "chainId": lambda row: row.key.chain,
    "apiKeyId": lambda row: row.key.caller,
    "requestType": lambda row: "data",
}


def _visible(params: UsageFilter, current: CurrentCaller) -> str:
    """The key whose usage the caller may see; empty for all."""
    caller = current.get()
    if not caller.key:
        if caller.is_trusted:
            return params.api_key_id
        raise Unauthorized("usage belongs to a key: send it as x-service-api-key")
    if params.api_key_id not in ("", caller.key):
        raise Forbidden("a key can read only its own usage")
    return caller.key


def _status(params: UsageFilter) -> int:
    if params.response_code and not (params.response_code.isdigit() and len(params.response_code) == 3):
        raise BadRequest("responseCode must be an HTTP status such as 200")
    return int(params.response_code or 0)


async def usage_metrics(params: UsageParams, usage: UsageReader, caller: CurrentCaller) -> UsageMetrics:
    key, status, now = _visible(params, caller), _status(params), usage.now()
    if params.time_interval in ("hourly", "minute"):
        raise BadRequest("timeInterval must be daily, weekly or monthly: usage is kept by day")
    last = int(params.end_timestamp if params.end_timestamp is not None else now) // DAY_S
    first = params.start_timestamp // DAY_S if params.start_timestamp is not None else last - DAYS_BY_DEFAULT + 1
    found = [
        row
        for row in (await usage.between(first, last) if params.request_type != "rpc" else [])
        if (not key or row.key.caller == key)
        and (not params.chain_id or row.key.chain == params.chain_id)
        and (not params.request_path or row.key.path == params.request_path)
        and (not status or row.key.status == status)
    ]
    by_period: dict[int, list[UsageRow]] = {}
    for row in found:
        by_period.setdefault(_period(row.key.day, params.time_interval), []).append(row)
    metrics = [
        UsageMetric(timestamp=start, values=_values(rows, params, start, now))
        for start, rows in sorted(by_period.items())
    ]
    return UsageMetrics(aggregate_duration=params.time_interval, org_id="", metrics=metrics)


def _period(day: int, interval: str) -> int:
    """The time when the day, week (from Monday) or month of UTC began."""
    date = datetime.fromtimestamp(day * DAY_S, UTC)
    if interval == "weekly":
        date -= timedelta(days=date.weekday())
    elif interval == "monthly":
        date = date.replace(day=1)
    return int(date.timestamp())


def _values(rows: Iterable[UsageRow], params: UsageParams, start: int, now: float) -> list[UsageValue]:
    groups: dict[str, list[UsageRow]] = {}
    for row in rows:
        groups.setdefault(_GROUPS[params.group_by](row) if params.group_by else "", []).append(row)
    spans = {"daily": DAY_S, "weekly": 7 * DAY_S, "monthly": 31 * DAY_S}
    seconds = max(1.0, min(float(spans[params.time_interval]), now - start))
    return [_value(groups[value], params.group_by, value, seconds) for value in sorted(groups)]


def _value(rows: list[UsageRow], group_by: str | None, value: str, seconds: float) -> UsageValue:
    counts, failed = total(rows), total(row for row in rows if row.key.status >= 400)
    invalid = total(row for row in rows if 400 <= row.key.status < 500)
    return UsageValue(
        grouped_by=cast(GroupedBy, group_by or "None"),  # a word of the same list
        group_value=value if group_by else UNSET,
        total_requests=counts.calls,
        requests_per_second=counts.calls / seconds,
        success_rate_percent=100.0 * (counts.calls - failed.calls) / counts.calls if counts.calls else 100.0,
        median_response_time_msecs=median_ms(counts.durations),
        invalid_requests=invalid.calls,
        api_credits_used=counts.units,
        api_credits_wasted=failed.units,
    )


async def api_logs(params: LogsParams, usage: UsageReader, caller: CurrentCaller, paging: Paging) -> RequestLogPage:
    """List requests of keys one by one, newest first; they are stored for some days."""
    key, status = _visible(params, caller), _status(params)
    cursor = paging.after(_LOGS, params)
    found = await usage.requests(
        caller=key,
        before=int.from_bytes(cursor, "big") if cursor else _ID_MAX,
        first=params.start_timestamp or 0,
        last=params.end_timestamp if params.end_timestamp is not None else usage.now() + DAY_S,
        path=params.request_path,
        chain=params.chain_id,
        status=status,
        count=params.page_size + 1 if params.request_type != "rpc" else 0,
    )
    page = found[: params.page_size]
    more = paging.token(_LOGS, params, page[-1].id.to_bytes(8, "big")) if len(found) > len(page) else UNSET
    logs = []
    for one in page:
        request = one.request
        logs.append(
            LogEntry(
                org_id="",
                log_id=str(one.id),
                event_timestamp=request.at,
                api_key_id=request.caller,
                api_key_alias=request.caller,
                host_region="",
                request_type="data",
                request_path=request.path,
                api_credits_consumed=request.units,
                request_duration_msecs=request.duration_ms,
                response_code=request.status,
                chain_id=request.chain or UNSET,
                metadata=LogMetadata(ip_address=request.peer, host=request.host, user_agent=request.agent),
            )
        )
    return RequestLogPage(org_id="", logs=logs, next_page_token=more)
