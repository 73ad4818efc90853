"""Delivery: every message is taken at least once, by receivers of any kind, whatever is killed meanwhile."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.webhooks.scene import Scene, Sends, blocks, busiest, transactions_of

from icefall.webhooks.delivering import StoredEvent
from icefall.webhooks.messages import NUMBER_MAX, MessageFilter
from icefall.webhooks.model import Message, Webhook
from icefall.webhooks.pacing import PAUSE_MAX_S
from icefall.webhooks.retrying import ATTEMPTS_MAX, DELAYS_S, LEASE_S, Outcome
from icefall.webhooks.signing import signature_of

FAILED = Outcome(503, "it answered 503")
LOOPS = 20  # turns of the event loop that an attempt of these tests takes at most


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


async def few(scene: Scene, **fields: object) -> tuple[Webhook, list[str]]:
    """A webhook whose first events are in the store: the hashes of their transactions."""
    address = busiest()
    webhook = await scene.webhook(address, **fields)
    of = blocks()[:12]
    await scene.put(of)
    return webhook, transactions_of(address, of)


async def stored(scene: Scene, webhook: Webhook) -> Webhook:
    found = await scene.registry.webhook(webhook.id)
    assert found is not None
    return found


def test_a_receiver_that_fails_gets_the_same_bytes_again(scene: Scene) -> None:
    async def run() -> None:
        _, hashes = await few(scene)
        sends = Sends(lambda _: FAILED)
        await scene.delivery(sends).drain()
        assert sends.hashes() == hashes
        for delay in DELAYS_S[:2]:
            scene.now += delay - 1
            count = len(sends.sent)
            await scene.delivery(sends).drain()
            assert len(sends.sent) == count, "not before its time"
            scene.now += 1
            await scene.delivery(sends).drain()
            assert len(sends.sent) == count + len(hashes)
        sends.answer = lambda _: Outcome(200)
        scene.now += DELAYS_S[2]
        await scene.delivery(sends).drain()
        by_id: dict[str, set[bytes]] = {}
        for _, body, headers in sends.sent:
            by_id.setdefault(headers["webhook-id"], set()).add(body)
        assert [len(one) for one in by_id.values()] == [1] * len(hashes)
        attempts = await scene.messages.attempts(next(iter(by_id)))
        assert [(one.code, one.error) for one in attempts] == [(503, FAILED.error)] * 3 + [(200, "")]

    asyncio.run(run())


def test_a_webhook_is_switched_off_after_the_last_attempt_and_can_go_on(scene: Scene) -> None:
    async def run() -> None:
        webhook, hashes = await few(scene)
        sends = Sends(lambda _: FAILED)
        for delay in (*DELAYS_S, 1.0):
            await scene.delivery(sends).drain()
            scene.now += delay
        off = await stored(scene, webhook)
        assert (off.status, off.reason) == ("inactive", f"a message was not taken in {ATTEMPTS_MAX} attempts")
        assert len(sends.sent) == (ATTEMPTS_MAX - 1) * len(hashes) + 1, "the last attempt of one of them ends all"
        sends.answer = lambda _: Outcome(200)
        await scene.registry.change(webhook.id, scene.now, status="active", reason="")
        await scene.delivery(sends).drain()
        assert sorted(sends.hashes()[-len(hashes) :]) == sorted(hashes)

    asyncio.run(run())


def test_gone_switches_off_at_once(scene: Scene) -> None:
    async def run() -> None:
        webhook, _ = await few(scene)
        await scene.delivery(Sends(lambda _: Outcome(410, "it answered 410"))).drain()
        assert (await stored(scene, webhook)).reason == "the receiver answered 410 Gone"

    asyncio.run(run())


def test_a_receiver_that_asks_for_a_pause_gets_no_other_message_meanwhile(scene: Scene) -> None:
    """The pause is as long as it asks for, a minute at most; it ends at once with another URL."""

    async def run() -> None:
        webhook, hashes = await few(scene)
        sends = Sends(lambda url: Outcome(429, "it answered 429", 86400.0 if url == webhook.url else 20.0))
        delivery = scene.delivery(sends)
        await delivery.drain()
        assert sends.hashes() == hashes[:1]
        scene.now += PAUSE_MAX_S - 1
        await delivery.drain()
        assert sends.hashes() == hashes[:1]
        scene.now += 1
        await delivery.drain()
        assert sends.hashes() == hashes[:2], "the first one waits for a day"
        await scene.registry.change(webhook.id, scene.now, url="http://127.0.0.1:2/")
        await delivery.drain()
        assert sends.hashes() == hashes[:3]
        scene.now += 20
        await delivery.drain()
        assert sends.hashes() == hashes[:4]
        sends.answer = lambda _: Outcome(200)
        scene.now += 86400.0
        await delivery.drain()
        assert sorted(set(sends.hashes())) == sorted(hashes)
        assert len(sends.sent) == len(hashes) + 4

    asyncio.run(run())


def test_in_order_the_next_message_waits_for_the_one_before(scene: Scene) -> None:
    async def run() -> None:
        _, hashes = await few(scene, ordered=1)
        sends = Sends(lambda _: FAILED)
        await scene.delivery(sends).drain()
        assert sends.hashes() == hashes[:1]
        sends.answer = lambda _: Outcome(204)
        scene.now += DELAYS_S[0]
        await scene.delivery(sends).drain()
        assert sends.hashes() == [hashes[0], *hashes]

    asyncio.run(run())


def test_two_processes_share_the_work_and_one_that_dies_loses_nothing(scene: Scene) -> None:
    async def run() -> None:
        _, hashes = await few(scene)
        hung = asyncio.Event()

        async def hangs(*_: object) -> Outcome:
            await hung.wait()
            return Outcome(200)

        dying, sends = scene.delivery(hangs), Sends()
        assert await dying.round()
        other = scene.delivery(sends)
        await other.drain()
        assert sends.hashes() == hashes[1:], "what another process sends is left to it"
        scene.now += LEASE_S  # and it was killed
        await other.drain()
        assert sorted(sends.hashes()) == sorted(hashes)
        hung.set()

    asyncio.run(run())


def test_a_process_that_was_held_up_sends_nothing_that_another_one_may_send(scene: Scene) -> None:
    """It is stopped for longer than its claim holds, after it has made the first body."""

    async def run() -> None:
        webhook, hashes = await few(scene)
        held, sends = Sends(), Sends()
        delivery, other = scene.delivery(held), scene.delivery(sends)
        made = delivery._render

        async def render(webhook: Webhook, message: Message, event: StoredEvent) -> bytes:
            body = await made(webhook, message, event)
            scene.now += LEASE_S
            delivery._render = made
            return body

        delivery._render = render
        assert await delivery.round()
        await asyncio.gather(other.drain(), *delivery._tasks)
        assert held.sent == []
        await other.drain()
        assert sorted(sends.hashes()) == sorted(hashes)
        listed = await scene.messages.page(webhook.id, MessageFilter(), NUMBER_MAX, 100)
        assert {one.attempts for one in listed} <= {1, 2}
        await delivery.drain()
        assert held.sent == [], "it goes on, and nothing is left"

    asyncio.run(run())


def test_a_slow_receiver_does_not_delay_another(scene: Scene) -> None:
    async def run() -> None:
        address = busiest()
        hanging = await scene.webhook(address, url="http://hangs/", number=1)
        await scene.webhook(address, url="http://answers/", number=2)
        of = blocks()[:12]
        await scene.put(of)
        hung, sends = asyncio.Event(), Sends()

        async def send(url: str, body: bytes, headers: dict[str, str], owner: str) -> Outcome:
            if url == hanging.url:
                await hung.wait()
            return await sends(url, body, headers)

        delivery = scene.delivery(send, total=64)
        running = asyncio.create_task(delivery.run())
        while len(sends.sent) < len(transactions_of(address, of)):
            await asyncio.sleep(0)
        assert {url for url, _, _ in sends.sent} == {"http://answers/"}
        hung.set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await delivery.close()

    asyncio.run(run())


async def rounds_until_taken(scene: Scene, receivers: int, hanging: int) -> int:
    """How often delivery must look for messages until those to receivers that answer are taken."""
    of = blocks()[:16]
    for number in range(receivers):
        await scene.webhook(busiest(), url=f"http://r{number}/", number=number)
    await scene.put(of)
    hung, sends = asyncio.Event(), Sends()

    async def send(url: str, body: bytes, headers: dict[str, str], owner: str) -> Outcome:
        if int(url[8:-1]) < hanging:
            await hung.wait()
        return await sends(url, body, headers)

    delivery, rounds = scene.delivery(send, per_webhook=1, total=4 * receivers), 0
    while len(sends.sent) < len(transactions_of(busiest(), of)) * (receivers - hanging):
        await delivery.round()
        rounds += 1
        for _ in range(LOOPS):  # all attempts that end have ended
            await asyncio.sleep(0)
    hung.set()
    await delivery.close()
    return rounds


def test_receivers_that_hang_cost_the_others_no_round(tmp_path: Path) -> None:
    """A tenth of the receivers hangs: the others get their messages in as many rounds as if none did."""
    found = []
    for hanging in (0, 1):
        scene = Scene(tmp_path / str(hanging))
        found.append(asyncio.run(rounds_until_taken(scene, 6, hanging)))
        scene.close()
    assert found[0] == found[1] > 1


def test_what_cannot_be_made_or_sent_stops_nothing_else(scene: Scene) -> None:
    """One event cannot be made into a message, and one message makes the way out fail as it never did before."""

    async def run() -> None:
        webhook, hashes = await few(scene)
        sends = Sends()

        async def send(url: str, body: bytes, headers: dict[str, str], owner: str) -> Outcome:
            if hashes[1] in body.decode():
                raise LookupError("not known before")
            return await sends(url, body, headers)

        delivery = scene.delivery(send)
        made = delivery._render

        async def render(webhook: Webhook, message: Message, event: StoredEvent) -> bytes:
            if f"0x{message.tx_hash.hex()}" == hashes[0]:
                raise ZeroDivisionError
            return await made(webhook, message, event)

        delivery._render = render
        await delivery.drain()
        assert sends.hashes() == hashes[2:] != []
        listed = await scene.messages.page(webhook.id, MessageFilter(status="pending"), NUMBER_MAX, 100)
        assert sorted(f"0x{one.tx_hash.hex()}" for one in listed) == sorted(hashes[:2])
        attempts = {f"0x{one.tx_hash.hex()}": await scene.messages.attempts(one.id) for one in listed}
        assert attempts[hashes[0]] == []
        assert [one.error for one in attempts[hashes[1]]] == ["it could not be sent: the log says why"]
        delivery._render, scene.now = made, scene.now + DELAYS_S[0]
        await delivery.drain()
        assert sends.hashes() == [*hashes[2:], hashes[0]]

    asyncio.run(run())


def test_replays_and_tests(scene: Scene) -> None:
    async def run() -> None:
        webhook, hashes = await few(scene)
        sends = Sends()
        await scene.delivery(sends).drain()
        first = sends.bodies()[0]["messageId"]
        assert await scene.messages.replay(webhook.id, [first, "unknown"], scene.now) == 1
        await scene.messages.add_test(webhook.id, webhook.chain_id, "test", b'{"test":true}', scene.now)
        await scene.delivery(sends).drain()
        assert sends.sent[-2][1] == sends.sent[0][1]
        assert sends.sent[-1][1] == b'{"test":true}'
        assert len(sends.sent) == len(hashes) + 2
        state = await scene.messages.state()
        assert (state.pending, state.counters["messages_delivered"]) == (0, len(sends.sent))

    asyncio.run(run())


def test_signatures_follow_a_rotation_with_an_overlap(scene: Scene) -> None:
    async def run() -> None:
        await few(scene)
        (old,) = await scene.secrets.valid("")
        new = await scene.secrets.rotate("")
        assert await scene.secrets.valid("") == [new, old]
        sends = Sends()
        await scene.delivery(sends).drain()
        _, body, headers = sends.sent[0]
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        assert headers["x-signature"] == signature_of(new, body)
        assert headers["webhook-signature"].split() == [f"v1,{signature_of(one, signed)}" for one in (new, old)]
        scene.now += 2 * 86400
        assert await scene.secrets.valid("") == [new]
        rows = await scene.registry.secrets_of("")
        assert not any(new in value or old in value for _, value, _ in rows), "what is stored is encrypted"

    asyncio.run(run())


def test_a_body_is_canonical_and_of_the_types_that_clients_know(scene: Scene) -> None:
    async def run() -> None:
        await few(scene)
        sends = Sends()
        await scene.delivery(sends).drain()
        for _, body, _ in sends.sent:
            parsed = msgspec.json.decode(body)
            assert "null" not in body.decode()
            assert parsed["event"]["transaction"]["networkToken"]["tokenName"] == "Ether €"
            assert "€".encode() in body, "not escaped"

    asyncio.run(run())
