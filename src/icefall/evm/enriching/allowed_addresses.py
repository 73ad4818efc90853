"""The IP addresses that an untrusted URI may lead to: those of the public internet, and configured networks.

`SystemLookup` finds the addresses of a host name, `may_reach` says which of them may be connected to.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Special ranges that some Python versions report as global.
_SPECIAL = tuple(
    ip_network(text)
    for text in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",  # benchmarks
        "64:ff9b:1::/48",  # NAT64 of a local network
        "100::/64",  # discarded
        "2001::/23",  # protocol assignments, Teredo among them
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fec0::/10",  # site local
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
Lookup = Callable[[str], Awaitable[list[str]]]  # raises OSError where a name does not resolve
_LOOKUPS_AT_ONCE = 8
_JUDGED_MAX = 4096  # addresses whose judgement is kept: it depends on nothing else, and costs more than a lookup


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Parse networks; ValueError for a text that is neither an address nor a network."""
    return tuple(ip_network(text, strict=False) for text in texts)


@lru_cache(maxsize=_JUDGED_MAX)
def may_reach(text: str, allowed: tuple[Network, ...] = ()) -> bool:
    """Tell whether an address, as a resolver returns it, is public or in an allowed network."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return is_allowed(text, allowed) or ("%" not in text and _is_public(address))


@lru_cache(maxsize=_JUDGED_MAX)
def is_allowed(text: str, allowed: tuple[Network, ...]) -> bool:
    try:
        address = _effective(ip_address(text.partition("%")[0]))
    except ValueError:
        return False
    return any(address in network for network in allowed)


def _is_public(address: Address) -> bool:
    effective = _effective(address)
    if isinstance(effective, IPv6Address) and effective.sixtofour is not None and not _is_public(effective.sixtofour):
        return False
    special = (
        effective.is_multicast
        or effective.is_reserved
        or effective.is_unspecified
        or effective.is_loopback
        or effective.is_link_local
    )
    return effective.is_global and not special and not any(effective in network for network in _SPECIAL)


def _effective(address: Address) -> Address:
    """The IPv4 address inside a mapped or NAT64 IPv6 address."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


class SystemLookup:
    """The system's resolver, with at most `at_once` queries open; an abandoned query counts until it ends."""

    def __init__(self, at_once: int = _LOOKUPS_AT_ONCE) -> None:
        self._slots = asyncio.Semaphore(at_once)

    async def __call__(self, host: str) -> list[str]:
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        resolved: asyncio.Future[list[str]] = loop.create_future()

        def finish(addresses: list[str] | OSError) -> None:
            self._slots.release()
            if resolved.done():
                return
            if isinstance(addresses, OSError):
                resolved.set_exception(addresses)
            else:
                resolved.set_result(addresses)

        def work() -> None:
            found = _resolve(host)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(finish, found)

        threading.Thread(target=work, name="lookup", daemon=True).start()
        return await resolved


class JoinedLookup:
    """A lookup that is asked once for all who wait for the same name at a time: a name that is not answered takes one
    place, however many requests it is for."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._running: dict[str, asyncio.Task[list[str]]] = {}

    async def __call__(self, host: str) -> list[str]:
        task = self._running.get(host)
        if task is None:
            task = self._running[host] = asyncio.ensure_future(self._lookup(host))
            task.add_done_callback(lambda ended: self._end(host, ended))
        return await asyncio.shield(task)

    def _end(self, host: str, task: "asyncio.Task[list[str]]") -> None:
        del self._running[host]
        if not task.cancelled():
            task.exception()  # those who waited have it, if they still wait


def _resolve(host: str) -> list[str] | OSError:
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        return OSError(str(error))
    except OSError as error:
        return error
    return list(dict.fromkeys(str(row[4][0]) for row in rows))
