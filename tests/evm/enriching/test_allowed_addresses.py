"""Which addresses an untrusted URL may lead to."""

import asyncio
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefall.evm.enriching.allowed_addresses import JoinedLookup, may_reach, networks

PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.88.99.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::1",
    "2002:a00:1::1",
    "2002:c0a8:101::1",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "4000::1",
    "localhost",
    "127.1",
    "0x7f.1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert may_reach(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_not_public(address: str) -> None:
    assert not may_reach(address)


def test_allowed_networks() -> None:
    allowed = networks(["10.0.0.0/8", "127.0.0.2", "fd00::/8"])
    assert may_reach("10.1.2.3", allowed)
    assert may_reach("::ffff:10.1.2.3", allowed)
    assert may_reach("127.0.0.2", allowed)
    assert may_reach("fd12::1", allowed)
    assert not may_reach("127.0.0.1", allowed)
    assert not may_reach("192.168.0.1", allowed)
    assert may_reach("8.8.8.8", allowed)


@given(st.ip_addresses(v=4))
def test_an_embedded_ipv4_address_is_treated_like_itself(address: ipaddress.IPv4Address) -> None:
    expected = may_reach(str(address))
    assert may_reach(f"::ffff:{address}") == expected
    assert may_reach(f"64:ff9b::{address}") == expected
    sixtofour = ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80) | 1)
    assert may_reach(str(sixtofour)) <= expected
    assert expected <= address.is_global


def test_those_who_wait_for_one_name_share_a_lookup_and_each_later_one_is_new() -> None:
    """A name that is not answered takes one place; a wait that ends early leaves the others theirs."""

    async def run() -> None:
        asked: list[str] = []
        answered = asyncio.Event()

        async def lookup(host: str) -> list[str]:
            asked.append(host)
            await answered.wait()
            if host == "unknown":
                raise OSError(-2, "Name or service not known")
            return [f"10.0.0.{len(asked)}"]

        joined = JoinedLookup(lookup)
        waiting = [asyncio.ensure_future(joined(host)) for host in ("a", "a", "b", "unknown", "unknown", "a")]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        answered.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert asked == ["a", "b", "unknown"]
        assert isinstance(found[0], asyncio.CancelledError)
        assert found[1] == found[5] == ["10.0.0.3"]
        assert isinstance(found[3], OSError)
        assert isinstance(found[4], OSError)
        await joined("a")
        assert asked == ["a", "b", "unknown", "a"], "what was answered is not kept"

    asyncio.run(run())
