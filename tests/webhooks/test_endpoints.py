"""The calls under /v1/webhooks of the running program: what they answer, who owns a webhook, and which bodies are
refused."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.forked import run_program
from tests.server import Reply, Server, launch, serving
from tests.waiting import until
from tests.webhooks.receiver import Receiver, receiving
from tests.webhooks.scene import ID, Scene, blocks

from icefall.api.data.handlers.webhooks import SHOWN_ADDRESSES_MAX
from icefall.webhooks.registry import ADDRESSES_MAX
from icefall.webhooks.signing import signature_headers

ADDRESSES = [f"0x{number:040d}" for number in range(11, 16)]  # without letters, which are answered in their case
TOPIC = "0x" + "ab" * 32
PIECE = 20_000  # addresses of one request
ANY_URL = "http://127.0.0.1:1/hook"
UNKNOWN = "11111111-2222-4333-8444-555555555555"
ROWS = (
    ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/addresses"), ("PATCH", "/addresses"),
    ("DELETE", "/addresses"), ("GET", "/messages"), ("GET", "/messages:count"), ("POST", ":replay"), ("POST", ":test"),
)  # fmt: skip
BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", ""): {"name": "stolen"},
    ("PATCH", "/addresses"): {"addresses": ADDRESSES[:1]},
    ("DELETE", "/addresses"): {"addresses": ADDRESSES[:1]},
    ("POST", ":replay"): {"startBlock": 0},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("hooks")
    scene = Scene(folder / "data")
    asyncio.run(scene.put(blocks()[:3]))
    scene.close()
    config = folder / "icefall.toml"
    config.write_text(f'[[chain]]\nid = "{ID}"\nrpc = "http://127.0.0.1:2"\n')
    with serving("data", folder, f"--config-file={config}", "--webhook-networks=127.0.0.0/8") as server:
        yield server


@pytest.fixture(scope="module")
def keys(server: Server) -> dict[str, dict[str, str]]:
    """The headers of two callers with keys."""
    found = {}
    for name in ("alice", "bob"):
        done = run_program("keys", "add", f"--name={name}", f"--data-dir={server.data_dir}")
        found[name] = {"x-service-api-key": done.stdout.split()[0]}
    return found


def ask(server: Server, verb: str, path: str = "", body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
    sent = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return server.ask(verb, f"/v1/webhooks{path}", sent, headers, "data")


def result(
    server: Server, verb: str, path: str = "", body: Any = None, headers: Mapping[str, str] | None = None
) -> Any:
    reply = ask(server, verb, path, body, headers)
    assert reply.status in (200, 201), reply
    return reply.json()


def wanted(**fields: Any) -> dict[str, Any]:
    given = {"eventType": "address_activity", "chainId": ID, "url": ANY_URL}
    return given | {"metadata": {"addresses": ADDRESSES[:2]}} | fields


def created(server: Server, headers: Mapping[str, str] | None = None, **fields: Any) -> Any:
    reply = ask(server, "POST", "", wanted(**fields), headers)
    assert reply.status == 201, reply
    return reply.json()


# -- one webhook, from its creation to its end -------------------------------------------------------------------------


def test_a_webhook_is_created_read_changed_and_switched_off(server: Server) -> None:
    metadata = {"addresses": ADDRESSES[:2], "eventSignatures": [TOPIC]}
    made = created(server, name="Deposits", includeLogs=True, metadata=metadata, confirmations=3, unknown=1)
    assert made | {"id": "", "createdAt": 0} == {
        "id": "", "eventType": "address_activity", "url": ANY_URL, "chainId": ID, "status": "active",
        "createdAt": 0, "name": "Deposits", "description": "", "metadata": metadata, "includeInternalTxs": False,
        "includeLogs": True, "confirmations": 3, "ordered": False,
    }  # fmt: skip
    path = f"/{made['id']}"
    assert result(server, "GET", path) == made
    changed = result(server, "PATCH", path, {"name": "Withdrawals", "includeLogs": False, "url": f"{ANY_URL}/2"})
    assert changed == made | {"name": "Withdrawals", "includeLogs": False, "url": f"{ANY_URL}/2"}
    assert result(server, "PATCH", path, {}) == changed
    ended = result(server, "DELETE", path)
    assert ended == changed | {"status": "inactive"}
    assert result(server, "GET", path) == ended
    assert ask(server, "POST", f"{path}:test").status == 400
    assert result(server, "PATCH", path, {"status": "active"}) == changed


def test_lists_are_paged_and_filtered_by_status(server: Server, keys: dict[str, dict[str, str]]) -> None:
    bob = keys["bob"]
    made = [created(server, bob, name=str(number))["id"] for number in range(3)]
    result(server, "DELETE", f"/{made[1]}", headers=bob)

    def listed(query: str) -> list[str]:
        page = result(server, "GET", f"?pageSize=1{query}", headers=bob)
        ids = [one["id"] for one in page["webhooks"]]
        token = page.get("nextPageToken")
        return ids + (listed(f"{query.partition('&pageToken')[0]}&pageToken={token}") if token else [])

    assert sorted(listed("")) == sorted(made)
    assert set(listed("&status=active")) == {made[0], made[2]}
    assert listed("&status=inactive") == [made[1]]
    assert ask(server, "GET", "?status=gone", headers=bob).status == 400
    assert ask(server, "GET", "?pageToken=made-up", headers=bob).status == 400


def test_addresses_are_added_removed_and_paged(server: Server) -> None:
    path = f"/{created(server)['id']}/addresses"
    more = result(server, "PATCH", path, {"addresses": [ADDRESSES[3], ADDRESSES[0], ADDRESSES[3]]})
    assert more["metadata"]["addresses"] == [*ADDRESSES[:2], ADDRESSES[3]]
    first = result(server, "GET", f"{path}?pageSize=2")
    last = result(server, "GET", f"{path}?pageSize=2&pageToken={first['nextPageToken']}")
    assert "nextPageToken" not in last
    assert first["addresses"] + last["addresses"] == [*ADDRESSES[:2], ADDRESSES[3]]
    assert first["totalAddresses"] == 3
    fewer = result(server, "DELETE", path, {"addresses": [*ADDRESSES[:2], ADDRESSES[4]]})
    assert fewer["metadata"]["addresses"] == [ADDRESSES[3]]
    assert ask(server, "DELETE", path, {"addresses": [ADDRESSES[3]]}).status == 400
    assert result(server, "GET", path)["totalAddresses"] == 1


def test_a_webhook_takes_a_hundred_thousand_addresses_in_bounded_pieces(server: Server) -> None:
    every = [f"0x{number:040d}" for number in range(ADDRESSES_MAX)]
    path = f"/{created(server, metadata={'addresses': every[:1]})['id']}/addresses"
    assert ask(server, "PATCH", path, {"addresses": every[: PIECE + 1]}).status == 400
    for first in range(0, ADDRESSES_MAX, PIECE):
        more = result(server, "PATCH", path, {"addresses": every[first : first + PIECE]})
        assert len(more["metadata"]["addresses"]) == SHOWN_ADDRESSES_MAX, "the answer is bounded too"
    assert ask(server, "PATCH", path, {"addresses": [f"0x{ADDRESSES_MAX:040d}"]}).status == 400
    listed: list[str] = []
    query = "?pageSize=100"
    with server.wire("data") as wire:
        while query:
            page = wire.send("GET", f"/v1/webhooks{path}{query}", {"Host": "127.0.0.1"}).json()
            assert page["totalAddresses"] == ADDRESSES_MAX
            listed += page["addresses"]
            token = page.get("nextPageToken")
            query = f"?pageSize=100&pageToken={token}" if token else ""
    assert listed == every
    for first in range(0, ADDRESSES_MAX, PIECE):  # one is left: a webhook has at least one
        result(server, "DELETE", path, {"addresses": every[max(first, 1) : first + PIECE]})
    assert result(server, "GET", path) == {"addresses": every[:1], "totalAddresses": 1}


def test_secrets_are_made_once_and_rotated(server: Server, keys: dict[str, dict[str, str]]) -> None:
    alice = keys["alice"]
    assert ask(server, "GET", ":getSharedSecret", headers=alice).status == 404
    reply = ask(server, "POST", ":generateOrRotateSharedSecret", headers=alice)
    assert reply.status == 201
    first = reply.json()
    assert (len(bytes.fromhex(first["secret"])), first["standardSecret"][:6]) == (32, "whsec_")
    created(server, alice)
    assert result(server, "GET", ":getSharedSecret", headers=alice) == first
    second = result(server, "POST", ":generateOrRotateSharedSecret", headers=alice)
    assert second != first
    assert result(server, "GET", ":getSharedSecret", headers=alice) == second
    assert result(server, "POST", ":generateOrRotateSharedSecret", headers=keys["bob"]) not in (first, second)
    stored = b"".join(path.read_bytes() for path in server.data_dir.glob("access.sqlite*"))
    assert bytes.fromhex(second["secret"]) not in stored
    assert second["secret"].encode() not in stored


# -- messages ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture(scope="module")
def delivering(server: Server) -> Iterator[None]:
    """`icefall webhooks` next to the listener."""
    config = f"--config-file={server.data_dir.parent / 'icefall.toml'}"
    program = launch("webhooks", server.data_dir.parent, config, "--webhook-networks=127.0.0.0/8")
    yield
    assert program.stop() == 0, program.output()


@pytest.mark.usefixtures("delivering")
def test_messages_are_sent_listed_and_replayed(server: Server, receiver: Receiver) -> None:
    path = f"/{created(server, url=receiver.url)['id']}"
    assert result(server, "GET", f"{path}/messages") == {"messages": []}
    sent = [result(server, "POST", f"{path}:test")["messageId"] for _ in range(3)]

    def listed(query: str) -> list[Any]:
        return list(result(server, "GET", f"{path}/messages?{query}")["messages"])

    until(lambda: len(listed("status=delivered")) == 3, "three messages")
    assert sorted(receiver.ids()) == sorted(sent)
    headers, body = receiver.got[0]
    secret = bytes.fromhex(result(server, "GET", ":getSharedSecret")["secret"])
    signed = signature_headers([secret], headers["webhook-id"], int(headers["webhook-timestamp"]), body)
    assert signed.items() <= headers.items()
    newest = listed("pageSize=1")[0]
    assert (newest["messageId"], newest["kind"], newest["chainId"]) == (sent[-1], "test", ID)
    assert [one["responseCode"] for one in newest["attempts"]] == [204]
    assert not {"blockNumber", "txHash", "nextAttemptAt"} & set(newest)
    first = result(server, "GET", f"{path}/messages?pageSize=2")
    rest = result(server, "GET", f"{path}/messages?pageSize=2&pageToken={first['nextPageToken']}")
    assert [one["messageId"] for one in first["messages"] + rest["messages"]] == sent[::-1]

    counts = result(server, "GET", f"{path}/messages:count")
    assert counts == {"pending": 0, "delivered": 3, "failed": 0, "dropped": 0}

    other = f"/{created(server, url=receiver.url)['id']}"
    assert result(server, "POST", f"{other}:replay", {"messageIds": sent}) == {"replayed": 0}
    for nothing in ({"endTimestamp": 1}, {"endTimestamp": 0}, {"endBlock": 0}, {"startBlock": 1}):
        assert result(server, "POST", f"{path}:replay", nothing) == {"replayed": 0}, nothing
    assert result(server, "POST", f"{path}:replay", {"messageIds": [sent[1], UNKNOWN]}) == {"replayed": 1}
    until(lambda: receiver.ids().count(sent[1]) == 2, "a message that is replayed")
    assert len({body for _, body in receiver.got if json.loads(body)["messageId"] == sent[1]}) == 1
    until(lambda: len(listed("status=delivered")) == 3, "the end of its attempt")
    assert result(server, "POST", f"{path}:replay", {"startTimestamp": 0}) == {"replayed": 3}
    until(lambda: len(receiver.got) == 7, "all messages again")

    def counted() -> list[str]:
        return server.ask("GET", "/ext/metrics", b"", None, "data").body.decode().splitlines()

    until(lambda: 'icefall_webhook_attempts_total{outcome="taken"} 7' in counted(), "the counter of attempts")
    assert 'icefall_webhook_queue{state="pending"} 0' in counted()


@pytest.mark.usefixtures("delivering")
def test_a_receiver_that_is_gone_switches_its_webhook_off(server: Server, receiver: Receiver) -> None:
    path = f"/{created(server, url=receiver.url)['id']}"
    receiver.refusals = 1
    message = result(server, "POST", f"{path}:test")["messageId"]
    until(lambda: result(server, "GET", path)["status"] == "inactive", "a webhook that is switched off")
    assert "410" in result(server, "GET", path)["statusReason"]
    assert result(server, "GET", f"{path}/messages:count")["failed"] == 1
    (failed,) = result(server, "GET", f"{path}/messages?status=failed")["messages"]
    assert [(one["responseCode"], one["error"]) for one in failed["attempts"]] == [(410, "it answered 410")]
    resumed = result(server, "PATCH", path, {"status": "active"})
    assert (resumed["status"], "statusReason" in resumed) == ("active", False)
    until(lambda: receiver.ids() == [message, message], "what failed is tried again")


# -- owners ------------------------------------------------------------------------------------------------------------


def test_a_webhook_belongs_to_the_key_that_created_it(server: Server, keys: dict[str, dict[str, str]]) -> None:
    made = created(server, keys["alice"])["id"]
    local = created(server)["id"]
    for theirs, others in ((made, (keys["bob"], None)), (local, (keys["alice"], keys["bob"]))):
        for headers in others:
            seen = result(server, "GET", "?pageSize=100", headers=headers)["webhooks"]
            assert theirs not in {one["id"] for one in seen}
            for verb, path in ROWS:
                reply = ask(server, verb, f"/{theirs}{path}", BODIES.get((verb, path)), headers)
                assert reply.status == 404, (verb, path, reply)
    assert result(server, "GET", f"/{made}", headers=keys["alice"])["status"] == "active"
    assert ask(server, "GET", f"/{made}", headers={"x-service-api-key": "made-up"}).status == 401


def test_a_key_that_is_revoked_takes_its_webhooks_with_it(server: Server) -> None:
    def new_key() -> dict[str, str]:
        done = run_program("keys", "add", "--name=carol", f"--data-dir={server.data_dir}")
        return {"x-service-api-key": done.stdout.split()[0]}

    first, local = new_key(), created(server)["id"]
    made = created(server, first)["id"]
    run_program("keys", "revoke", "--name=carol", f"--data-dir={server.data_dir}")
    assert ask(server, "GET", f"/{made}", headers=first).status == 403
    again = new_key()
    seen = result(server, "GET", f"/{made}", headers=again)
    assert (seen["status"], seen["statusReason"]) == ("inactive", "its API key was revoked")
    assert result(server, "PATCH", f"/{made}", {"status": "active"}, again)["status"] == "active"
    assert result(server, "GET", f"/{local}")["status"] == "active", "those of others go on"


def test_without_a_key_only_callers_on_this_machine_are_served(server: Server) -> None:
    made = created(server)["id"]
    for headers in ({"Origin": "https://elsewhere.example"}, {"X-Forwarded-For": "203.0.113.9"}):
        assert ask(server, "POST", "", wanted(), headers).status == 401
        assert ask(server, "GET", "", headers=headers).status == 401
        assert ask(server, "GET", ":getSharedSecret", headers=headers).status == 401
        for verb, path in ROWS:
            assert ask(server, verb, f"/{made}{path}", BODIES.get((verb, path)), headers).status == 401, (verb, path)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"eventType": "validator_activity"}, {"eventType": "other"}, {"chainId": "9"}, {"chainId": ""},
        {"metadata": {}}, {"metadata": {"addresses": []}}, {"metadata": {"addresses": ["0x12"]}}, {"metadata": None},
        {"metadata": {"addresses": ADDRESSES, "eventSignatures": ["0x12"]}}, {"url": "https://"}, {"url": "x" * 2049},
        {"url": "ftp://127.0.0.1/hook"}, {"url": "http://user:word@127.0.0.1/"}, {"url": "https://10.0.0.1/"},
        {"url": "https://169.254.169.254/latest"}, {"url": "http://[::1]/"}, {"url": "https://name.invalid/"},
        {"url": "https://127.1:99999/"}, {"name": "x" * 1001}, {"name": 1}, {"includeLogs": "yes"},
        {"confirmations": -1}, {"confirmations": 100_001}, {"startBlock": -1}, {"startBlock": 2**64},
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_webhook_is_not_created(fields: dict[str, Any], server: Server) -> None:
    before = result(server, "GET", "?pageSize=100")
    reply = ask(server, "POST", "", wanted(**fields))
    assert reply.status == 400, reply
    assert reply.json()["statusCode"] == 400
    assert result(server, "GET", "?pageSize=100") == before


def test_bodies_that_cannot_be_read_are_refused(server: Server) -> None:
    path = f"/{created(server)['id']}"
    for verb, row in (("POST", ""), ("PATCH", path), ("PATCH", f"{path}/addresses"), ("POST", f"{path}:replay")):
        for body in (b"{", b"[]", b"null", b"\xff", b'{"addresses": 1, "metadata": 1, "name": 1, "messageIds": 1}'):
            assert ask(server, verb, row, body).status == 400, (verb, row, body)
        assert ask(server, verb, row, b"{}", {"Content-Type": "text/plain"}).status == 415
        assert ask(server, verb, row, b'{"name":"' + b"x" * (1 << 20) + b'"}').status == 413
    replays: tuple[dict[str, Any], ...] = ({}, {"messageIds": []}, {"startBlock": -1}, {"startTimestamp": "x"})
    for wrong in replays:
        assert ask(server, "POST", f"{path}:replay", wrong).status == 400, wrong
    for bad in ({"status": "gone"}, {"url": "http://10.0.0.1/"}, {"url": None}):
        assert ask(server, "PATCH", path, bad).status == 400, bad
    assert ask(server, "PATCH", f"{path}/addresses", {"addresses": [ADDRESSES[0]] * 20_001}).status == 400


def test_a_webhook_that_does_not_exist_is_not_found(server: Server) -> None:
    for verb, path in ROWS:
        assert ask(server, verb, f"/{UNKNOWN}{path}", BODIES.get((verb, path))).status == 404
        assert ask(server, verb, f"/{'x' * 65}{path}", BODIES.get((verb, path))).status in (400, 404)
    assert ask(server, "PUT", f"/{UNKNOWN}", {}).status == 405
