"""Webhooks on PostgreSQL: the same statements, and two processes that claim at the same time, of which one has the role
of a reader."""

import asyncio
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from tests.postgres.server import new_prefix, reader_role, server_url
from tests.webhooks.scene import ID, Scene, Sends, blocks, busiest, transactions_of

from icefall.compose.stores import Stores
from icefall.webhooks.messages import NUMBER_MAX, MessageFilter
from icefall.webhooks.retrying import DELAYS_S, Outcome


async def deliver(owner: Scene, reader: Scene) -> None:
    address, every = busiest(), blocks()
    await reader.webhook(address)
    await reader.registry.change_addresses(f"{1:08d}-0000-4000-8000-000000000000", [b"\x77" * 20])
    await owner.put(every[:-2])
    first, second = Sends(), Sends()
    await asyncio.gather(owner.delivery(first).drain(), reader.delivery(second).drain())
    assert sorted(first.hashes() + second.hashes()) == sorted(transactions_of(address, every[:-2]))
    await owner.store.roll_back(every[-20].block.number)
    failing = Sends(lambda _: Outcome(500, "it answered 500"))
    await reader.delivery(failing).drain()
    removed = len(failing.sent)
    assert removed
    reader.now += DELAYS_S[0]
    await reader.delivery(failing).drain()
    assert len(failing.sent) == 2 * removed
    webhook = (await reader.registry.all())[0]
    listed = await reader.messages.page(webhook.id, MessageFilter(), NUMBER_MAX, 1000)
    assert len(listed) == len(first.sent) + len(second.sent) + removed
    assert [one.error for one in await reader.messages.attempts(failing.sent[0][2]["webhook-id"])] == [
        "it answered 500"
    ] * 2
    assert await reader.registry.page("", "active", None, 10) == [webhook]
    assert await reader.messages.replay(webhook.id, [listed[-1].id], reader.now) == 1
    every_one = MessageFilter(low=listed[-1].block)
    assert await reader.messages.replay_range(webhook.id, every_one, 2, reader.now) == 2
    await reader.messages.add_test(webhook.id, webhook.chain_id, "test", b"{}", reader.now)
    assert (await reader.messages.state()).pending == removed + 4
    assert {one.status for one in await reader.messages.counts()} == {"pending", "delivered", "dropped"}
    assert len(await reader.secrets.valid("")) == 1
    await reader.secrets.rotate("")
    await reader.messages.drop_old(reader.now + 1, reader.now)
    again = await reader.registry.change(webhook.id, reader.now, status="inactive", reason="it answered 410")
    assert not again.is_active


def test_an_owner_and_the_role_of_a_reader_deliver_every_message_once(tmp_path: Path) -> None:
    """All statements about webhooks are run in the role that docs/scaling.md describes. It gains no other rights."""
    prefix = new_prefix()
    with closing(Scene(tmp_path, Stores(tmp_path, server_url(), prefix))) as owner:
        url = reader_role(prefix, ID)
        with closing(Scene(tmp_path, Stores(tmp_path, url, prefix), indexes=False)) as reader:
            asyncio.run(deliver(owner, reader))
        for forbidden in (
            f"insert into {prefix}_access.api_key (hash, name, tier, created) values ('{uuid4()}', 'own', 'pro', 1)",
            f"update {prefix}_access.api_key set tier = 'unlimited'",
            f"update {prefix}_access.secret set value = 'x'",
            f"update {prefix}_chain_{ID}.webhook_outbox set webhook = ''",
            f"delete from {prefix}_chain_{ID}.webhook_outbox",
        ):
            with psycopg.connect(url) as role, pytest.raises(psycopg.errors.InsufficientPrivilege):
                role.execute(forbidden.encode())
