"""The official client of the hosted service takes what a receiver got, by its own check of signatures and its types,
and manages webhooks."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, get_args

import pytest
from tests.counterparts import npm_project, program
from tests.server import Server, serving
from tests.waiting import LIMIT_S
from tests.webhooks.primary_scene import PrimaryScene
from tests.webhooks.scene import ID, Scene, Sends, blocks, busiest, sending, transactions_of

from icefall.api.data.schema.webhooks import ValidatorSubEvent
from icefall.webhooks import primary_matching as m
from icefall.webhooks.primary_matching import PrimaryFilter
from icefall.webhooks.signing import signature_of
from icefall.wire.ids import PRIMARY_NETWORK

STAKING = {m.VALIDATOR_STAKE, m.DELEGATOR_STAKE, m.REWARD}

URL = "http://127.0.0.1:9/hook"  # nothing answers there
CLIENT = Path(__file__).parent.parent / "e2e" / "avacloud"


class Receiver(ThreadingHTTPServer):
    """Takes every message, and notes it as the client is given it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[dict[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.got.append({"body": body, "signature": self.headers["x-signature"]})
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def verified(folder: Path, secret: bytes, messages: list[dict[str, str]]) -> list[dict[str, Any]]:
    """What the client says of messages."""
    project, out = npm_project(CLIENT), folder / "verified.json"
    subprocess.run(
        [program("node"), "verify.js", str(out)],
        input=json.dumps({"secret": secret.hex(), "messages": messages}),
        cwd=project,
        text=True,
        capture_output=True,
        check=True,
        timeout=LIMIT_S,
    )
    return list(json.loads(out.read_text()))


def of_the_primary_network(folder: Path, secret: bytes) -> list[dict[str, str]]:
    """What a receiver gets about all stakes and rewards of a recorded P-Chain."""
    folder.mkdir()
    scene, sends = PrimaryScene(folder, "p-forks-1"), Sends()

    async def run() -> None:
        await scene.webhook("P", [PRIMARY_NETWORK], PrimaryFilter("P", m.SUBNET, tuple(STAKING)))
        playback = await scene.play()
        await scene.delivery(playback, sends).drain()
        playback.store.close()

    asyncio.run(run())
    scene.close()
    assert {json.loads(body)["event"]["subEvent"] for _, body, _ in sends.sent} == STAKING
    return [{"body": body.decode(), "signature": signature_of(secret, body)} for _, body, _ in sends.sent]


def test_the_client_takes_every_message_that_a_receiver_got(tmp_path: Path, receiver: Receiver) -> None:
    scene, rows = Scene(tmp_path / "data"), blocks()[:700]

    async def run() -> bytes:
        url = f"http://127.0.0.1:{receiver.server_port}/"
        await scene.webhook(busiest(), url=url, include_logs=1, include_internal_txs=1)
        await scene.put(rows)
        async with sending() as access:
            await scene.delivery(access.send).drain()
        return (await scene.secrets.valid(""))[0]

    try:
        secret = asyncio.run(run())
    finally:
        scene.close()
    others = of_the_primary_network(tmp_path / "primary", secret)
    assert len(receiver.got) == len(transactions_of(busiest(), rows)) > 100
    changed = {**receiver.got[0], "body": receiver.got[0]["body"].replace('"blockNumber":"', '"blockNumber":"9')}
    *found, forged = verified(tmp_path, secret, [*others, *receiver.got, changed])
    assert {one["isValid"] for one in found[: len(others)]} == {True}
    found = found[len(others) :]
    assert [one for one in found if not one["isValid"] or one["error"]] == []
    assert [one["messageId"] for one in found] == [json.loads(one["body"])["messageId"] for one in receiver.got]
    assert any("logs" in json.loads(one["body"])["event"] for one in receiver.got)
    assert forged["isValid"] is False


# -- the ten operations --------------------------------------------------------------------------------------------

ADDRESS = "local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
NODE = "NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg"
ADDRESSES = [f"0x{number:040d}" for number in range(11, 14)]  # without letters, which are answered in their case
WANTED: list[dict[str, Any]] = [
    {
        "eventType": "address_activity", "chainId": ID, "url": URL, "name": "Deposits", "includeLogs": True,
        "metadata": {"addresses": ADDRESSES[:2], "eventSignatures": ["0x" + "ab" * 32]},
    },
    {
        "eventType": "primary_network_address_activity", "chainId": "P", "network": "fuji", "url": URL,
        "metadata": {
            "keyType": "addresses", "keys": [ADDRESS],
            "subEvents": {"addressActivitySubEvents": ["balance_change", "balance_threshold", "reward_distribution"]},
            "balanceThresholdFilter": {"balanceType": "unlockedUnstaked", "balanceThreshold": "5000000000"},
        },
    },
    {
        "eventType": "validator_activity", "network": "fuji", "url": URL, "description": "ours",
        "metadata": {
            "keyType": "nodeId", "keys": [NODE], "l1ValidatorFeeBalanceThreshold": "100000000",
            "subEvents": {"validatorActivitySubEvents": list(get_args(ValidatorSubEvent))},
        },
    },
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("client")
    config = folder / "icefall.toml"
    config.write_text(f'[[chain]]\nid = "{ID}"\nrpc = "http://127.0.0.1:1"\n')
    given = (f"--config-file={config}", "--webhook-networks=127.0.0.0/8", "--network-name=fuji")
    with serving("up", folder, *given) as server:
        yield server


def driven(server: Server, calls: list[tuple[str, Any]], *api_key: str) -> list[dict[str, Any]]:
    """What the client makes of each answer. It refuses what does not fit its types."""
    done = subprocess.run(
        [program("node"), "drive.js", server.url("data"), json.dumps(calls), *api_key],
        cwd=npm_project(CLIENT),
        text=True,
        capture_output=True,
        check=True,
        timeout=LIMIT_S,
    )
    return list(json.loads(done.stdout))


def called(server: Server, calls: list[tuple[str, Any]]) -> list[Any]:
    """What the client returns: the pages of a list, else one answer."""
    found = driven(server, calls)
    assert [one for one in found if "error" in one] == []
    return [one["pages"] for one in found]


def test_the_client_makes_and_manages_webhooks_of_all_types(server: Server) -> None:
    of_secrets = [("webhooks.generateOrRotateSharedSecret", None), ("webhooks.getSharedSecret", None)]
    new, stored, *answers = called(server, [*of_secrets, *(("webhooks.create", one) for one in WANTED)])
    assert new == stored
    made = [pages[0] for pages in answers]
    for given, one in zip(WANTED, made, strict=True):
        assert {name: one[name] for name in given if name not in ("network", "chainId")} == {
            name: value for name, value in given.items() if name not in ("network", "chainId")
        }
        assert one["status"] == "active"
    ids = [one["id"] for one in made]
    evm = {"id": ids[0]}
    more = {"addressesChangeRequest": {"addresses": ADDRESSES[2:]}}
    listed, inactive, got, changed, added, addresses, fewer, *ended = called(
        server,
        [
            ("webhooks.list", {"pageSize": 2}),
            ("webhooks.list", {"status": "inactive"}),
            ("webhooks.get", evm),
            ("webhooks.update", {**evm, "updateWebhookRequest": {"name": "Other", "includeInternalTxs": True}}),
            ("webhooks.addresses.add", {**evm, **more}),
            ("webhooks.addresses.list", {**evm, "pageSize": 2}),
            ("webhooks.addresses.remove", {**evm, **more}),
            *(("webhooks.deactivate", {"id": one}) for one in ids),
        ],
    )
    assert sorted(one["id"] for page in listed for one in page["webhooks"]) == sorted(ids)
    assert len(listed) == 2
    assert [page["webhooks"] for page in inactive] == [[]]
    assert got[0] == made[0]
    assert changed[0] == made[0] | {"name": "Other", "includeInternalTxs": True}
    assert added[0]["metadata"]["addresses"] == ADDRESSES
    assert [one for page in addresses for one in page["addresses"]] == ADDRESSES
    assert {page["totalAddresses"] for page in addresses} == {3}
    assert fewer[0]["metadata"]["addresses"] == ADDRESSES[:2]
    assert [one[0]["status"] for one in ended] == ["inactive"] * 3


def test_the_client_knows_the_error_of_every_operation(server: Server) -> None:
    """Each is one of its classes, which it makes of the status and of a body that fits its schema."""
    (made,) = called(server, [("webhooks.create", WANTED[0])])
    known, unknown = {"id": made[0]["id"]}, {"id": "11111111-2222-4333-8444-555555555555"}
    wrong = {"addressesChangeRequest": {"addresses": ["0x12"]}}
    more = {"addressesChangeRequest": {"addresses": ADDRESSES[:1]}}
    expected: list[tuple[str, Any, str]] = [
        ("webhooks.create", WANTED[0] | {"chainId": "9"}, "BadRequest"),
        ("webhooks.create", WANTED[0] | {"url": "http://10.0.0.1/"}, "BadRequest"),
        ("webhooks.create", WANTED[1] | {"network": "mainnet"}, "BadRequest"),
        ("webhooks.create", WANTED[2] | {"metadata": WANTED[2]["metadata"] | {"keys": ["NodeID-x"]}}, "BadRequest"),
        ("webhooks.list", {"pageToken": "made-up"}, "BadRequest"),
        ("webhooks.get", unknown, "NotFound"),
        ("webhooks.update", known | {"updateWebhookRequest": {"url": "http://10.0.0.1/"}}, "BadRequest"),
        ("webhooks.update", unknown | {"updateWebhookRequest": {"name": "x"}}, "NotFound"),
        ("webhooks.deactivate", unknown, "NotFound"),
        ("webhooks.addresses.add", known | wrong, "BadRequest"),
        ("webhooks.addresses.add", unknown | more, "NotFound"),
        ("webhooks.addresses.remove", known | wrong, "BadRequest"),
        ("webhooks.addresses.remove", unknown | more, "NotFound"),
        ("webhooks.addresses.list", known | {"pageToken": "made-up"}, "BadRequest"),
        ("webhooks.addresses.list", unknown, "NotFound"),
    ]
    with_wrong_key: list[tuple[str, Any]] = [
        ("webhooks.generateOrRotateSharedSecret", None),
        ("webhooks.getSharedSecret", None),
    ]
    found = driven(server, [(name, request) for name, request, _ in expected])
    assert [(one["method"], one.get("error", {}).get("name")) for one in found] == [
        (name, error) for name, _, error in expected
    ]
    refused = driven(server, with_wrong_key, "made-up")
    assert [one["error"]["name"] for one in refused] == ["Unauthorized"] * 2
    assert len({name for name, *_ in (*expected, *with_wrong_key)}) == 10
    assert all(one["error"]["message"] for one in (*found, *refused))
