"""HTTP to wherever strangers point us: public addresses only, and no second look-up between check and connection.

A name is resolved once, every address it has must be public or allowed, and the connection goes to exactly those. TLS
is verified against the name. Each redirect is a new address to check. Only http and https, no credentials, on their
own ports unless the address is of an allowed network. Time counts for all of it together, size both as it comes and
unpacked. Folders that the configuration names (a gateway's, a price provider's) are trusted, if the caller says that it
is them he means: where they are is not asked. A URL that a stranger wrote is never trusted, wherever it points.
"""

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from icefall import __version__
from icefall.evm.enriching.lookup import Lookup, SystemLookup
from icefall.evm.enriching.reach import is_allowed, may_reach, networks

_REDIRECTS = (301, 302, 303, 307, 308)
_THROTTLED = (429, 503)  # the latter only if it says when to come back
_CLIMBS = re.compile(r"(^|/)\.{1,2}(/|$)|%2e|%2f|%5c|%25|\\", re.IGNORECASE)
_CHUNK_SIZE = 1 << 16
_AFTER_MAX_S = 3600.0
_HEADERS = {
    "Accept": "application/json, */*;q=0.5",
    "Accept-Encoding": "gzip",
    "User-Agent": f"icefall/{__version__}",
}


class Unreachable(Exception):
    """Nothing useful came. `host_down`: no HTTP answer at all, so the host's other pages will fare alike."""

    def __init__(self, text: str, *, host_down: bool = False) -> None:
        super().__init__(text)
        self.host_down = host_down


class AddressForbidden(Unreachable):
    """We do not go there."""


class Throttled(Unreachable):
    """It asks to be left alone, for `after_s` seconds if it says so."""

    def __init__(self, text: str, after_s: float) -> None:
        super().__init__(text)
        self.after_s = after_s


class TooLarge(Exception):
    """More bytes than we take."""


class FetchLimits(msgspec.Struct, frozen=True):
    total_s: float = 10.0
    size_max: int = 1 << 20
    redirects_max: int = 3
    at_once: int = 8


