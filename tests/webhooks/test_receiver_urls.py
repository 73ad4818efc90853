"""URLs that messages are never sent to, whoever names them: at creation and at every attempt."""

import asyncio
from pathlib import Path

import pytest
from tests.webhooks.scene import receiver_access

from icefall.compose import webhooks
from icefall.compose.webhooks import ReceiverAccess
from icefall.config.load import load
from icefall.errors import BadRequest

FORBIDDEN = "the URL leads to an address, port or scheme that is not allowed"
LEADS_INSIDE = {
    "plain http to a public address": "http://93.184.216.34/",
    "another port": "https://93.184.216.34:8443/",
    "port 80 with https": "https://93.184.216.34:80/",
    "a private network": "https://10.0.0.1/",
    "a network shared by customers": "https://100.64.0.1/",
    "the metadata of a cloud": "https://169.254.169.254/latest/meta-data",
    "link local": "https://[fe80::1]/",
    "unique local": "https://[fc00::1]/",
    "unspecified": "https://0.0.0.0/",
    "unspecified of version 6": "https://[::]/",
    "broadcast": "https://255.255.255.255/",
    "multicast": "https://224.0.0.1/",
    "loopback of version 6": "https://[::1]/",
    "a mapped address": "https://[::ffff:10.0.0.1]/",
    "a mapped address in hex": "https://[::ffff:a9fe:a9fe]/",
    "an address behind NAT64": "https://[64:ff9b::a00:1]/",
    "an address behind 6to4": "https://[2002:a00:1::]/",
    "a decimal address": "https://2130706433/",
    "an octal address": "https://0177.0.0.1/",
    "a short address": "https://10.1/",
    "a user": "https://user@93.184.216.34/",
    "a user and a password": "https://user:secret@93.184.216.34/",
    "an empty user": "https://:secret@93.184.216.34/",
    "another scheme": "ftp://93.184.216.34/",
    "a file": "file:///etc/passwd",
    "gopher": "gopher://93.184.216.34:70/_",
    "no host": "https:///path",
}


@pytest.mark.parametrize("kind", LEADS_INSIDE)
def test_nothing_is_sent_inside(kind: str) -> None:
    url, access = LEADS_INSIDE[kind], receiver_access()

    async def run() -> None:
        outcome = await access.send(url, b"{}", {})
        assert (outcome.code, outcome.error) == (0, FORBIDDEN)
        with pytest.raises(BadRequest, match="url must be https"):
            await access.check(url)

    asyncio.run(run())


@pytest.mark.parametrize(
    "addresses",
    [["93.184.216.34", "10.0.0.1"], ["10.0.0.1"], ["::ffff:127.0.0.1", "93.184.216.34"], ["fe80::1%eth0"], ["garbage"]],
    ids=str,
)
def test_every_address_of_a_name_must_be_public(addresses: list[str]) -> None:
    access = ReceiverAccess(())

    async def lookup(_host: str) -> list[str]:
        return addresses

    async def run() -> None:
        access._fetcher._lookup = lookup
        assert (await access.send("https://name.example/", b"{}", {})).error == FORBIDDEN
        with pytest.raises(BadRequest):
            await access.check("https://name.example/")

    asyncio.run(run())


def test_names_of_this_machine_are_judged_by_their_address() -> None:
    async def run() -> None:
        for host in ("localhost", "0x7f.1", "0x7f000001"):
            outcome = await ReceiverAccess(()).send(f"https://{host}/", b"{}", {})
            assert (outcome.code, outcome.error) == (0, FORBIDDEN), host

    asyncio.run(run())


def test_own_ports_and_those_of_nodes_are_refused_in_allowed_networks(tmp_path: Path) -> None:
    file = tmp_path / "icefall.toml"
    file.write_text('[[chain]]\nid = "7"\nrpc = ["http://10.0.0.5:8545/rpc", "https://node.example/"]\n')
    given = [f"--config-file={file}", f"--data-dir={tmp_path}", "--webhook-networks=127.0.0.0/8"]
    access = webhooks.receiver_access(load("data", given, {}, tmp_path).config)
    assert access._own_ports == {9650, 9652, 9653, 8545}

    async def run() -> None:
        for port in access._own_ports:
            assert (await access.send(f"http://127.0.0.1:{port}/", b"{}", {})).error == FORBIDDEN
            with pytest.raises(BadRequest):
                await access.check(f"http://127.0.0.1:{port}/hook")
        await access.check("http://127.0.0.1:9654/hook")

    asyncio.run(run())
