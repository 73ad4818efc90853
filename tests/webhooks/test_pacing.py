"""How many attempts each webhook may have: receivers that hang or fail take no place from those that answer."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.webhooks.scene import ID, Scene, Sends, blocks, busiest, transactions_of

from icefall.webhooks.model import ACTIVE, EVM_ACTIVITY, Webhook
from icefall.webhooks.pacing import Pacing
from icefall.webhooks.registry import SQL
from icefall.webhooks.retrying import Outcome

FAILED = Outcome(503, "it answered 503")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def webhook(name: str, *, ordered: bool = False) -> Webhook:
    return Webhook(name, "", EVM_ACTIVITY, ID, "u", "", "", ACTIVE, "", 0, 0, "[]", 0, int(ordered), 0, 1)


def test_the_number_of_attempts_grows_with_what_is_taken_and_falls_with_a_failure() -> None:
    pacing, one, ordered = Pacing(8, 512), webhook("one"), webhook("two", ordered=True)
    seen = []
    for is_taken in (True, True, True, True, False, True):
        seen.append(pacing.room(one))
        for which in (one, ordered):
            pacing.begin(which.id)
            pacing.end(which.id, is_taken=is_taken)
        assert pacing.room(ordered) == 1
    assert seen == [1, 2, 4, 8, 8, 1]
    pacing.begin(one.id)
    assert pacing.room(one) == 1
    pacing.cancel(one.id)
    assert pacing.room(one) == 2


def test_those_that_are_not_known_to_answer_share_half_of_the_places() -> None:
    pacing, good = Pacing(8, 20), webhook("good")
    for _ in range(3):
        pacing.begin(good.id)
        pacing.end(good.id, is_taken=True)
    hanging = [webhook(f"hangs{number:02}") for number in range(30)]
    for one in hanging:
        if pacing.room(one):
            pacing.begin(one.id)
    assert [pacing.room(one) for one in hanging] == [0] * 30
    assert pacing.room(good) == 8
    assert pacing.in_turn([*hanging, good]) == [good]


def test_places_are_counted_right_whatever_happens() -> None:
    """Against a list of the open attempts, over many drawn steps."""
    dice, pacing = random.Random(7), Pacing(4, 16)
    every = [webhook(str(number), ordered=number == 3) for number in range(8)]
    open_now: list[str] = []
    known: set[str] = set()
    for _ in range(5_000):
        one = dice.choice(every)
        if open_now and dice.random() < 0.5:
            name = open_now.pop(dice.randrange(len(open_now)))
            if dice.random() < 0.1:
                pacing.cancel(name)
            else:
                is_taken = dice.random() < 0.6
                (known.add if is_taken else known.discard)(name)
                pacing.end(name, is_taken=is_taken)
        elif pacing.room(one) > 0:
            pacing.begin(one.id)
            open_now.append(one.id)
        assert pacing._open.total() == len(open_now) <= 16
        assert pacing._unknown == sum(name not in known for name in open_now)
        assert pacing._limits.keys() == known


# -- in the store ----------------------------------------------------------------------------------------------------


def test_what_is_due_is_found_without_reading_what_waits(scene: Scene) -> None:
    """Each query of a step is a seek in an index, also where a receiver that fails has a hundred thousand messages."""
    where = {"now": 0.0, "webhook": "x", "count": 8, "confirmed": 1}
    for statement in (SQL.due_webhooks, SQL.due_messages, SQL.oldest_message):
        given = {name: value for name, value in where.items() if f":{name}" in statement}
        plan = " / ".join(row[3] for row in scene.reader.read(f"explain query plan {statement}", given))
        assert "SEARCH webhook_message USING" in plan
        assert "SCAN webhook_message" not in plan
        assert "TEMP B-TREE" not in plan


def test_a_receiver_that_fails_with_many_messages_costs_the_others_nothing(scene: Scene) -> None:
    """It has one attempt at a time; the others get theirs in as many steps as without it."""
    wanted = transactions_of(busiest())

    async def run() -> tuple[int, int]:
        await scene.webhook(busiest(), url="http://fails/", number=1)
        await scene.webhook(busiest(), url="http://takes/", number=2)
        await scene.put(blocks())
        sends = Sends(lambda url: FAILED if url == "http://fails/" else Outcome(200))
        delivery, taken, failed = scene.delivery(sends, per_webhook=8), 0, 0
        while taken < len(wanted):
            await delivery.round()
            await asyncio.gather(*delivery._tasks)
            urls = [url for url, _, _ in sends.sent]
            assert urls.count("http://fails/") - failed <= 1
            taken, failed = urls.count("http://takes/"), urls.count("http://fails/")
        await delivery.close()
        return taken, failed

    taken, failed = asyncio.run(run())
    assert taken == len(wanted)
    assert 0 < failed <= 3 + len(wanted) // 8 + 1, "one in each step: 1, 2, 4 and then 8 messages to the other"


def test_a_test_is_sent_while_other_messages_wait_for_confirmations(scene: Scene) -> None:
    async def run() -> None:
        made = await scene.webhook(busiest(), confirmations=1_000_000)
        await scene.put(blocks())
        sends = Sends()
        await scene.delivery(sends, head=2_000).drain()
        assert sends.sent == []
        await scene.messages.add_test(made.id, made.chain_id, "test", b"{}", scene.now)
        await scene.delivery(sends, head=2_000).drain()
        assert [body for _, body, _ in sends.sent] == [b"{}"]

    asyncio.run(run())
