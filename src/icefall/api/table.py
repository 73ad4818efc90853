"""The whole endpoint table, in the order of the docs. A new endpoint is a row in the `endpoints.py` of its interface,
and its handler.
"""

from icefall.api.data.contract_endpoints import CONTRACT_ENDPOINTS
from icefall.api.data.endpoints import CHAIN_DATA_ENDPOINTS, FURTHER_ENDPOINTS, OPERATION_ENDPOINTS, USAGE_ENDPOINTS
from icefall.api.data.message_endpoints import MESSAGE_ENDPOINTS
from icefall.api.data.webhook_endpoints import WEBHOOK_ENDPOINTS
from icefall.api.describing import site
from icefall.api.http import service
from icefall.api.http.row import LISTENERS, Rest, Rpc
from icefall.api.metrics.endpoints import METRICS_ENDPOINTS
from icefall.api.metrics.further_endpoints import FURTHER_METRICS_ENDPOINTS
from icefall.api.networks.endpoints import NETWORKS_ENDPOINTS
from icefall.api.networks.metrics_endpoints import NETWORK_METRICS_ENDPOINTS
from icefall.api.node.endpoints import NODE_ENDPOINTS

_JS, _CSS = "text/javascript; charset=utf-8", "text/css; charset=utf-8"

# fmt: off
# Served by every listener.
COMMON_ENDPOINTS: tuple[Rest, ...] = (
    Rest(verb="*", path="/ext/metrics", result=str, handler=service.prometheus, needs="api-metrics-enabled",
         listeners=LISTENERS, never_limited=True,
         media="text/plain; version=0.0.4; charset=utf-8",
         summary="Counters of this program and its chains in Prometheus' text format."),
    Rest(verb="GET", path="/openapi.json", result=dict, handler=site.openapi, listeners=LISTENERS, keyless=True,
         summary="This interface as OpenAPI 3.1."),
    Rest(verb="GET", path="/docs", result=str, handler=site.docs, listeners=LISTENERS, keyless=True,
         media="text/html; charset=utf-8", headers=site.PAGE_HEADERS,
         summary="This interface as a page: search, schemas, and calls to try."),
    Rest(verb="GET", path="/docs/docs.js", result=str, handler=site.docs_script, listeners=LISTENERS, keyless=True,
         media=_JS, headers=site.FILE_HEADERS, is_file=True, summary="Script of the page at `/docs`."),
    Rest(verb="GET", path="/docs/docs.css", result=str, handler=site.docs_style, listeners=LISTENERS, keyless=True,
         media=_CSS, headers=site.FILE_HEADERS, is_file=True, summary="Style of the page at `/docs`."),
    Rest(verb="GET", path="/docs/swagger-ui.js", result=str, handler=site.swagger_script, listeners=LISTENERS,
         keyless=True, media=_JS, headers=site.FILE_HEADERS, is_file=True, summary="Swagger UI, script."),
    Rest(verb="GET", path="/docs/swagger-ui.css", result=str, handler=site.swagger_style, listeners=LISTENERS,
         keyless=True, media=_CSS, headers=site.FILE_HEADERS, is_file=True, summary="Swagger UI, style."),
)
# fmt: on
ENDPOINTS: tuple[Rest | Rpc, ...] = (
    *NODE_ENDPOINTS,
    *CHAIN_DATA_ENDPOINTS,
    *FURTHER_ENDPOINTS,
    *CONTRACT_ENDPOINTS,
    *MESSAGE_ENDPOINTS,
    *NETWORKS_ENDPOINTS,
    *USAGE_ENDPOINTS,
    *WEBHOOK_ENDPOINTS,
    *OPERATION_ENDPOINTS,
    *METRICS_ENDPOINTS,
    *FURTHER_METRICS_ENDPOINTS,
    *NETWORK_METRICS_ENDPOINTS,
    *COMMON_ENDPOINTS,
)


def rows_of(listener: str) -> list[Rest | Rpc]:
    """The part of the table one listener serves."""
    return [row for row in ENDPOINTS if listener in (row.listeners if isinstance(row, Rest) else (row.listener,))]
