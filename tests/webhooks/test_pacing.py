"""How many attempts each webhook may have: receivers that hang or fail take no place from those that answer."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.webhooks.scene import ID, Scene, Sends, blocks, busiest, transactions_of

from icefall.webhooks.model import ACTIVE, EVM_ACTIVITY, Webhook
from icefall.webhooks.pacing import SLOW_S, Pacing
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


def take(pacing: Pacing, one: Webhook, *, is_taken: bool = True, took_s: float = 0.0) -> None:
    pacing.end(one.id, pacing.begin(one.id, 0.0), is_taken=is_taken, took_s=took_s)


def test_the_number_of_attempts_grows_with_what_is_taken_and_falls_with_a_failure() -> None:
    pacing, one, ordered = Pacing(8, 512), webhook("one"), webhook("two", ordered=True)
    seen = []
    for is_taken in (True, True, True, True, False, True):
        seen.append(pacing.room(one))
        for which in (one, ordered):
            take(pacing, which, is_taken=is_taken)
        assert pacing.room(ordered) == 1
    assert seen == [1, 2, 4, 8, 8, 1]
    number = pacing.begin(one.id, 0.0)
    assert pacing.room(one) == 1
    pacing.cancel(one.id, number)
    assert pacing.room(one) == 2


def test_those_that_are_not_known_to_answer_share_a_quarter_of_the_places() -> None:
    pacing, good = Pacing(8, 20), webhook("good")
    for _ in range(3):
        take(pacing, good)
    hanging = [webhook(f"hangs{number:02}") for number in range(30)]
    begun = [one for one in pacing.in_turn([*hanging, good], 0.0) if pacing.room(one) and pacing.begin(one.id, 0.0)]
    assert begun == [good, *hanging[:5]]
    assert [pacing.room(one) for one in hanging] == [0] * 30
    assert pacing.room(good) == 7
    assert pacing.in_turn([*hanging, good], 0.0) == [good]


def test_those_that_were_tried_longest_ago_are_tried_first() -> None:
    """However many hang all the time, a new one gets its turn, and then each of them again."""
    pacing, every = Pacing(8, 4), [webhook(str(number)) for number in range(5)]
    turns = []
    for _ in range(7):
        one = pacing.in_turn(every, 0.0)[0]
        turns.append(one.id)
        take(pacing, one, is_taken=False)
    assert turns == ["0", "1", "2", "3", "4", "0", "1"]


def test_one_that_does_not_answer_for_a_second_becomes_slow_with_all_its_attempts() -> None:
    pacing, one, other = Pacing(8, 16), webhook("one"), webhook("other")
    for which in (one, one, one, other):
        take(pacing, which)
    pacing.in_turn([one], 0.0)
    attempts = [pacing.begin(one.id, number / 10) for number in range(8)]
    assert (pacing.room(one), pacing.room(other)) == (0, 0), "all fast places are taken"
    assert pacing.in_turn([one, other], SLOW_S) == []
    assert pacing.in_turn([one, other], SLOW_S + 0.05) == [other]
    assert (pacing.room(one), pacing.room(other)) == (0, 2)
    pacing.end(one.id, attempts[1], is_taken=True, took_s=0.1)
    assert pacing.in_turn([one, other], SLOW_S + 0.05) == [other], "one that answers now and then keeps no fast place"
    for number in (attempts[0], *attempts[2:]):
        pacing.end(one.id, number, is_taken=True, took_s=0.1)
    assert pacing.in_turn([one, other], SLOW_S + 0.05) == [other, one]
    assert pacing.room(one) == 4, "and it has its attempts again"


def test_one_that_always_answers_late_keeps_its_attempts_among_the_slow_places() -> None:
    pacing, one = Pacing(8, 64), webhook("one")
    for _ in range(3):
        take(pacing, one, took_s=3.0)
    assert pacing.in_turn([one], 0.0) == [one]
    assert pacing.room(one) == 8
    for _ in range(8):
        pacing.begin(one.id, 0.0)
    assert pacing._used == {True: 0, False: 8}


@pytest.mark.parametrize(("webhooks", "hanging"), [(150, 100), (600, 400)])
def test_many_that_begin_to_hang_together_take_only_their_share(webhooks: int, hanging: int) -> None:
    """All have answered, all have messages without end, and some hang from one moment on: the others never wait."""
    pacing, every = Pacing(8, 1024), [webhook(str(number)) for number in range(webhooks)]
    for _ in range(4):
        for one in every:
            take(pacing, one)
    for tick in range(41):  # each a twentieth of a second, in which all others answer
        begun = []
        for one in pacing.in_turn(every, tick / 20):
            begun += [(one, pacing.begin(one.id, tick / 20)) for _ in range(pacing.room(one))]
        answered = [pair for pair in begun if int(pair[0].id) >= hanging]
        served = len({one.id for one, _ in answered})
        late = tick / 20 > SLOW_S
        assert served == webhooks - hanging if late or webhooks < 512 else served >= 512 - hanging
        assert pacing._open.total() <= 1024
        for one, number in answered:
            pacing.end(one.id, number, is_taken=True, took_s=0.05)
    assert pacing.room(every[-1]) == min(8, 512 // (webhooks - hanging))


def test_places_are_counted_right_whatever_happens() -> None:
    """Against a list of the open attempts, over many drawn steps."""
    dice, pacing, now = random.Random(7), Pacing(4, 16), 0.0
    every = [webhook(str(number), ordered=number == 3) for number in range(8)]
    open_now: list[tuple[str, int, float]] = []
    fast: set[str] = set()
    for _ in range(5_000):
        now += dice.random() / 10
        one = dice.choice(every)
        pacing.in_turn(every, now)
        fast -= {name for name, _, began in open_now if began + SLOW_S < now}
        if open_now and dice.random() < 0.5:
            name, number, _ = open_now.pop(dice.randrange(len(open_now)))
            if dice.random() < 0.1:
                pacing.cancel(name, number)
            else:
                is_taken, took_s = dice.random() < 0.6, dice.choice((0.1, 2.0))
                has_late = any(other == name and began + SLOW_S < now for other, _, began in open_now)
                is_fast = is_taken and took_s < SLOW_S and not has_late
                (fast.add if is_fast else fast.discard)(name)
                pacing.end(name, number, is_taken=is_taken, took_s=took_s)
        elif pacing.room(one) > 0:
            open_now.append((one.id, pacing.begin(one.id, now), now))
        used = sum(name in fast for name, _, _ in open_now)
        assert pacing._fast == fast
        assert pacing._used == {True: used, False: len(open_now) - used}
        assert pacing._open.total() == len(open_now) <= 16
        assert len(pacing._begun) <= 100, "those that ended are forgotten"


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
