"""Fetches untrusted URLs, safe against server-side request forgery: only public or allowed addresses are reached.

A host name is resolved once, all its addresses must be public or allowed, and the connection goes to exactly those, so
that a second DNS answer cannot differ. TLS is verified against the name. Each redirect is checked anew. Only http and
https, without credentials, on the default port unless the address is in an allowed network. The time limit covers all
of it, the size limit the body as received and decompressed. URL prefixes from the configuration (a gateway's, a price
provider's) are trusted where the caller says so: their addresses are not checked. A URL from a contract is never
trusted, wherever it points.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from ipaddress import ip_address
from typing import Any, NamedTuple

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from icefall import __version__
from icefall.evm.enriching.allowed_addresses import Lookup, SystemLookup, is_allowed, may_reach, networks
from icefall.evm.enriching.kept_connections import Exchange, KeptConnections, noted_socket, read_rest
from icefall.upstream.client import InvalidGzip, body_chunks, retry_after_s

_REDIRECTS = (301, 302, 303, 307, 308)
_THROTTLED = (429, 503)  # 503 only with a retry-after header
_DOT_SEGMENTS = re.compile(r"(^|/)\.{1,2}(/|$)|%2e|%2f|%5c|%25|\\", re.IGNORECASE)
_RETRY_AFTER_MAX_S = 3600.0
_HEADERS = {
    "Accept": "application/json, */*;q=0.5",
    "Accept-Encoding": "gzip",
    "User-Agent": f"icefall/{__version__}",
}


class FetchFailed(Exception):
    """There is no usable answer. `host_down`: no HTTP answer at all, so requests to the same host would fail too."""

    def __init__(self, text: str, *, host_down: bool = False) -> None:
        super().__init__(text)
        self.host_down = host_down


class AddressForbidden(FetchFailed):
    """The URL leads to an address, port or scheme that is not fetched."""


class Throttled(FetchFailed):
    """The host limits our requests; `after_s`: seconds of its retry-after header, or 0."""

    def __init__(self, text: str, after_s: float) -> None:
        super().__init__(text)
        self.after_s = after_s


class TooLarge(Exception):
    """The body is larger than the limit."""


class PostAnswer(NamedTuple):
    """The head of an answer; `retry_after_s` is 0 where it does not say."""

    status: int
    retry_after_s: float


class FetchLimits(msgspec.Struct, frozen=True):
    """The limits on one fetch, and on how many there are at once."""

    total_s: float = 10.0
    size_max: int = 1 << 20
    redirects_max: int = 3
    at_once: int = 8


class GuardedFetcher:
    """The fetcher. `allow`: non-public networks that may be reached. `trusted`: URL prefixes of the configuration.
    `refused_ports`: nothing is posted to them, wherever they are."""

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        trusted: Sequence[str] = (),
        refused_ports: Collection[int] = (),
        limits: FetchLimits | None = None,
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.limits = limits or FetchLimits()
        self._allow = networks(allow)
        self._trusted = [URL(url.rstrip("/") + "/") for url in trusted if url]
        self._refused_ports = frozenset(refused_ports)
        self._lookup = lookup or SystemLookup()
        self._given_tls = tls
        self._slots = asyncio.Semaphore(self.limits.at_once)
        self._kept = KeptConnections(self._kept_session)

    async def close(self) -> None:
        """Close the connections that `post` has left open."""
        await self._kept.close()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The TLS context, made with the first fetch: it reads all certificates of the system, which takes a tenth of a
        second."""
        return self._given_tls or ssl.create_default_context()

    async def get(self, url: str, *, trusted: bool = False) -> bytes:
        """The body at a URL; raises FetchFailed or TooLarge.

        `trusted`: the URL is from our configuration; so is what it redirects to inside a trusted prefix.
        """
        async with self._slots:
            try:
                async with asyncio.timeout(self.limits.total_s):
                    return await self._follow(_url(url), trusted)
            except TimeoutError as error:
                raise FetchFailed(f"no answer within {self.limits.total_s:g} s", host_down=True) from error

    async def check(self, url: str, *, https_only: bool = True) -> None:
        """Raise AddressForbidden or FetchFailed if `post` would not connect to a URL now."""
        async with asyncio.timeout(self.limits.total_s):
            await self._checked_for_post(_url(url), https_only)

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], caller: str = "", *, https_only: bool = True
    ) -> PostAnswer:
        """Send a body once; the head of the answer. Redirects are not followed, and what the answer holds is not used.
        `https_only`: plain HTTP goes to allowed networks alone. Raises FetchFailed.

        Connections are reused for one `caller`. A server may close an idle one just when it is reused: without an
        answer, the body is sent once more over a new one, as a part of the same attempt and within its time.
        """
        async with self._slots:
            try:
                async with asyncio.timeout(self.limits.total_s) as limit:
                    return await self._post(_url(url), body, headers, caller, https_only, limit)
            except TimeoutError as error:
                raise FetchFailed(f"no answer within {self.limits.total_s:g} s", host_down=True) from error

    async def _post(
        self, url: URL, body: bytes, headers: Mapping[str, str], caller: str, https_only: bool, limit: asyncio.Timeout
    ) -> PostAnswer:
        addresses = await self._checked_for_post(url, https_only)
        receiver, exchange = self._kept.take(caller, _origin(url), addresses), Exchange()
        try:
            try:
                response = await _posted(receiver.session, url, body, headers)
                limit.reschedule(None)  # it has answered; the rest has a limit of its own
                await read_rest(response, receiver)
                return _head_of(response)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not exchange.is_reused:
                    raise
            async with self._session(_PinnedResolver(addresses)) as fresh:
                response = await _posted(fresh, url, body, headers)
                response.close()
                return _head_of(response)
        except aiohttp.ClientConnectorCertificateError as error:
            raise FetchFailed(f"{url.origin()}: its certificate is not valid") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchFailed(f"{url.origin()}: {type(error).__name__}", host_down=True) from error
        finally:
            self._kept.give_back(receiver)

    async def _checked_for_post(self, url: URL, https_only: bool) -> list[str]:
        if url.port in self._refused_ports:
            raise AddressForbidden(f"port {url.port} is one of our own")
        addresses = await self._checked(url, trusted=False)
        if https_only and url.scheme != "https" and not all(is_allowed(one, self._allow) for one in addresses):
            raise AddressForbidden("plain http is used in allowed networks only: use https")
        return addresses

    async def _follow(self, url: URL, trusted: bool) -> bytes:
        for _ in range(self.limits.redirects_max + 1):
            pinned = _PinnedResolver(await self._checked(url, trusted and self._is_trusted(url)))
            try:
                found = await self._fetch(url, pinned)
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
                raise FetchFailed(f"{url.origin()}: {error or type(error).__name__}", host_down=True) from error
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise FetchFailed(f"{url.origin()}: {error or type(error).__name__}") from error
            if isinstance(found, bytes):
                return found
            url = found
        raise FetchFailed(f"more than {self.limits.redirects_max} redirects")

    # -- which addresses ---------------------------------------------------------------------------------------

    def _is_trusted(self, url: URL) -> bool:
        """Tell whether it is under a trusted prefix; no dot segments, however a server decodes the path."""
        return any(
            url.origin() == prefix.origin() and (prefix.raw_path == "/" or _is_under(url.raw_path, prefix.raw_path))
            for prefix in self._trusted
            if url.scheme == prefix.scheme and url.raw_host
        )

    async def _checked(self, url: URL, trusted: bool) -> list[str]:
        """The addresses of a URL's host, all of which may be reached."""
        host, port = url.raw_host or "", url.port
        if url.scheme not in ("http", "https") or not host or port is None:
            raise AddressForbidden(f"{url.scheme or 'no'} scheme: only http and https are fetched")
        if url.user is not None or url.password is not None:
            raise AddressForbidden("a URL with credentials is not fetched")
        addresses = await self._addresses(host)
        forbidden = [address for address in addresses if not trusted and not may_reach(address, self._allow)]
        if forbidden:
            raise AddressForbidden(f"{host} is at {forbidden[0]}, which is not public")
        any_port = trusted or all(is_allowed(address, self._allow) for address in addresses)
        if not any_port and not url.is_default_port():
            raise AddressForbidden(f"port {port} is not fetched from")
        return addresses

    async def _addresses(self, host: str) -> list[str]:
        literal = _literal(host)
        if literal:
            return [literal]
        if host.replace(".", "").isdigit() or "%" in host or ":" in host:
            raise AddressForbidden(f"{host} is not a canonical address")
        try:
            addresses = await self._lookup(host)
        except OSError as error:
            raise FetchFailed(f"{host}: {error.strerror or error}", host_down=True) from error
        if not addresses:
            raise FetchFailed(f"{host} has no address", host_down=True)
        return addresses

    # -- one request -------------------------------------------------------------------------------------------

    async def _fetch(self, url: URL, pinned: "_PinnedResolver") -> bytes | URL:
        """The body, or the target of a redirect."""
        async with self._session(pinned) as session, session.get(url, allow_redirects=False) as response:
            try:
                return await self._read(url, response)
            except BaseException:
                response.close()
                raise

    def _kept_session(self, addresses: Sequence[str], idle_s: float) -> aiohttp.ClientSession:
        """Make a session that leaves connections open for a time. Its limits are those of who sends."""
        return self._session(_PinnedResolver(addresses), idle_s)

    def _session(self, pinned: "_PinnedResolver", idle_s: float | None = None) -> aiohttp.ClientSession:
        """Make a session. `idle_s`: how long it leaves connections open; None: not at all."""
        options: dict[str, Any] = {"force_close": True}
        if idle_s is not None:
            options = {"keepalive_timeout": idle_s, "limit": 0, "socket_factory": noted_socket}
        connector = aiohttp.TCPConnector(resolver=pinned, use_dns_cache=False, ssl=self._tls, **options)
        return aiohttp.ClientSession(
            connector=connector,
            headers=_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # body_chunks decompresses with a limit
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None),  # `get` limits all redirects together
        )

    async def _read(self, url: URL, response: aiohttp.ClientResponse) -> bytes | URL:
        status, headers = response.status, response.headers
        if status in _REDIRECTS and "location" in headers:
            return url.join(_url(headers["location"]))
        if status in _THROTTLED and (status == 429 or "retry-after" in headers):
            after_s = min(retry_after_s(headers), _RETRY_AFTER_MAX_S)
            raise Throttled(f"{url.origin()} answered {status}", after_s)
        if status != 200:
            raise FetchFailed(f"{url.origin()} answered {status}")
        if (response.content_length or 0) > self.limits.size_max:
            raise TooLarge(f"{url.origin()} announces {response.content_length} bytes")
        body = bytearray()
        async for chunk in _body(response):
            body += chunk
            if len(body) > self.limits.size_max:
                raise TooLarge(f"{url.origin()} sends more than {self.limits.size_max} bytes")
        return bytes(body)


