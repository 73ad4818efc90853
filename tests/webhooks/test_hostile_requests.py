"""Drawn requests about webhooks, most of them malformed: bodies and queries are answered, never with a failure
of ours, and what was stored before can still be read.

ICEFALL_FUZZ_WEBHOOK_REQUESTS: how many are drawn.
"""

import asyncio
import json
import os
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from tests.server import Server, serving
from tests.webhooks.scene import ID, Scene, blocks

REQUESTS = int(os.environ.get("ICEFALL_FUZZ_WEBHOOK_REQUESTS", "400"))
ADDRESS, TOPIC = "0x" + "aB" * 20, "0x" + "Cd" * 32
UNKNOWN = "11111111-2222-4333-8444-555555555555"
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**53, 2**63, 2**64, 10**30, 1.5, -0.0, 1e300, "", " ", "\x00", "a\x00b", "é€😀",
    "x" * 999,
    "x" * 5000, "'; drop table webhook; --", "%00", "../..", [], {}, [[]], [None], {"": None}, "active", "inactive",
    ADDRESS, ADDRESS.lower(), ADDRESS.upper(), "0X" + "ab" * 20, ADDRESS[:-1], TOPIC, [ADDRESS],
    [ADDRESS, ADDRESS.lower()],
    [TOPIC, TOPIC.lower()], [ADDRESS[:-1]], ["\x00"], "http://127.0.0.1:1/", "http://127.0.0.1:1/\x00", "http://[::1",
    "http://127.0.0.1:1/é?a=%zz#x", "https://xn--/", "http://127.0.0.1:99999/", "\ud800", ID, "9", "P", "mainnet",
    "address_activity", "primary_network_address_activity", "validator_activity", "addresses", "nodeId", "subnetId",
)  # fmt: skip
FIELDS = (
    "eventType", "url", "network", "chainId", "metadata", "name", "description", "includeInternalTxs", "includeLogs",
    "confirmations", "ordered", "startBlock", "status", "addresses", "messageIds", "startTimestamp", "endTimestamp",
    "endBlock", "id", "__proto__",
)  # fmt: skip
ABOUT = (
    "addresses", "eventSignatures", "keyType", "keys", "subEvents", "balanceThresholdFilter", "nodeIds", "subnetIds",
    "l1ValidatorFeeBalanceThreshold",
)  # fmt: skip
OPERATIONS = (
    ("POST", ""), ("GET", ""), ("GET", "/ID"), ("PATCH", "/ID"), ("DELETE", "/ID"), ("GET", "/ID/addresses"),
    ("PATCH", "/ID/addresses"), ("DELETE", "/ID/addresses"), ("POST", ":generateOrRotateSharedSecret"),
    ("GET", ":getSharedSecret"), ("GET", "/ID/messages"), ("GET", "/ID/messages:count"), ("POST", "/ID:replay"),
    ("POST", "/ID:test"),
)  # fmt: skip
QUERY = ("status", "pageSize", "pageToken", "id", "unknown", "chainId")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("hostile")
    scene = Scene(folder / "data")
    asyncio.run(scene.put(blocks()[:3]))
    scene.close()
    config = folder / "icefall.toml"
    config.write_text(f'[[chain]]\nid = "{ID}"\nrpc = "http://127.0.0.1:2"\n')
    with serving("data", folder, f"--config-file={config}", "--webhook-networks=127.0.0.0/8") as server:
        yield server


def drawn_body(source: random.Random) -> Any:
    """A body that is often nearly right."""
    if source.random() < 0.05:
        return source.choice(STRANGE)
    body: dict[str, Any] = {}
    if source.random() < 0.8:
        body = {
            "startBlock": 4,
            "eventType": "address_activity",
            "chainId": ID,
            "url": "http://127.0.0.1:1/",
            "addresses": [ADDRESS],
        }
        body |= {"metadata": {"addresses": [ADDRESS, "0x" + "11" * 20]}}
    for name in source.sample(FIELDS, source.choice((0, 0, 0, 1, 2))):
        body[name] = source.choice(STRANGE)
    if isinstance(body.get("metadata"), dict):
        about = dict(body["metadata"])
        for name in source.sample(ABOUT, source.choice((0, 0, 1))):
            about[name] = source.choice(STRANGE)
        body["metadata"] = about
    return body


