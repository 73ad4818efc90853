"""Webhooks on PostgreSQL: the same statements, and two processes that claim at the same time."""

import asyncio
from pathlib import Path

from tests.postgres.server import new_prefix, server_url
from tests.webhooks.scene import Scene, Sends, blocks, busiest, transactions_of

from icefall.compose.stores import Stores
from icefall.webhooks.messages import NUMBER_MAX, MessageFilter
from icefall.webhooks.retrying import DELAYS_S, Outcome


def test_two_processes_deliver_every_message_once(tmp_path: Path) -> None:
    async def run(scene: Scene) -> None:
        address, every = busiest(), blocks()
        await scene.webhook(address)
        await scene.registry.change_addresses(f"{1:08d}-0000-4000-8000-000000000000", [b"\x77" * 20])
        await scene.put(every[:-2])
        first, second = Sends(), Sends()
        await asyncio.gather(scene.delivery(first).drain(), scene.delivery(second).drain())
        assert sorted(first.hashes() + second.hashes()) == sorted(transactions_of(address, every[:-2]))
        await scene.store.roll_back(every[-20].block.number)
        failing = Sends(lambda _: Outcome(500, "it answered 500"))
        await scene.delivery(failing).drain()
        removed = len(failing.sent)
        assert removed
        scene.now += DELAYS_S[0]
        await scene.delivery(failing).drain()
        assert len(failing.sent) == 2 * removed
        webhook = (await scene.registry.all())[0]
        listed = await scene.messages.page(webhook.id, MessageFilter(), NUMBER_MAX, 1000)
        assert len(listed) == len(first.sent) + len(second.sent) + removed
        assert [one.error for one in await scene.messages.attempts(failing.sent[0][2]["webhook-id"])] == [
            "it answered 500"
        ] * 2
        assert await scene.registry.page("", "active", None, 10) == [webhook]
        assert await scene.messages.replay(webhook.id, [listed[-1].id], scene.now) == 1
        every_one = MessageFilter(low=listed[-1].block)
        assert await scene.messages.replay_range(webhook.id, every_one, 2, scene.now) == 2
        await scene.messages.add_test(webhook.id, webhook.chain_id, "test", b"{}", scene.now)
        assert (await scene.messages.state()).pending == removed + 4
        assert {one.status for one in await scene.messages.counts()} == {"pending", "delivered"}
        assert len(await scene.secrets.valid("")) == 1
        await scene.secrets.rotate("")
        await scene.messages.drop_old(scene.now + 1, scene.now)

    scene = Scene(tmp_path, Stores(tmp_path, server_url(), new_prefix()))
    try:
        asyncio.run(run(scene))
    finally:
        scene.close()
