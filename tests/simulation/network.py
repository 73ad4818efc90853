"""HTTP without sockets: what `upstream/client.py` sends reaches simulated servers, and every way an answer can fail.

Everything above the HTTP session is the program's own: limits, retries, decoding, pools.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple, Protocol

import aiohttp
from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from icefall.upstream.client import Limits

_CHUNK = 1 << 16
_LATENCY_S = 0.05


class Server(Protocol):
    """One upstream."""

    def fault(self) -> str:
        """Which failure of the transport meets the next request; empty for none."""
        ...

    def respond(self, path: str, body: bytes) -> bytes: ...


class _Failure(NamedTuple):
    """What becomes of a request. `delay_s` 0: as fast as usual."""

    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012
    body: bytes | None = None
    keep: float = 1.0  # share of the body that is sent as if it were whole
    breaks: bool = False  # the connection is lost within the body
    error: Callable[[], Exception] | None = None
    delay_s: float = 0.0


def _refused() -> Exception:
    key = ConnectionKey("upstream", 80, False, True, None, None, None)
    return aiohttp.ClientConnectorError(key, ConnectionRefusedError(111, "Connection refused"))


HANG_S = 1e9
TRANSPORT: dict[str, _Failure] = {
    "hangs": _Failure(delay_s=HANG_S),
    "is slow": _Failure(delay_s=20.0),
    "refuses connections": _Failure(error=_refused),
    "resets connections": _Failure(error=lambda: aiohttp.ClientOSError(104, "Connection reset by peer")),
    "disconnects": _Failure(error=aiohttp.ServerDisconnectedError),
    "breaks off": _Failure(breaks=True),
    "answers 500": _Failure(status=500, body=b"internal error"),
    "answers 502": _Failure(status=502, body=b"<html>bad gateway</html>"),
    "answers 503": _Failure(status=503, headers={"retry-after": "7"}),
    "limits the rate": _Failure(status=429, headers={"retry-after": "2"}),
    "answers 403": _Failure(status=403, body=b"forbidden"),
    "redirects": _Failure(status=302, headers={"location": "http://elsewhere/"}),
    "sends a page": _Failure(body=b"<html>maintenance</html>"),
    "sends nothing": _Failure(body=b""),
    "sends null": _Failure(body=b"null"),
    "sends a list of nothing": _Failure(body=b"[]"),
    "sends a bare error": _Failure(body=b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal"}}'),
    "truncates": _Failure(keep=0.7),
}


class _Content:
    def __init__(self, body: bytes, failure: _Failure) -> None:
        self._body = body[: round(len(body) * failure.keep)]
        self._breaks = failure.breaks

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        body = self._body[: len(self._body) // 2] if self._breaks else self._body
        for start in range(0, len(body), min(size, _CHUNK)):
            yield body[start : start + _CHUNK]
        if self._breaks:
            raise aiohttp.ClientPayloadError("Response payload is not completed")

    async def read(self, size: int) -> bytes:
        return self._body[:size]


class _Response:
    def __init__(self, body: bytes, failure: _Failure) -> None:
        self.status = failure.status
        self.headers = failure.headers
        self.content = _Content(body, failure)

    def close(self) -> None:
        pass


class _Exchange:
    """One request, as `async with session.post(...)` makes it."""

    def __init__(self, network: "Network", limits: Limits, url: URL, body: bytes) -> None:
        self._network, self._limits, self._url, self._body = network, limits, url, body

    async def __aenter__(self) -> _Response:
        network, source = self._network, self._network.source
        server = network.servers[str(self._url.host)]
        failure = TRANSPORT.get(server.fault(), _Failure())
        delay_s = failure.delay_s if failure.delay_s >= HANG_S else source.uniform(0, failure.delay_s or _LATENCY_S)
        if delay_s >= self._limits.total_s:
            await asyncio.sleep(self._limits.total_s)
            raise TimeoutError
        await asyncio.sleep(delay_s)
        if failure.error is not None:
            raise failure.error()
        body = failure.body
        if body is None:
            body = server.respond(self._url.path, self._body) if failure.status == 200 else b""
        return _Response(body, failure)

    async def __aexit__(self, *_: object) -> None:
        pass


class _Session:
    def __init__(self, network: "Network", limits: Limits) -> None:
        self._network, self._limits = network, limits

    def post(self, url: URL, *, data: bytes, allow_redirects: bool) -> _Exchange:
        assert not allow_redirects
        return _Exchange(self._network, self._limits, url, data)


class Network:
    """Servers by host name. `session_of` replaces `Client._open`."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.servers: dict[str, Server] = {}

    def session_of(self, limits: Limits) -> Any:
        return _Session(self, limits)
