"""The app: one function from request to response, which `icefall.server` or any ASGI server (`asgi.py`) calls.

The order of the checks is the existing node's: preflight, Host, clean path, route, verb, content type, body. On the
other interfaces API key and rate limit are checked after the verb (`gate.py`).
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from icefall.api.dialect import LIVE, Dialect
from icefall.api.http.answer_cache import AnswerCache, RestAnswer
from icefall.api.http.failure import failure_body, failure_headers
from icefall.api.http.gate import AccessGate, Admission
from icefall.api.http.guards import BodyTimeout, Hosts, Origins, takes_gzip
from icefall.api.http.jsonrpc import is_unavailable
from icefall.api.http.routes import ROOT, RestRoute, Route, Routes, cleaned, location
from icefall.api.http.row import NODE, Charged, File
from icefall.api.http.stored_files import StoredFile, part_of
from icefall.api.http.streams import EventStream, OpenStreams
from icefall.errors import (
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
from icefall.server.response import Headers, Response

BODY_MAX = 1 << 20
SDK_AGENT = "speakeasy-sdk/typescript"  # how the user agent of the hosted service's SDK begins
_GZIP_MIN = 1400  # an answer that fits into one packet is not worth compressing
_THREAD_MIN = 256 << 10  # compressing more than this would keep other requests waiting
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

    def body_now(self, limit: int) -> bytes | None:
        """The whole body if it is there and can be used; None: `body` waits for it, or says why it cannot."""
        ...

    async def body(self, limit: int) -> bytes:
        """The whole body; BodyTooLarge as soon as it exceeds `limit`, BadRequest when it breaks off."""
        ...


class Site(Protocol):
    """The pages for browsers that a listener serves besides its endpoints."""

    def answer(self, path: str, host: str, if_none_match: str) -> tuple[int, Headers, bytes] | None: ...


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
        site: Site | None = None,
        *,
        background: Callable[[], Coroutine[Any, Any, None]] | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`background`: runs beside the requests, from `start` to `close`."""
        self._background = background
        self._running: asyncio.Task[None] | None = None
        self._close = close
        self._listener = listener
        self._routes = routes
        self._paths = routes.paths
        self._admin = routes.paths.get(f"{ROOT}admin")
        self._dialect = dialect
        self._hosts = hosts
        self._origins = origins
        self._counters = counters
        self.log = log
        self._gate = gate
        self._streams = OpenStreams()
        self._body_timeout = BodyTimeout(read_timeout_s)
        self._base = [*headers, ("vary", "Origin")]
        self._json = [("content-type", _JSON_UTF8), *self._base, ("x-content-type-options", "nosniff")]
        self._rest_headers: dict[int, Headers] = {}
        self._cache = AnswerCache()
        self._deprecated = [*self._json, ("deprecation", "true")]
        self._site = site
        self._looks_for_sdk = listener != NODE and dialect.name != LIVE.name  # once per process

    def start(self) -> None:
        """Begin what runs beside the requests, in the running event loop."""
        if self._background is not None:
            self._running = asyncio.get_running_loop().create_task(self._background())

    async def close(self) -> None:
        """Close what requests have opened, connections to upstreams, and report what was not reported yet."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        if self._gate is not None:
            await self._gate.close()
        if self._close is not None:
            await self._close()

    async def respond(self, request: Request) -> Response:
        """Answer a request. It never raises: every error becomes a response."""
        wanted = request.header("access-control-request-method") if request.method == "OPTIONS" else None
        if wanted:
            named = await self._is_admin(request.path)
            return Response(200, [*self._base[:-1], *self._origins.preflight(request.header, wanted, named=named)], b"")
        named_origins = False
        if self._looks_for_sdk and (request.header("user-agent") or "").startswith(SDK_AGENT):
            self._looks_for_sdk = False
            self.log.info(
                "a client uses the SDK of the hosted service, which refuses some answers of this dialect: "
                "start with --dialect=live",
                dialect=self._dialect.name,
            )
        try:
            if not self._hosts.allows(request.host):
                raise Forbidden("this Host is not allowed: see --http-allowed-hosts")
            known = self._paths.get(request.path)
            found = (known, _NO_VALUES) if known is not None else await self._find(request)
            closed = None if isinstance(found, Response) or found[0].closed is None else found[0].closed()
            if isinstance(found, Response):
                response = found
            elif closed is not None and (closed if isinstance(closed, bool) else await closed):
                response = self._closed()
            else:
                route, values = found
                named_origins = route is self._admin
                is_rpc = not route.plain and route.service is not None and request.method == "POST"
                rest = None if is_rpc else self._rest_route(route, request.method)
                if rest is None:
                    response = await self._answer_rpc(route, request)
                elif self._gate is None:
                    response = (await self._answer(rest, values, request, None)).response
                else:
                    response = await self._answer_admitted(self._gate, rest, values, request)
        except Exception as error:
            response = self._failed(request, error)
        if self.log.is_debug():
            self.log.debug("request", method=request.method, path=request.path, status=response.status)
        if request.header("origin") is None and isinstance(response.body, bytes) and len(response.body) < _GZIP_MIN:
            return response
        return await self._finished(request, response, named_origins=named_origins)

    def _failed(self, request: Request, error: Exception) -> Response:
        """The response to a request that no endpoint could answer."""
        self._counters.count_unrouted()
        if isinstance(error, IcefallError):
            return self.failure(error)
        if isinstance(error, TimeoutError):
            return self.failure(RequestTimeout("the body did not arrive in time"))
        self.log.error("request failed", path=request.path, error=f"{type(error).__name__}: {error}")
        return self.failure(InternalError("internal error"))

    async def _is_admin(self, path: str) -> bool:
        """Whether a path is the admin interface, by its own name or by an alias."""
        if self._admin is None:
            return False
        clean = cleaned(path)
        route = self._paths.get(clean)
        if route is None:
            try:
                found = await self._routes.find(clean)
            except NotFound:
                return False
            route = found[0] if found else None
        return route is self._admin

    async def _find(self, request: Request) -> tuple[Route, tuple[str, ...]] | Response:
        path = request.path
        if self._listener == NODE:
            clean = cleaned(path)
            if clean != path:
                return Response(301, [("location", location(clean, request.query)), *self._base], b"")
        page = self._page(request)
        if page is not None:
            return page
        found = await self._routes.find(path)
        if found is None:
            raise NotFound(f"no route for {path}; see /docs")
        return found

    def _page(self, request: Request) -> Response | None:
        """A page or file for browsers. It is free, and needs no key."""
        if self._site is None or request.method not in ("GET", "HEAD"):
            return None
        answer = self._site.answer(request.path, request.host, request.header("if-none-match") or "")
        return None if answer is None else Response(answer[0], [*answer[1], *self._base], answer[2])

    def _rest_route(self, route: Route, verb: str) -> RestRoute | None:
        """The endpoint of a path for a verb; None if the path is one of JSON-RPC."""
        rest = route.plain.get(verb) or route.plain.get("*")
        if rest is None and verb == "HEAD" and self._dialect.head_everywhere:
            rest = route.plain.get("GET")
        if rest is None and (route.service is None or verb != "POST"):
            raise MethodNotAllowed(verb, route.allow(head=self._dialect.head_everywhere))
        return rest

    async def _answer_admitted(
        self, gate: AccessGate, rest: RestRoute, values: tuple[str, ...], request: Request
    ) -> Response:
        """Answer a request that passes the gate, and let the gate count it."""
        admission = await gate.admit(request, rest.row)
        try:
            if admission.refusal is not None:
                raise admission.refusal
            answer = await self._answer(rest, values, request, admission)
            if answer.units:
                await admission.charge(answer.units)
            response = answer.response
        except Exception as error:
            response = self._failed(request, error)
        admission.note(response.status)
        if admission.headers:
            return response._replace(headers=[*response.headers, *admission.headers])
        return response

    async def _answer(
        self, rest: RestRoute, values: tuple[str, ...], request: Request, admission: Admission | None
    ) -> RestAnswer:
        """Answer from the cache or with the handler, and count the call."""
        began, answer = self._counters.begin(rest.slot), None
        try:
            if rest.version is None:
                answer = await self._make(rest, values, request, admission)
            else:
                answer = await self._cache.around(
                    (request.path, request.query),
                    partial(rest.version, values),
                    partial(self._make, rest, values, request, admission),
                )
            return answer
        finally:
            is_cached = answer is not None and answer.is_cached
            self._counters.end(rest.slot, began, failed=answer is None, cached=is_cached)

    async def _make(
        self, rest: RestRoute, values: tuple[str, ...], request: Request, admission: Admission | None
    ) -> RestAnswer:
        """Bind the parameters, call the handler and encode its result."""
        row, units = rest.row, 0
        params = rest.bind(values, _resumed(request) if row.is_stream else request.query)
        if rest.read_body is None:
            result = await rest.call(params)
        else:
            given = self._json_body_now(request)
            result = await rest.call(params, rest.read_body(given if given is not None else await self._body(request)))
        if isinstance(result, Charged):
            result, units = result
        if isinstance(result, EventStream):
            client = request.peer if admission is None else admission.client
            return RestAnswer(Response(200, self._headers_of(rest), self._streams.limited(client, result)), units)
        if isinstance(result, StoredFile):
            client = request.peer if admission is None else admission.client
            part = part_of(result, request.header("range"), request.header("if-range"))
            headers = [*self._headers_of(rest), *part.headers]
            pieces = self._streams.limited(client, EventStream(part.pieces))
            return RestAnswer(Response(part.status, headers, pieces, part.length), units)
        if isinstance(result, File):
            headers = [("content-type", result.media), *row.headers, *self._base]
            return RestAnswer(Response(row.status(result), headers, result.body), units)
        if isinstance(result, str):
            body = result.encode()
        elif isinstance(result, bytes):
            body = result
        else:
            body = msgspec.json.encode(result) + b"\n"
        has_page_token = getattr(result, "next_page_token", msgspec.UNSET) is not msgspec.UNSET
        return RestAnswer(Response(row.status(result), self._headers_of(rest), body), units, has_page_token)

    def _headers_of(self, rest: RestRoute) -> Headers:
        """The headers of a good answer: always the same list, and one for all endpoints with the same headers, because
        the server caches its bytes."""
        headers = self._rest_headers.get(rest.slot)
        if headers is None:
            made = [("content-type", rest.row.media), *rest.row.headers, *self._base]
            headers = next((known for known in self._rest_headers.values() if known == made), made)
            self._rest_headers[rest.slot] = headers
        return headers

    async def _answer_rpc(self, route: Route, request: Request) -> Response:
        assert route.service is not None
        body = self._json_body_now(request)
        outcome = await route.service.answer(body if body is not None else await self._body(request))
        answer, method, error = outcome.body, outcome.method, outcome.error
        if isinstance(error, InternalError):  # errors of the caller are not logged
            cause = error.__cause__ or error
            self.log.error("call failed", path=request.path, error=f"{type(cause).__name__}: {cause}")
        status = 503 if is_unavailable(error) else 200
        if not answer:
            return Response(status, self._base, b"")
        if method is not None and method.row.deprecated:
            return Response(status, self._deprecated, answer)
        return Response(status, self._json, answer)

    def _json_body_now(self, request: Request) -> bytes | None:
        """Return the body of a request that says it is JSON, or None if it is not there yet."""
        content_type = (request.header("content-type") or "").partition(";")[0]
        if content_type != "application/json" and content_type.lower() != "application/json":
            raise UnsupportedMediaType(f"rpc: unrecognized Content-Type: {content_type}")
        return request.body_now(BODY_MAX)

    async def _body(self, request: Request) -> bytes:
        waiting = self._body_timeout.begin()
        try:
            return await request.body(BODY_MAX)
        finally:
            self._body_timeout.end(waiting)

    def _closed(self) -> Response:
        """The answer to any call to a chain that is bootstrapping, before verb, content type and body are checked."""
        error = Bootstrapping()
        if self._dialect.plain_failures:
            return self.failure(error)
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "error": {"code": error.rpc_code, "message": str(error)}, "id": None}
        )
        return Response(error.status, [*self._json, *failure_headers(error)], body + b"\n")

    def failure(self, error: IcefallError) -> Response:
        media, body = failure_body(error, self._listener, self._dialect)
        return Response(error.status, [("content-type", media), *self._base, *failure_headers(error)], body)

    async def _finished(self, request: Request, response: Response, *, named_origins: bool) -> Response:
        """Add what depends on the request headers: CORS and compression."""
        origin = request.header("origin")
        headers, body = response.headers, response.body
        if origin:
            headers = [*headers, *self._origins.headers(origin, named=named_origins)]
        if not isinstance(body, bytes):
            return response._replace(headers=headers)
        accepted = request.header("accept-encoding") if len(body) >= _GZIP_MIN else None
        if accepted and takes_gzip(accepted):
            body = _gzip(body) if len(body) < _THREAD_MIN else await asyncio.to_thread(_gzip, body)
            headers = [*headers, ("content-encoding", "gzip"), ("vary", "Accept-Encoding")]
        return (
            response
            if headers is response.headers and body is response.body
            else response._replace(headers=headers, body=body)
        )


def _resumed(request: Request) -> str:
    """The query, with the event after which a browser goes on: it sends that in a header."""
    last = request.header("last-event-id")
    if last is None:
        return request.query
    others = [pair for pair in request.query.split("&") if pair.partition("=")[0] != "lastEventId"]
    return "&".join([*filter(None, others), f"lastEventId={quote(last)}"])


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()