class _PinnedResolver(AbstractResolver):
    """Resolves every name to the addresses that were checked."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        pass


@lru_cache(maxsize=1024)
def _literal(host: str) -> str:
    """The address that a host is; empty for a name."""
    try:
        return str(ip_address(host))
    except ValueError:
        return ""


def _is_under(path: str, prefix: str) -> bool:
    return path.startswith(prefix) and not _DOT_SEGMENTS.search(path)


def _url(text: str) -> URL:
    try:
        return URL(text)
    except (ValueError, UnicodeError) as error:
        raise FetchFailed(f"not a URL: {error}") from error


async def _body(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body in bounded chunks, decompressed if it is gzip."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise FetchFailed(f"it answers with content-encoding {encoding[:20]}, which was not accepted")
    try:
        async for chunk in body_chunks(response, is_gzip=encoding != "identity"):
            yield chunk
    except InvalidGzip as error:
        raise FetchFailed(str(error)) from error


async def _posted(
    session: aiohttp.ClientSession, url: URL, body: bytes, headers: Mapping[str, str]
) -> aiohttp.ClientResponse:
    """Send a request; the answer, of which only the head was read."""
    return await session.post(url, data=body, headers=headers, allow_redirects=False)


def _head_of(response: aiohttp.ClientResponse) -> PostAnswer:
    return PostAnswer(response.status, retry_after_s(response.headers))


def _origin(url: URL) -> str:
    return f"{url.scheme}://{url.raw_host}:{url.port}"