def drawn_query(source: random.Random) -> str:
    parts = []
    for _ in range(source.choice((0, 0, 0, 1, 2))):
        value = source.choice([one for one in STRANGE if isinstance(one, str | int | float)])
        parts.append(f"{source.choice(QUERY)}={quote(str(value)[:900], errors='replace')}")
    return "?" + "&".join(parts) if parts else ""


def test_drawn_requests_are_answered_and_never_fail(server: Server) -> None:
    source, made, seen = random.Random(35), [UNKNOWN], set()
    for number in range(REQUESTS):
        verb, path = source.choice(OPERATIONS)
        named = quote(source.choice([*made[-3:], *made[-3:], UNKNOWN, "x" * 64, "é", "a b", "\x00"]))
        body = json.dumps(drawn_body(source)).encode() if verb in ("POST", "PATCH", "DELETE") else b""
        if source.random() < 0.05:
            body = bytearray(body)  # type: ignore[assignment]
            for _ in range(min(len(body), 3)):
                body[source.randrange(len(body))] = source.randrange(256)  # type: ignore[index]
        reply = server.ask(
            verb, f"/v1/webhooks{path.replace('ID', named)}{drawn_query(source)}", bytes(body), None, "data"
        )
        assert reply.status in (200, 201, 400, 404), (number, verb, path, named, body, reply)
        seen.add((verb, path, reply.status < 300))
        if (verb, path, reply.status) == ("POST", "", 201):
            made.append(reply.json()["id"])
        elif reply.status >= 400:
            assert reply.json()["statusCode"] == reply.status
            assert isinstance(reply.json()["message"], str | list)
    assert len(made) > REQUESTS // 100, "some were created"
    if REQUESTS >= 400:
        assert [one for one in OPERATIONS if (*one, True) not in seen] == [], "each operation succeeded too"
    for one in made[1:]:
        assert server.ask("GET", f"/v1/webhooks/{one}", b"", None, "data").status == 200


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("PATCH", "/ID", {"name": "a\x00b"}),
        ("PATCH", "/ID", {"description": "\x00"}),
        ("PATCH", "/ID", {"url": "http://127.0.0.1:1/\x00"}),
        ("POST", "/ID:replay", {"messageIds": ["\x00"]}),
        ("POST", "/ID:replay", {"messageIds": ["x" * 65]}),
    ],
    ids=str,
)
def test_texts_that_no_server_can_store_are_refused(verb: str, path: str, body: Any, server: Server) -> None:
    created = {"eventType": "address_activity", "chainId": ID, "url": "http://127.0.0.1:1/"}
    wanted = json.dumps(created | {"metadata": {"addresses": [ADDRESS]}, "name": "line\nline"}).encode()
    made = server.ask("POST", "/v1/webhooks", wanted, None, "data").json()["id"]
    reply = server.ask(verb, f"/v1/webhooks{path.replace('ID', made)}", json.dumps(body).encode(), None, "data")
    assert reply.status == 400, reply


def test_addresses_and_topics_are_taken_in_any_case_once(server: Server) -> None:
    metadata = {"addresses": [ADDRESS, ADDRESS.lower(), "0x" + "AB" * 20], "eventSignatures": [TOPIC]}
    body = {"eventType": "address_activity", "chainId": ID, "url": "http://127.0.0.1:1/", "metadata": metadata}
    made = server.ask("POST", "/v1/webhooks", json.dumps(body).encode(), None, "data").json()
    assert [one.lower() for one in made["metadata"]["addresses"]] == [ADDRESS.lower()]
    for address in (ADDRESS, ADDRESS.lower()):  # adding what is there changes nothing
        more = json.dumps({"addresses": [address]}).encode()
        reply = server.ask("PATCH", f"/v1/webhooks/{made['id']}/addresses", more, None, "data")
        assert reply.json()["metadata"] == made["metadata"]
