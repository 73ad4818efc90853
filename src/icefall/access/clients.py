"""Whose call it is when no key says so: an address, the peer's own or what a proxy that we trust says of it."""

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_HOPS_MAX = 32
_UNKNOWN = "unknown"


class Proxies:
    """The proxies whose X-Forwarded-For counts. Each appends the address it was called from, so the list is read from
    its end, and the first that is no proxy of ours is the caller: what stands before it can be anybody's invention."""

    def __init__(self, trusted: Iterable[str]) -> None:
        self._trusted = [ipaddress.ip_network(one, strict=False) for one in trusted]

    def __bool__(self) -> bool:
        return bool(self._trusted)

    def client(self, peer: str, forwarded: Sequence[str]) -> str:
        found = _address(peer)
        hops = ",".join(forwarded).split(",")[-_HOPS_MAX:] if forwarded else []
        while hops and found is not None and self._trusts(found):
            hop = _address(hops.pop().strip())
            if hop is None:
                break
            found = hop
        return _named(found)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


@lru_cache(4096)
def client_name(peer: str) -> str:
    return _named(_address(peer))


def _address(text: str) -> Address | None:
    host = text[1:].partition("]")[0] if text.startswith("[") else text
    if host.count(":") == 1:
        host = host.partition(":")[0]  # some proxies add the port
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _named(address: Address | None) -> str:
    """IPv6 by its /64: whoever has one address there has them all."""
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address) if address is not None else _UNKNOWN
