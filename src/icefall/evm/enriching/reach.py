"""Which addresses a URI chosen by a stranger may lead to: those of the public internet, and what is allowed by name."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Special ranges that one or another Python version takes for global.
_SPECIAL = tuple(
    ip_network(text)
    for text in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # 6to4 relays
        "198.18.0.0/15",  # benchmarks
        "64:ff9b:1::/48",  # NAT64 of one's own network
        "100::/64",  # discarded
        "2001::/23",  # protocol assignments, Teredo among them
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fec0::/10",  # site local
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """ValueError for what is neither an address nor a network."""
    return tuple(ip_network(text, strict=False) for text in texts)


def may_reach(text: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether an address, as a resolver writes it, is public or allowed."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return is_allowed(text, allowed) or ("%" not in text and is_public(address))


def is_allowed(text: str, allowed: Sequence[Network]) -> bool:
    try:
        address = _meant(ip_address(text.partition("%")[0]))
    except ValueError:
        return False
    return any(address in network for network in allowed)


def is_public(address: Address) -> bool:
    meant = _meant(address)
    if isinstance(meant, IPv6Address) and meant.sixtofour is not None and not is_public(meant.sixtofour):
        return False
    odd = meant.is_multicast or meant.is_reserved or meant.is_unspecified or meant.is_loopback or meant.is_link_local
    return meant.is_global and not odd and not any(meant in network for network in _SPECIAL)


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 one leads to, if it does nothing else."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
