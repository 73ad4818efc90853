"""The rows about the usage of the chain data interface."""

from icefall.api.endpoints.row import DATA, Rest, Weight
from icefall.api.handlers import usage
from icefall.api.schema import usage as u

# fmt: off
USAGE_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path="/v1/apiUsageMetrics", params=u.UsageParams, result=u.UsageMetrics,
         handler=usage.usage_metrics, listeners=(DATA,), weight=Weight.XXL, operation="getApiUsageMetrics",
         summary="Requests and units of a key by day, week or month; from this machine, without limits, of all."),
    Rest(verb="GET", path="/v1/apiLogs", params=u.LogsParams, result=u.RequestLogPage, handler=usage.api_logs,
         listeners=(DATA,), weight=Weight.XXL, operation="getApiLogs",
         summary="Single requests of a key, newest first; they are kept for 7 days."),
)
# fmt: on
