"""Webhooks that are changed or switched off while messages wait or are being sent, many of one address, and receivers
that begin to hang together."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from tests.webhooks.scene import Scene, Sends, blocks, busiest, transactions_of

from icefall.webhooks.model import INACTIVE
from icefall.webhooks.retrying import DELAYS_S, Outcome

BEFORE, AFTER = blocks()[:12], blocks()[12:24]
ROUNDS_MAX = 500
LOOPS = 20  # turns of the event loop that an attempt of these tests takes at most


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def test_what_waits_goes_to_the_new_url(scene: Scene) -> None:
    async def run() -> None:
        webhook = await scene.webhook(busiest(), url="http://old/")
        await scene.put(BEFORE)
        sends = Sends(lambda url: Outcome(200) if url == "http://new/" else Outcome(503, "it answered 503"))
        await scene.delivery(sends).drain()
        count = len(sends.sent)
        assert count == len(transactions_of(busiest(), BEFORE))
        await scene.registry.change(webhook.id, scene.now, url="http://new/")
        scene.now += DELAYS_S[0]
        await scene.delivery(sends).drain()
        assert [url for url, _, _ in sends.sent] == ["http://old/"] * count + ["http://new/"] * count
        assert [body for _, body, _ in sends.sent[:count]] == [body for _, body, _ in sends.sent[count:]]

    asyncio.run(run())


def test_one_that_is_switched_off_while_it_is_sent_to_gets_the_rest_when_it_is_on_again(scene: Scene) -> None:
    async def run() -> None:
        webhook = await scene.webhook(busiest())
        await scene.put(BEFORE)
        hashes, answers, sends = transactions_of(busiest(), BEFORE), asyncio.Event(), Sends()

        async def send(url: str, body: bytes, headers: Mapping[str, str], owner: str) -> Outcome:
            await answers.wait()
            return await sends(url, body, headers, owner)

        delivery = scene.delivery(send)
        assert await delivery.round()
        await scene.registry.change(webhook.id, scene.now, status=INACTIVE)
        answers.set()
        await delivery.drain()
        assert sends.hashes() == hashes[:1], "what was being sent was taken, and nothing else was begun"
        assert (await scene.messages.counts_of(webhook.id)) == {"delivered": 1, "pending": len(hashes) - 1}
        await scene.put(AFTER)  # not matched while it is off
        await scene.registry.change(webhook.id, scene.now, status="active")
        await delivery.drain()
        assert sends.hashes() == hashes

    asyncio.run(run())


def test_addresses_that_are_removed_leave_what_was_matched_before(scene: Scene) -> None:
    async def run() -> None:
        webhook = await scene.webhook(busiest(), b"\x01" * 20)
        await scene.put(BEFORE)
        await scene.registry.change_addresses(webhook.id, (), [busiest()])
        await scene.put(AFTER)
        sends = Sends()
        await scene.delivery(sends).drain()
        assert sends.hashes() == transactions_of(busiest(), BEFORE)

    asyncio.run(run())


def test_many_webhooks_of_one_address_get_a_message_each(scene: Scene) -> None:
    async def run() -> None:
        made = [await scene.webhook(busiest(), url=f"http://r{number}/", number=number) for number in range(20)]
        await scene.put(BEFORE)
        sends = Sends()
        await scene.delivery(sends).drain()
        hashes = transactions_of(busiest(), BEFORE)
        by_url: dict[str, list[str]] = {}
        for url, body, _ in sends.sent:
            sent = msgspec.json.decode(body)
            by_url.setdefault(url, []).append(sent["event"]["transaction"]["txHash"])
            assert sent["webhookId"] == next(one.id for one in made if one.url == url)
        assert by_url == {one.url: hashes for one in made}
        assert len({headers["webhook-id"] for _, _, headers in sends.sent}) == len(sends.sent)

    asyncio.run(run())


async def rounds_of_the_others(scene: Scene, receivers: int, hanging: int) -> list[int]:
    """All receivers answer at first; then some begin to hang together. In which round each message to another one is
    taken."""
    for number in range(receivers):
        await scene.webhook(busiest(), url=f"http://r{number}/", number=number)
    hung, hangs, taken, now = asyncio.Event(), 0, Counter[int](), 0

    async def send(url: str, _body: bytes, _headers: Mapping[str, str], _owner: str) -> Outcome:
        await asyncio.sleep(0)
        if int(url[8:-1]) < hangs:
            await hung.wait()
        else:
            taken[now] += 1
        return Outcome(200)

    delivery = scene.delivery(send, per_webhook=4, total=40)
    await scene.put(BEFORE)
    await delivery.drain()
    hangs, now = hanging, 1
    taken.clear()
    await scene.put(AFTER)
    wanted = len(transactions_of(busiest(), [*BEFORE, *AFTER])) - len(transactions_of(busiest(), BEFORE))
    while taken.total() < wanted * (receivers - hanging):
        await delivery.round()
        for _ in range(LOOPS):  # all attempts that end have ended
            await asyncio.sleep(0)
        now += 1
        assert now < ROUNDS_MAX, "others never get theirs"
    hung.set()
    await delivery.close()
    return [one for one, count in taken.items() for _ in range(count)]


def test_two_thirds_that_begin_to_hang_together_hold_up_no_other(tmp_path: Path) -> None:
    """Ten of 15 receivers that answer begin to hang: nearly all messages to the others are taken as early as if none
    did, although all wait from the same moment on."""
    late = []
    for hanging in (0, 10):
        scene = Scene(tmp_path / str(hanging))
        found = sorted(asyncio.run(rounds_of_the_others(scene, 15, hanging)))
        late.append(found[int(len(found) * 0.99)])
        scene.close()
    assert late[1] <= 1.5 * late[0], late
