"""`--http-host` as an address, a name, or nothing."""

import socket

import pytest

from icefall.errors import StartRefused
from icefall.processes.listening import listen_host


@pytest.mark.parametrize("host", ["", "127.0.0.1", "0.0.0.0", "::", "::1", "fe80::1%lo"])
def test_addresses_stay_as_they_are(host: str) -> None:
    assert listen_host(host) == host


def test_a_name_becomes_its_ipv4_address_if_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET6, 1, 6, "", ("::1", 0, 0, 0)), (socket.AF_INET, 1, 6, "", ("127.0.0.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    assert listen_host("localhost") == "127.0.0.1"
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both[:1])
    assert listen_host("localhost") == "::1"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".invalid", "1.2.3.4.5"])
def test_a_name_without_an_address_is_refused(host: str) -> None:
    with pytest.raises(StartRefused, match="cannot be resolved"):
        listen_host(host)
