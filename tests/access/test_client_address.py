"""The address of a client: the peer's, or the one that a trusted proxy forwards."""

import pytest

from icefall.access.client_address import Proxies, client_name

PROXIES = Proxies(["10.0.0.0/8", "fd00::/64"])


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::1", "::/64"),
        ("[2001:db8::1]", "2001:db8::/64"),
        ("2001:db8::ffff", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", "unknown"),
        ("a socket", "unknown"),
    ],
)
def test_a_client_is_an_ipv4_address_or_an_ipv6_network(peer: str, name: str) -> None:
    assert client_name(peer) == name
    assert Proxies([]).client(peer, ["203.0.113.9"]) == name


@pytest.mark.parametrize(
    ("peer", "forwarded", "name"),
    [
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),  # not a trusted proxy
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1, 203.0.113.9"], "203.0.113.9"),  # the first may be forged
        ("10.0.0.1", ["1.1.1.1", "203.0.113.9"], "203.0.113.9"),  # a second header, as some proxies add it
        ("10.0.0.1", ["203.0.113.9, 10.1.1.1,10.2.2.2"], "203.0.113.9"),
        ("10.0.0.1", ["10.1.1.1"], "10.1.1.1"),
        ("10.0.0.1", ["nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9, "], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::/64"),
        ("fd00::5", ["2001:db8::1"], "2001:db8::/64"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["10.1.1.1," * 10_000], "10.0.0.1"),
    ],
)
def test_a_trusted_proxy_forwards_the_address(peer: str, forwarded: list[str], name: str) -> None:
    assert PROXIES.client(peer, forwarded) == name
