"""The app: one function from request to response. `rsgi.py` and `asgi.py` adapt it to servers.

The order of the checks is the existing node's: preflight, Host, clean path, route, verb, content type, body. On the
other interfaces API key and rate limit are checked after the verb (`gate.py`).
"""

import zlib
from typing import NamedTuple, Protocol

import msgspec

from icefall.api.body_timeout import BodyTimeout
from icefall.api.dialect import Dialect
from icefall.api.endpoints.row import NODE
from icefall.api.failure import Headers, failure_body, failure_headers
from icefall.api.gate import AccessGate
from icefall.api.guards import Hosts, Origins, takes_gzip
from icefall.api.jsonrpc import is_unavailable
from icefall.api.routes import RestRoute, Route, Routes, cleaned, location
from icefall.errors import (
    BodyTooLarge,
    Bootstrapping,
    Forbidden,
    IcefallError,
    InternalError,
    MethodNotAllowed,
    NotFound,
    RequestTimeout,
    UnsupportedMediaType,
)
from icefall.observe.counters import CallCounters
from icefall.observe.log import Log

BODY_MAX = 1 << 20
_GZIP_MIN = 1400  # an answer that fits into one packet is not worth compressing
_NO_VALUES: tuple[str, ...] = ()
_JSON_UTF8 = "application/json; charset=utf-8"


class Request(Protocol):
    method: str
    host: str
    path: str

    @property
    def query(self) -> str: ...

    @property
    def peer(self) -> str: ...

    def header(self, name: str) -> str | None: ...

    def headers(self, name: str) -> list[str]:
        """All headers of that name: a proxy may add another."""
        ...

    async def body(self, limit: int) -> bytes:
        """The whole body; BodyTooLarge as soon as it exceeds `limit`."""
        ...


class Response(NamedTuple):
    status: int
    headers: Headers
    body: bytes