class GuardedFetcher:
    """`allow`: networks that may be reached though they are not public. `trusted`: folders from the configuration."""

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        trusted: Sequence[str] = (),
        limits: FetchLimits | None = None,
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.limits = limits or FetchLimits()
        self._allow = networks(allow)
        self._trusted = [URL(url.rstrip("/") + "/") for url in trusted if url]
        self._lookup = lookup or SystemLookup()
        self._tls = tls or ssl.create_default_context()
        self._slots = asyncio.Semaphore(self.limits.at_once)

    async def get(self, address: str, *, trusted: bool = False) -> bytes:
        """The body of what is at an address: Unreachable or TooLarge if there is none to be had.

        `trusted`: the address was not written by a stranger, nor will be those it redirects to inside a trusted folder.
        """
        async with self._slots:
            try:
                async with asyncio.timeout(self.limits.total_s):
                    return await self._follow(_url(address), trusted)
            except TimeoutError as error:
                raise Unreachable(f"no answer within {self.limits.total_s:g} s", host_down=True) from error

    async def _follow(self, url: URL, trusted: bool) -> bytes:
        for _ in range(self.limits.redirects_max + 1):
            pinned = _Pinned(await self._checked(url, trusted and self._is_ours(url)))
            try:
                found = await self._ask(url, pinned)
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
                raise Unreachable(f"{url.origin()}: {error or type(error).__name__}", host_down=True) from error
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise Unreachable(f"{url.origin()}: {error or type(error).__name__}") from error
            if isinstance(found, bytes):
                return found
            url = found
        raise Unreachable(f"more than {self.limits.redirects_max} redirects")

    # -- where it leads ----------------------------------------------------------------------------------------

    def _is_ours(self, url: URL) -> bool:
        """Whether it lies in a trusted folder, however its path is read."""
        return any(
            url.origin() == one.origin()
            and (one.raw_path == "/" or (url.raw_path.startswith(one.raw_path) and not _CLIMBS.search(url.raw_path)))
            for one in self._trusted
            if url.scheme == one.scheme and url.raw_host
        )

    async def _checked(self, url: URL, trusted: bool) -> list[str]:
        """The addresses behind a URL, each of which may be reached."""
        host, port = url.raw_host or "", url.port
        if url.scheme not in ("http", "https") or not host or port is None:
            raise AddressForbidden(f"{url.scheme or 'no'} scheme: only http and https are fetched")
        if url.user is not None or url.password is not None:
            raise AddressForbidden("a URL with credentials is not fetched")
        addresses = await self._addresses(host)
        wrong = [one for one in addresses if not trusted and not may_reach(one, self._allow)]
        if wrong:
            raise AddressForbidden(f"{host} is at {wrong[0]}, which is not public")
        free = trusted or all(is_allowed(one, self._allow) for one in addresses)
        if not free and not url.is_default_port():
            raise AddressForbidden(f"port {port} is not fetched from")
        return addresses

    async def _addresses(self, host: str) -> list[str]:
        try:
            return [str(ip_address(host))]
        except ValueError:
            if host.replace(".", "").isdigit() or "%" in host or ":" in host:
                raise AddressForbidden(f"{host} is an odd way to write an address") from None
        try:
            addresses = await self._lookup(host)
        except OSError as error:
            raise Unreachable(f"{host}: {error.strerror or error}", host_down=True) from error
        if not addresses:
            raise Unreachable(f"{host} has no address", host_down=True)
        return addresses

    # -- one request -------------------------------------------------------------------------------------------

    async def _ask(self, url: URL, pinned: "_Pinned") -> bytes | URL:
        """The body, or where it has moved to."""
        connector = aiohttp.TCPConnector(resolver=pinned, use_dns_cache=False, force_close=True, ssl=self._tls)
        session = aiohttp.ClientSession(
            connector=connector,
            headers=_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # what grows is unpacked by _unpacked, with a limit
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None),  # the limit lies around all redirects
        )
        async with session, session.get(url, allow_redirects=False) as response:
            try:
                return await self._told(url, response)
            except BaseException:
                response.close()
                raise

    async def _told(self, url: URL, response: aiohttp.ClientResponse) -> bytes | URL:
        status, headers = response.status, response.headers
        if status in _REDIRECTS and "location" in headers:
            return url.join(_url(headers["location"]))
        if status in _THROTTLED and (status == 429 or "retry-after" in headers):
            raise Throttled(f"{url.origin()} answered {status}", _seconds(headers.get("retry-after", "")))
        if status != 200:
            raise Unreachable(f"{url.origin()} answered {status}")
        if (response.content_length or 0) > self.limits.size_max:
            raise TooLarge(f"{url.origin()} announces {response.content_length} bytes")
        body = bytearray()
        async for chunk in _unpacked(response):
            body += chunk
            if len(body) > self.limits.size_max:
                raise TooLarge(f"{url.origin()} sends more than {self.limits.size_max} bytes")
        return bytes(body)


class _Pinned(AbstractResolver):
    """Answers with what was checked, whatever it is asked."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=one,
                port=port,
                family=socket.AF_INET6 if ":" in one else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for one in self._addresses
        ]

    async def close(self) -> None:
        pass


def _url(text: str) -> URL:
    try:
        return URL(text)
    except (ValueError, UnicodeError) as error:
        raise Unreachable(f"not a URL: {error}") from error


async def _unpacked(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body in pieces that are never much larger than what came in, unpacked if it says that it is packed."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise Unreachable(f"it answers in {encoding[:20]}, which was not asked for")
    unpack = None if encoding == "identity" else zlib.decompressobj(31)
    try:
        async for chunk in response.content.iter_chunked(_CHUNK_SIZE):
            rest = chunk
            while unpack is not None and rest:
                yield unpack.decompress(rest, _CHUNK_SIZE)
                rest = unpack.unconsumed_tail
            if unpack is None:
                yield chunk
        if unpack is not None:
            yield unpack.flush()
    except zlib.error as error:
        raise Unreachable(f"damaged gzip: {error}") from error
    if unpack is not None and not unpack.eof:
        raise Unreachable("half of some gzip")


def _seconds(text: str) -> float:
    return min(float(text[:9]), _AFTER_MAX_S) if text.isascii() and text.isdigit() else 0.0
