"""The body and headers of the response to an error: never HTML, never a traceback."""

import msgspec

from icefall.api.dialect import Dialect
from icefall.api.http.row import METRICS, NODE
from icefall.errors import (
    BadRequest,
    Bootstrapping,
    Forbidden,
    IcefallError,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
    UnreadableRequest,
)
from icefall.server.response import Headers

# The node ends some of its plain texts with a newline, others not.
_NODE_TEXTS: dict[type[IcefallError], str] = {
    NotFound: "404 page not found\n",
    Forbidden: "invalid host specified\n",
    Bootstrapping: f"{Bootstrapping()}\n",
}


def failure_body(error: IcefallError, listener: str, dialect: Dialect) -> tuple[str, bytes]:
    """Media type and body of an error response that is not a JSON-RPC answer."""
    if listener == NODE and dialect.plain_failures and type(error) is not BadRequest:
        text = _NODE_TEXTS.get(type(error), str(error))
        if isinstance(error, UnreadableRequest):
            text = error.node_text
        return "text/plain; charset=utf-8", text.encode("utf-8", "replace")
    message: str | list[str] = [str(error)] if listener == METRICS else str(error)
    body = {"message": message, "statusCode": error.status, "error": error.reason}
    return "application/json; charset=utf-8", msgspec.json.encode(body)


def failure_headers(error: IcefallError) -> Headers:
    if isinstance(error, MethodNotAllowed):
        return [("allow", error.allow)]
    if error.retryable and error.status in (429, 503):
        return [("retry-after", str(error.retry_after_s))]
    if isinstance(error, Unauthorized):
        return [("www-authenticate", 'ApiKey header="x-service-api-key"')]
    return []
