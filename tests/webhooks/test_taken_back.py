"""Messages about blocks that are rolled back: each is followed by one that takes it back, never sent after that, and
sent again if its block comes back, whatever is forgotten and indexed anew meanwhile."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.webhooks.scene import Scene, Sends, blocks, busiest, transactions_of

from icefall.evm.model import BlockRows
from icefall.webhooks.messages import NUMBER_MAX, MessageFilter
from icefall.webhooks.model import DROPPED, INACTIVE
from icefall.webhooks.retrying import LEASE_S, Outcome

EVERY = MessageFilter()
GONE = Outcome(410, "it answered 410")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def with_one_event() -> tuple[list[BlockRows], list[str]]:
    """The first blocks of the chain, of which only the last one has events, and the transactions of these."""
    every = blocks()
    end = next(end for end in range(2, len(every)) if transactions_of(busiest(), every[:end]))
    return every[:end], transactions_of(busiest(), every[:end])


async def replay_all(scene: Scene, webhook: str) -> int:
    return await scene.messages.replay_range(webhook, EVERY, 1000, scene.now)


def news(sends: Sends) -> list[tuple[bool, str]]:
    """What was sent: whether it takes back, and the transaction."""
    return [(one.get("removed", False), one["event"]["transaction"]["txHash"]) for one in sends.bodies()]


async def roll_back_last(scene: Scene, of: list[BlockRows]) -> None:
    await scene.store.roll_back(of[-2].block.number)


def test_what_takes_back_a_message_follows_the_attempt_that_is_being_made(scene: Scene) -> None:
    """A receiver that is slow with the message must not learn first that it did not happen."""

    async def run() -> None:
        of, gone = with_one_event()
        await scene.webhook(busiest())
        await scene.put(of)
        answers, sends = asyncio.Event(), Sends()

        async def send(url: str, body: bytes, headers: Mapping[str, str], owner: str) -> Outcome:
            await answers.wait()
            return await sends(url, body, headers, owner)

        slow, other = scene.delivery(send), scene.delivery(sends)
        assert await slow.round()
        await roll_back_last(scene, of)
        await other.drain()
        assert not any(taken_back for taken_back, _ in news(sends)), "the attempt is still open"
        answers.set()
        await slow.drain()
        await other.drain()
        assert [one for one in news(sends) if one[1] == gone[0]] == [(False, gone[0]), (True, gone[0])]

    asyncio.run(run())


def test_it_does_not_wait_for_ever_for_a_process_that_was_killed(scene: Scene) -> None:
    async def run() -> None:
        of, gone = with_one_event()
        await scene.webhook(busiest())
        await scene.put(of)

        async def hangs(*_: object) -> Outcome:
            await asyncio.Event().wait()
            raise AssertionError

        sends = Sends()
        assert await scene.delivery(hangs).round()
        await roll_back_last(scene, of)
        scene.now += LEASE_S
        await scene.delivery(sends).drain()
        assert (True, gone[0]) in news(sends)
        assert (False, gone[0]) not in news(sends)

    asyncio.run(run())


def test_a_message_that_was_given_up_is_not_sent_after_its_block_is_gone(scene: Scene) -> None:
    """The webhook was off when the block was rolled back, and is on again: the receiver learns only what is true."""

    async def run() -> None:
        of, gone = with_one_event()
        webhook = await scene.webhook(busiest())
        await scene.put(of)
        sends = Sends(lambda _: GONE)
        await scene.delivery(sends).drain()
        assert (await scene.registry.all())[0].status == INACTIVE
        await roll_back_last(scene, of)
        await scene.delivery(sends).drain()
        tried = len(sends.sent)
        sends.answer = lambda _: Outcome(200)
        await scene.registry.change(webhook.id, scene.now, status="active", reason="")
        await scene.delivery(sends).drain()
        assert (False, gone[0]) in news(sends)[:tried]
        assert (False, gone[0]) not in news(sends)[tried:]
        assert (True, gone[0]) in news(sends)[tried:]

    asyncio.run(run())


def test_a_message_that_was_taken_back_is_not_replayed(scene: Scene) -> None:
    async def run() -> None:
        of, gone = with_one_event()
        webhook = await scene.webhook(busiest())
        await scene.put(of)
        sends = Sends()
        await scene.delivery(sends).drain()
        first = next(one["messageId"] for one in sends.bodies() if one["event"]["transaction"]["txHash"] == gone[0])
        await roll_back_last(scene, of)
        await scene.delivery(sends).drain()
        shown = len(sends.sent)
        assert await scene.messages.replay(webhook.id, [first], scene.now) == 0
        assert await replay_all(scene, webhook.id) == shown - len(gone)
        await scene.delivery(sends).drain()
        assert (False, gone[0]) not in news(sends)[shown:]
        statuses = {one.id: one.status for one in await scene.messages.page(webhook.id, EVERY, NUMBER_MAX, 100)}
        assert statuses[first] == DROPPED

    asyncio.run(run())


def test_a_block_that_is_there_again_when_the_chain_is_indexed_anew(scene: Scene) -> None:
    """The receiver knows that it is gone, so it must learn that it is there: nothing of the new index says so."""

    async def run() -> None:
        of, gone = with_one_event()
        await scene.webhook(busiest())
        await scene.put(of)
        sends = Sends()
        await scene.delivery(sends).drain()
        await roll_back_last(scene, of)
        await scene.delivery(sends).drain()
        for _ in range(2):
            await scene.forget()
            await scene.put(of)
            await scene.delivery(sends).drain()
        said = [taken_back for taken_back, tx in news(sends) if tx == gone[0]]
        assert said == [False, True, False], "sent, taken back, and sent again once"
        await roll_back_last(scene, of)
        await scene.delivery(sends).drain()
        assert [taken_back for taken_back, tx in news(sends) if tx == gone[0]] == [False, True, False, True]
        ids = [one["messageId"] for one in sends.bodies()]
        assert len(ids) == len(set(ids))

    asyncio.run(run())


def test_a_block_that_came_back_before_a_message_was_made_is_sent_once(scene: Scene) -> None:
    async def run() -> None:
        of, gone = with_one_event()
        await scene.webhook(busiest())
        await scene.put(of)
        await roll_back_last(scene, of)
        await scene.put(of[-1:])
        sends = Sends()
        await scene.delivery(sends).drain()
        await scene.forget()
        await scene.put(of)
        await scene.delivery(sends).drain()
        assert [one for one in news(sends) if one[1] == gone[0]] == [(False, gone[0])]

    asyncio.run(run())
