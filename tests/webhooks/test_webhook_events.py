"""Events: found in blocks, written with them, the same after a re-index, and marked when blocks are rolled back."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.evm.recordings import derived
from tests.webhooks.scene import CHAIN, ID, Scene, Sends, blocks, busiest, transactions_of

from icefall.compose.webhook_delivery import head_of
from icefall.evm.status import ChainStatus, encode_status
from icefall.webhooks.outbox import Outbox


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def emitter_and_topic() -> tuple[bytes, bytes]:
    """A contract that emits logs, and the first topic of one of them."""
    log = next(log for one in derived(CHAIN) for receipt in one.full.receipts for log in receipt.logs)
    return log.address, log.topics[0]


def test_every_transaction_of_an_address_is_one_message(scene: Scene) -> None:
    async def run() -> None:
        address = busiest()
        sends = Sends()
        webhook = await scene.webhook(address, b"\x77" * 20)
        await scene.put(blocks())
        await scene.delivery(sends).drain()
        assert sends.hashes() == transactions_of(address)
        assert len(sends.sent) > 20
        assert len({one["messageId"] for one in sends.bodies()}) == len(sends.sent)
        assert {one["webhookId"] for one in sends.bodies()} == {webhook.id}
        await scene.delivery(sends).drain()
        assert len(sends.sent) == len(transactions_of(address)), "nothing is sent twice"

    asyncio.run(run())


def test_the_watched_addresses_follow_any_changes(scene: Scene) -> None:
    """A block is matched with the webhooks as they are after many changes: made, changed, switched off and on again,
    with addresses that several of them have."""
    dice, chain = random.Random(4), blocks()
    known = sorted({one.address for block in chain for one in block.participants})

    async def run() -> None:
        watched: dict[str, set[bytes]] = {}
        hooks = [await scene.webhook(*dice.sample(known, 3), number=number) for number in range(6)]
        for hook in hooks:
            watched[hook.id] = set(await scene.registry.addresses(hook.id))
        outbox = Outbox(ID, scene.registry)
        for _ in range(40):
            hook = dice.choice(hooks)
            if dice.random() < 0.4:
                await scene.registry.change(hook.id, 0.0, status=dice.choice(["active", "inactive"]))
            else:
                added = dice.sample(known, 2)
                gone = dice.sample(sorted(watched[hook.id] - set(added)), 1)
                await scene.registry.change_addresses(hook.id, added, gone)
                watched[hook.id] = (watched[hook.id] | set(added)) - set(gone)
            await outbox.has_webhooks()
        active = {one.id for one in await scene.registry.all() if one.is_active}
        wanted: dict[bytes, set[str]] = {}
        for webhook, addresses in watched.items():
            for address in addresses if webhook in active else ():
                wanted.setdefault(address, set()).add(webhook)
        assert {one: set(found) for one, found in outbox._watched._by_address.items()} == wanted

    asyncio.run(run())


def test_contracts_match_by_their_logs_and_topics_narrow_it(scene: Scene) -> None:
    async def run() -> None:
        emitter, topic = emitter_and_topic()
        with_topic = [
            f"0x{receipt.tx_hash.hex()}"
            for one in derived(CHAIN)
            for receipt in one.full.receipts
            if any(log.topics and log.topics[0] == topic for log in receipt.logs)
        ]
        sends = Sends()
        signatures = f'["0x{topic.hex()}"]'
        webhook = await scene.webhook(emitter, signatures=signatures, include_logs=1)
        await scene.put(blocks())
        await scene.delivery(sends).drain()
        wanted = [one for one in transactions_of(emitter) if one in with_topic]
        assert sends.hashes() == wanted != []
        assert webhook.topics == {topic}
        logs = sends.bodies()[0]["event"]["logs"]
        receipt = next(
            receipt
            for one in derived(CHAIN)
            for receipt in one.full.receipts
            if f"0x{receipt.tx_hash.hex()}" == wanted[0]
        )
        assert [one["logIndex"] for one in logs] == [log.index for log in receipt.logs]
        transaction = sends.bodies()[0]["event"]["transaction"]
        assert transaction["receiptCumulativeGasUsed"] == str(receipt.cumulative_gas)

    asyncio.run(run())


def test_a_webhook_starts_with_the_next_block(scene: Scene) -> None:
    async def run() -> None:
        address, every = busiest(), blocks()
        half = len(every) // 2
        await scene.put(every[:half])
        webhook = await scene.webhook(address)
        await scene.put(every[half:])
        sends = Sends()
        await scene.delivery(sends).drain()
        assert sends.hashes() == transactions_of(address)[len(transactions_of(address, every[:half])) :]
        stored = await scene.registry.webhook(webhook.id)
        assert stored is not None
        assert stored.start_block == every[half].block.number

    asyncio.run(run())


def test_a_chain_that_is_indexed_again_sends_nothing_twice_and_nothing_else(scene: Scene) -> None:
    async def run() -> None:
        address, every = busiest(), blocks()
        half = len(every) // 2
        await scene.webhook(address)
        await scene.put(every[:half])
        first = Sends()
        await scene.delivery(first).drain()
        await scene.forget()
        await scene.put(every)
        second = Sends()
        await scene.delivery(second).drain()
        assert first.hashes() + second.hashes() == transactions_of(address)

    asyncio.run(run())


def test_messages_that_were_deleted_for_their_age_are_not_sent_again(scene: Scene) -> None:
    async def run() -> None:
        address, every = busiest(), blocks()
        await scene.webhook(address)
        await scene.put(every)
        await scene.delivery(Sends()).drain()
        while await scene.messages.drop_old(scene.now + 1, scene.now):
            pass
        assert await scene.messages.counts() == []
        await scene.forget()
        await scene.put(every)
        again = Sends()
        await scene.delivery(again).drain()
        assert again.sent == []

    asyncio.run(run())


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_block_that_is_rolled_back(scene: Scene, is_sent: bool) -> None:
    """Before it is sent, nothing is; after, a second message takes the first one back. If the block comes back, so does
    the event, with an ID of its own."""

    async def run() -> None:
        address, every = busiest(), blocks()
        at = next(i for i in reversed(range(len(every))) if any(p.address == address for p in every[i].participants))
        await scene.webhook(address, include_logs=1)
        await scene.put(every[: at + 1])
        before = len(transactions_of(address, every[:at]))
        gone = transactions_of(address, every[: at + 1])[before:]
        sends = Sends()
        if is_sent:
            await scene.delivery(sends).drain()
        await scene.store.roll_back(every[at - 1].block.number)
        await scene.delivery(sends).drain()
        removed = [one for one in sends.bodies() if one.get("removed")]
        kept = [one for one in sends.bodies() if not one.get("removed")]
        assert [one["event"]["transaction"]["txHash"] for one in removed] == (gone if is_sent else [])
        assert len(kept) == before + (len(gone) if is_sent else 0)
        originals = {one["messageId"]: one for one in kept}
        for one in removed:
            original = originals[one["removedMessageId"]]
            assert one["messageId"] != original["messageId"]
            assert all(log["removed"] for log in one["event"].get("logs", ()))
            assert one["event"]["transaction"] == original["event"]["transaction"]
        sent_before = len(sends.sent)
        await scene.put(every[at : at + 1])
        await scene.delivery(sends).drain()
        assert sends.hashes()[sent_before:] == gone
        ids = [one["messageId"] for one in sends.bodies()]
        assert len(set(ids)) == len(ids)

    asyncio.run(run())


def test_confirmations_hold_messages_back(scene: Scene) -> None:
    async def run() -> None:
        address, every = busiest(), blocks()
        await scene.webhook(address, confirmations=3)
        await scene.put(every)
        sends, tip = Sends(), every[-1].block.number
        await scene.delivery(sends, head=tip).drain()
        assert sends.hashes() == transactions_of(address, every[: len(every) - 3])
        await scene.delivery(sends, head=tip + 3).drain()
        assert sends.hashes() == transactions_of(address)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("head", "target", "confirming"),
    [(None, None, 0), (0, 0, 0), (4, 0, 4), (4, 2, 2), (400, 400, 0), (400, 396, 4), (400, None, 0), (400, -5, 400)],
)
def test_blocks_that_are_not_stored_yet_confirm_nothing(
    head: int | None, target: int | None, confirming: int, scene: Scene
) -> None:
    """They may replace stored ones. `head` and `target` of the indexer are counted from the newest stored block; they
    differ by the confirmations of the chain, or by more at the end of a range."""

    async def run() -> None:
        every = blocks()
        await scene.put(every)
        tip = every[-1].block.number
        reported = [None if one is None else tip + one for one in (head, target)]
        status = ChainStatus(1.0, synced=False, head=reported[0], target=reported[1])
        await scene.store.put_meta({"status": encode_status(status)})
        assert await head_of(scene.chain) == tip + confirming

    asyncio.run(run())


def test_an_inactive_webhook_matches_nothing(scene: Scene) -> None:
    async def run() -> None:
        address, every = busiest(), blocks()
        webhook = await scene.webhook(address)
        await scene.put(every[:10])
        await scene.registry.change(webhook.id, scene.now, status="inactive")
        await scene.put(every[10:])
        await scene.registry.change(webhook.id, scene.now, status="active")
        sends = Sends()
        await scene.delivery(sends).drain()
        assert sends.hashes() == transactions_of(address, every[:10])

    asyncio.run(run())
