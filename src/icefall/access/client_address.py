"""The caller of a request: by its API key, else by its address, which is the peer's or the one that a trusted proxy
forwards.
"""

import ipaddress
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from functools import lru_cache

import msgspec

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_HOPS_MAX = 32
_UNKNOWN = "unknown"


class Proxies:
    """The proxies whose X-Forwarded-For is trusted.

    Each proxy appends the address it was called from. The list is read from its end, and the first address that is not
    a trusted proxy is the client's; addresses before it may be forged.
    """

    def __init__(self, trusted: Iterable[str]) -> None:
        self._trusted = [ipaddress.ip_network(network, strict=False) for network in trusted]

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
        return _client_name(found)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


@lru_cache(4096)
def client_name(peer: str) -> str:
    return _client_name(_address(peer))


@lru_cache(4096)
def is_loopback(client: str) -> bool:
    """Tell whether a client's name is of this machine: IPv6 loopback is named by its network."""
    address = _address(client)
    return address.is_loopback if address is not None else client == _client_name(ipaddress.IPv6Address(1))


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


def _client_name(address: Address | None) -> str:
    """Return the name of a client. An IPv6 address counts as its /64, which usually belongs to one client."""
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address) if address is not None else _UNKNOWN


class Caller(msgspec.Struct, frozen=True, gc=False):
    """The caller of a request. `key`: the name of its key, empty without one. `is_trusted`: a caller on this machine,
    where limits are off and no key is required; it may see everything. `host`: where it reached us. `is_admin`: its
    key may change what all callers see."""

    key: str = ""
    is_trusted: bool = False
    host: str = ""
    is_admin: bool = False


_current: ContextVar[Caller] = ContextVar("caller")
_NO_CALLER = Caller()


class CurrentCaller:
    def get(self) -> Caller:
        return _current.get(_NO_CALLER)

    def put(self, caller: Caller) -> None:
        """Set the caller for the task of this request alone."""
        _current.set(caller)