class App:
    def __init__(
        self,
        listener: str,
        routes: Routes,
        dialect: Dialect,
        hosts: Hosts,
        origins: Origins,
        counters: CallCounters,
        log: Log,
        headers: Headers,
        read_timeout_s: float,
        gate: AccessGate | None = None,
    ) -> None:
        self._listener = listener
        self._routes = routes
        self._paths = routes.paths
        self._dialect = dialect
        self._hosts = hosts
        self._origins = origins
        self._counters = counters
        self._log = log
        self._gate = gate
        self._body_timeout = BodyTimeout(read_timeout_s)
        self._base = [*headers, ("vary", "Origin")]
        self._json = [("content-type", _JSON_UTF8), *self._base, ("x-content-type-options", "nosniff")]

    async def respond(self, request: Request) -> Response:
        wanted = request.header("access-control-request-method") if request.method == "OPTIONS" else None
        if wanted:
            return Response(200, [*self._base[:-1], *self._origins.preflight(request.header, wanted)], b"")
        limit_headers: Headers = []
        try:
            if not self._hosts.allows(request.host):
                raise Forbidden("this Host is not allowed: see --http-allowed-hosts")
            route = self._paths.get(request.path)
            found = (route, _NO_VALUES) if route is not None else await self._find(request)
            if isinstance(found, Response):
                response = found
            elif found[0].closed is not None and await found[0].closed():
                response = self._closed()
            else:
                route, values = found
                plain = self._plain(route, request.method)
                if plain is not None and self._gate is not None:
                    limit_headers, refusal = await self._gate.admit(request, plain.row)
                    if refusal is not None:
                        raise refusal
                if plain is not None:
                    response = await self._answer_plain(plain, values, request)
                else:
                    response = await self._answer_rpc(route, request)
        except TimeoutError:
            self._counters.count_unrouted()
            response = self._failure(RequestTimeout("the body did not arrive in time"))
        except IcefallError as error:
            self._counters.count_unrouted()
            response = self._failure(error)
        except Exception as bug:
            self._counters.count_unrouted()
            self._log.error("request failed", path=request.path, error=f"{type(bug).__name__}: {bug}")
            response = self._failure(InternalError("internal error"))
        if limit_headers:
            response = Response(response.status, [*response.headers, *limit_headers], response.body)
        if self._log.is_debug():
            self._log.debug("request", method=request.method, path=request.path, status=response.status)
        return self._finished(request, response)

    async def _find(self, request: Request) -> tuple[Route, tuple[str, ...]] | Response:
        path = request.path
        if self._listener == NODE:
            clean = cleaned(path)
            if clean != path:
                return Response(301, [("location", location(clean, request.query)), *self._base], b"")
        found = await self._routes.find(path)
        if found is None:
            raise NotFound(f"no route for {path}; see /docs")
        return found

    def _plain(self, route: Route, verb: str) -> RestRoute | None:
        plain = route.plain.get(verb) or route.plain.get("*")
        if plain is None and verb == "HEAD" and self._dialect.head_everywhere:
            plain = route.plain.get("GET")
        if plain is None and (route.service is None or verb != "POST"):
            raise MethodNotAllowed(verb, route.allow(head=self._dialect.head_everywhere))
        return plain

    async def _answer_plain(self, plain: RestRoute, values: tuple[str, ...], request: Request) -> Response:
        began, failed = self._counters.begin(plain.slot), True
        try:
            result = await plain.call(plain.bind(values, request.query))
            failed = False
        finally:
            self._counters.end(plain.slot, began, failed=failed)
        if isinstance(result, str):
            body = result.encode()
        elif isinstance(result, bytes):
            body = result
        else:
            body = msgspec.json.encode(result) + b"\n"
        return Response(plain.row.status(result), [("content-type", plain.row.media), *self._base], body)

    async def _answer_rpc(self, route: Route, request: Request) -> Response:
        assert route.service is not None
        content_type = (request.header("content-type") or "").partition(";")[0]
        if content_type != "application/json" and content_type.lower() != "application/json":
            raise UnsupportedMediaType(f"rpc: unrecognized Content-Type: {content_type}")
        waiting = self._body_timeout.begin()
        try:
            body = await request.body(BODY_MAX)
        finally:
            self._body_timeout.end(waiting)
        answer, method, error = await route.service.answer(body)
        if isinstance(error, InternalError):  # errors of the caller are not logged
            cause = error.__cause__ or error
            self._log.error("call failed", path=request.path, error=f"{type(cause).__name__}: {cause}")
        status = 503 if is_unavailable(error) else 200
        if not answer:
            return Response(status, self._base, b"")
        if method is not None and method.row.deprecated:
            return Response(status, [*self._json, ("deprecation", "true")], answer)
        return Response(status, self._json, answer)

    def _closed(self) -> Response:
        """Any call to a chain that is bootstrapping, before verb, content type and body are checked."""
        error = Bootstrapping()
        if self._dialect.plain_failures:
            return self._failure(error)
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "error": {"code": error.rpc_code, "message": str(error)}, "id": None}
        )
        return Response(error.status, [*self._json, *failure_headers(error)], body + b"\n")

    def _failure(self, error: IcefallError) -> Response:
        media, body = failure_body(error, self._listener, self._dialect)
        return Response(error.status, [("content-type", media), *self._base, *failure_headers(error)], body)

    def _finished(self, request: Request, response: Response) -> Response:
        """Adds what depends on the request headers: CORS and compression."""
        origin = request.header("origin")
        headers, body = response.headers, response.body
        if origin:
            headers = [*headers, *self._origins.headers(origin)]
        if len(body) >= _GZIP_MIN and takes_gzip(request.header("accept-encoding") or ""):
            packer = zlib.compressobj(1, zlib.DEFLATED, 31)
            body = packer.compress(body) + packer.flush()
            headers = [*headers, ("content-encoding", "gzip"), ("vary", "Accept-Encoding")]
        return (
            response
            if headers is response.headers and body is response.body
            else Response(response.status, headers, body)
        )


def too_large() -> BodyTooLarge:
    return BodyTooLarge(f"a request body may be {BODY_MAX} bytes long at most")
