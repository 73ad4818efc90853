"""The closed set of errors: what each means over REST, over JSON-RPC, and whether trying again can help.

Two families. *Your request is wrong* (4xx) and *something of ours or upstream failed* (5xx). `api/http/failure.py` is
the one place that turns them into bodies, once per dialect.
"""

from typing import ClassVar


class IcefallError(Exception):
    """Answered instead of a result. `str(error)` is the message that the caller sees."""

    status: ClassVar[int] = 500
    reason: ClassVar[str] = "Internal Server Error"
    rpc_code: ClassVar[int] = -32000
    retryable: ClassVar[bool] = False
    retry_after_s: int = 1  # where it is retryable


# -- your request is wrong ---------------------------------------------------------------------------------------


class BadRequest(IcefallError):
    status, reason, rpc_code = 400, "Bad Request", -32602


class UnreadableRequest(IcefallError):
    """What is not HTTP as we read it; `node_text` is the existing node's text for it."""

    status, reason = 400, "Bad Request"

    def __init__(self, message: str, node_text: str | None = None) -> None:
        super().__init__(message)
        self.node_text = f"{self.status} {self.reason}" if node_text is None else node_text


class UnreadableExpectation(UnreadableRequest):
    status, reason = 417, "Expectation Failed"


class HeadTooLarge(UnreadableRequest):
    status, reason = 431, "Request Header Fields Too Large"


class TransferEncodingUnsupported(UnreadableRequest):
    status, reason = 501, "Not Implemented"


class VersionUnsupported(UnreadableRequest):
    status, reason = 505, "HTTP Version Not Supported"


class Unauthorized(IcefallError):
    status, reason = 401, "Unauthorized"


class Forbidden(IcefallError):
    status, reason = 403, "Forbidden"


class NotFound(IcefallError):
    status, reason = 404, "Not Found"


class MethodNotAllowed(IcefallError):
    """`allow` lists the methods the path does take."""

    status, reason = 405, "Method Not Allowed"

    def __init__(self, method: str, allow: str) -> None:
        super().__init__(
            f"rpc: POST method required, received {method}"
            if "POST" in allow
            else f"{allow} method required, received {method}"
        )
        self.allow = allow


class RequestTimeout(IcefallError):
    status, reason, retryable = 408, "Request Timeout", True


class BodyTooLarge(IcefallError):
    status, reason = 413, "Content Too Large"


class UnsupportedMediaType(IcefallError):
    status, reason = 415, "Unsupported Media Type"


class TooManyRequests(IcefallError):
    """A budget is used up; after `retry_after_s` there is a new one."""

    status, reason, retryable = 429, "Too Many Requests", True

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class CallFailed(IcefallError):
    """A node method that ran and failed: an ordinary JSON-RPC error with the node's own text."""

    status, reason, rpc_code = 400, "Bad Request", -32000


# -- something of ours or upstream failed ------------------------------------------------------------------------


class InternalError(IcefallError):
    status, reason, rpc_code = 500, "Internal Server Error", -32603


class BadGateway(IcefallError):
    status, reason, retryable = 502, "Bad Gateway", True


class Unavailable(IcefallError):
    status, reason, retryable = 503, "Service Unavailable", True


class Bootstrapping(Unavailable):
    """A chain that has not caught up yet; the text is the node's."""

    def __init__(self) -> None:
        super().__init__("API call rejected because chain is not done bootstrapping")


# -- the program cannot start or go on ---------------------------------------------------------------------------


class StartRefused(Exception):
    """Printed once on the terminal; the program ends with exit code 1 and has changed nothing."""
