"""Messages that are sent again, and what blocks that are rolled back and changes at the same time do to them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.webhooks.scene import Scene, Sends, blocks, busiest, transactions_of

from icefall.webhooks.messages import NUMBER_MAX, MessageFilter
from icefall.webhooks.model import DROPPED, PENDING, Message
from icefall.webhooks.retrying import Outcome

EVERY = MessageFilter()
REFUSED = Outcome(503, "it answered 503")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


async def listed(scene: Scene, webhook: str) -> list[Message]:
    return await scene.messages.page(webhook, EVERY, NUMBER_MAX, 1000)


def test_a_message_that_waits_to_be_sent_again_is_taken_back_with_its_block(scene: Scene) -> None:
    """The receiver has it already, so it must learn that the block is gone, although no attempt was made since."""

    async def run() -> None:
        address, every, sends = busiest(), blocks(), Sends()
        webhook = await scene.webhook(address)
        await scene.put(every[:12])
        await scene.delivery(sends).drain()
        sent = sends.hashes()
        assert sent == transactions_of(address, every[:12])
        assert await scene.messages.replay_range(webhook.id, EVERY, 1000, scene.now) == len(sent)
        await scene.store.roll_back(every[0].block.number)
        await scene.delivery(sends).drain()
        again = sends.bodies()[len(sent) :]
        gone = transactions_of(address, every[:12])[len(transactions_of(address, every[:1])) :]
        assert sorted(one["event"]["transaction"]["txHash"] for one in again if one.get("removed")) == sorted(gone)
        assert [one for one in again if not one.get("removed")] == []

    asyncio.run(run())


def test_what_was_dropped_with_its_block_is_not_sent_again(scene: Scene) -> None:
    async def run() -> None:
        address, every, sends = busiest(), blocks(), Sends(lambda _: REFUSED)
        webhook = await scene.webhook(address)
        await scene.put(every[:12])
        await scene.delivery(sends).drain()
        await scene.store.roll_back(every[0].block.number)
        await scene.delivery(sends).drain()
        dropped = [one for one in await listed(scene, webhook.id) if one.status == DROPPED]
        assert dropped
        assert await scene.messages.replay(webhook.id, [one.id for one in dropped], scene.now) == 0
        await scene.messages.replay_range(webhook.id, EVERY, 1000, scene.now)
        assert {one.id for one in await listed(scene, webhook.id) if one.status == DROPPED} == {
            one.id for one in dropped
        }

    asyncio.run(run())


def test_the_newest_messages_of_a_range_are_sent_again(scene: Scene) -> None:
    async def run() -> None:
        webhook = await scene.webhook(busiest())
        other = await scene.webhook(busiest(), number=2)
        await scene.put(blocks())
        await scene.delivery(Sends()).drain()
        found = await listed(scene, webhook.id)
        blocks_of = sorted({one.block for one in found})
        which = MessageFilter(low=blocks_of[1], high=blocks_of[-1])
        wanted = [one.id for one in found if blocks_of[1] <= one.block < blocks_of[-1]]
        assert await scene.messages.replay_range(webhook.id, which, 5, scene.now) == 5
        assert [one.id for one in await listed(scene, webhook.id) if one.status == PENDING] == wanted[:5]
        assert await scene.messages.replay_range(webhook.id, which, 1000, scene.now) == len(wanted) - 5
        assert await scene.messages.replay(other.id, wanted, scene.now) == 0, "messages of another webhook"

    asyncio.run(run())


def test_changes_at_the_same_time_keep_one_another(scene: Scene) -> None:
    """A webhook that is switched off while its owner renames it stays off, with its new name."""

    async def run() -> None:
        webhook = await scene.webhook(busiest(), name="Before")
        await asyncio.gather(
            scene.registry.change(webhook.id, scene.now, name="After"),
            scene.registry.change(webhook.id, scene.now, status="inactive", reason="gone"),
        )
        found = await scene.registry.webhook(webhook.id)
        assert found is not None
        assert (found.name, found.status, found.reason) == ("After", "inactive", "gone")

    asyncio.run(run())
