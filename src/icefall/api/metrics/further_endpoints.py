"""The rows of counts of messages between chains, and of lists of addresses.

They are about all indexed chains, or those that a body names, but for `teleporterMetrics`.
"""

from icefall.api.describing import examples
from icefall.api.http.row import METRICS, MetricsWeight, Rest
from icefall.api.metrics import address_lists, message_counts
from icefall.api.metrics.address_schema import (
    CompositeAnswer,
    CompositeQuery,
)
from icefall.api.metrics.message_schema import (
    IcmSeries,
    IcmSeriesParams,
    IcmSummary,
    IcmSummaryParams,
    TeleporterMetricParams,
    TeleporterMetricResult,
)

# fmt: off
FURTHER_METRICS_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="GET", path="/v2/icm/timeseries", params=IcmSeriesParams, result=IcmSeries,
         handler=message_counts.icm_timeseries, listeners=(METRICS,), weight=MetricsWeight.MEDIUM,
         operation="getICMTimeseries",
         summary="Messages between chains by hour, day, week or month, newest first, also by source and destination."),
    Rest(verb="GET", path="/v2/icm/summary", params=IcmSummaryParams, result=IcmSummary,
         handler=message_counts.icm_summary, listeners=(METRICS,), weight=MetricsWeight.MEDIUM,
         operation="getICMSummary",
         summary="Messages between chains of the last hour, day, week, 30, 90 and 365 days, and of all time."),
    Rest(verb="GET", path="/v2/chains/{chainId}/teleporterMetrics/{metric}", params=TeleporterMetricParams,
         result=TeleporterMetricResult, handler=message_counts.teleporter_metric, listeners=(METRICS,),
         weight=MetricsWeight.MEDIUM, operation="getTeleporterMetricsByChain",
         summary="Transactions of a chain that sent messages to other chains, received some, or both together."),
    Rest(verb="POST", path="/v2/lookingGlass/compositeQuery", body=CompositeQuery, result=CompositeAnswer,
         handler=address_lists.composite_query, listeners=(METRICS,), weight=MetricsWeight.XXL,
         operation="compositeQueryV2", body_example=examples.COMPOSITE,
         summary="Addresses that hold, or held, tokens: the answers to several questions, joined or intersected."),
)
# fmt: on
