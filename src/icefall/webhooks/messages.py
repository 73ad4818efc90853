"""The messages of webhooks in the access store: copied from the outboxes of chains, claimed by the process that
sends them, and listed.

The access store survives `icefall forget`. A message has the ID of its event, so a chain that is indexed again adds
nothing that is there already.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import msgspec

from icefall.db.engine import Reader, Transaction
from icefall.evm.encoding import block_of
from icefall.webhooks.model import (
    ACTIVITY,
    DROPPED,
    PENDING,
    REMOVED,
    TEST,
    Attempt,
    Message,
    OutboxEvent,
    Webhook,
    message_id,
    removal_id,
)
from icefall.webhooks.registry import SQL, WebhookWriter
from icefall.webhooks.retrying import LEASE_S
from icefall.webhooks.signing import canonical_json

NUMBER_MAX = 2**62
BLOCK_MAX = 2**62
SEEN_AT = "seen_at"  # the counter that is a time
_DROPPED_AT_ONCE = 1_000


class Finished(NamedTuple):
    """The end of an attempt, as it is stored. `next_at` is meant for a message that stays pending."""

    message: Message  # as it was claimed
    status: str
    next_at: float
    attempt: Attempt


class MessageFilter(msgspec.Struct, frozen=True):
    """Which messages of a webhook are meant: blocks from `low` on and below `high`, and the same for times."""

    status: str = ""
    first: float = 0.0
    last: float = 2.0**62
    low: int = 0
    high: int = BLOCK_MAX


class MessageCount(NamedTuple):
    webhook: str
    status: str
    total: int
    oldest: float


class DeliveryState(NamedTuple):
    """How many webhooks there are, and are active; how many messages wait, since when the oldest does, and the counters
    by name. `behind` are the events of each chain that are not messages yet."""

    webhooks: int
    active: int
    pending: int
    oldest: float | None
    counters: dict[str, int]
    behind: dict[str, int] = {}  # noqa: RUF012 - never changed


class WebhookMessages:
    """Reads with `reader`; writes with `store`."""

    def __init__(self, reader: Reader, store: WebhookWriter) -> None:
        self._reader = reader
        self._store = store

    # -- from the outbox -----------------------------------------------------------------------------------------

    async def cursor(self, chain_id: str, outbox: str) -> int:
        """How far this outbox was read; 0 for one that is not known."""
        rows = await self._reader.rows(SQL.webhook_cursor_read, {"chain_id": chain_id})
        return int(rows[0][1]) if rows and rows[0][0] == outbox else 0

    async def take_over(self, chain_id: str, outbox: str, events: Sequence[OutboxEvent], now: float) -> None:
        """Make messages of events, and note how far the outbox was read. Safe to repeat, by any number of processes."""

        def change(tx: Transaction) -> None:
            tx.run(SQL.add_webhook_cursor, {"chain_id": chain_id})
            ((known, sequence, number),) = tx.rows(SQL.webhook_cursor, {"chain_id": chain_id})
            done = sequence if known == outbox else 0
            for event in events:
                if event.sequence > done:
                    number = _take_over(tx, chain_id, event, number, now)
            newest = max(done, events[-1].sequence)
            where = {"chain_id": chain_id, "outbox": outbox, "sequence": newest, "number": number}
            tx.run(SQL.put_webhook_cursor, where)

        await self._store.write(change)

    # -- delivery ------------------------------------------------------------------------------------------------

    async def due_webhooks(self, now: float) -> list[Webhook]:
        """The active webhooks that have something to send."""
        return [Webhook(*row) for row in await self._reader.rows(SQL.due_webhooks, {"now": now})]

    async def due(self, webhook: str, now: float, count: int, confirmed: int) -> list[Message]:
        """The messages of a webhook that may be tried now, about blocks up to `confirmed`: those first that wait for
        the longest time."""
        where = {"webhook": webhook, "now": now, "count": count, "confirmed": confirmed}
        return [message_of(row) for row in await self._reader.rows(SQL.due_messages, where)]

    async def due_in_order(self, webhook: str, now: float, confirmed: int) -> list[Message]:
        """The oldest message of a webhook, if it may be tried now."""
        rows = await self._reader.rows(SQL.oldest_message, {"webhook": webhook})
        oldest = [message_of(row) for row in rows]
        return [one for one in oldest if one.next_at <= now and (one.kind != ACTIVITY or one.block <= confirmed)]

    async def claim(self, messages: Sequence[Message], until: float) -> list[Message]:
        """Begin attempts; the messages that no other process has claimed meanwhile."""

        def change(tx: Transaction) -> list[Message]:
            claimed = []
            for one in messages:
                where = {"id": one.id, "attempts": one.attempts, "next_at": one.next_at, "until": until}
                if tx.run(SQL.claim_message, where):
                    claimed.append(msgspec.structs.replace(one, attempts=one.attempts + 1, next_at=until))
            return claimed

        return await self._store.write(change)

    async def put_bodies(self, bodies: Mapping[str, bytes]) -> set[str]:
        """Store what is sent, before it is: every attempt sends the same bytes. Return the messages that may be sent:
        not those that were dropped meanwhile."""

        def change(tx: Transaction) -> set[str]:
            return {one for one, body in bodies.items() if tx.run(SQL.put_body, {"id": one, "body": body})}

        return await self._store.write(change)

    async def finish(self, finished: Sequence[Finished]) -> None:
        def change(tx: Transaction) -> None:
            for one in finished:
                ended = one.status != PENDING
                where = {"id": one.message.id, "attempts": one.message.attempts, "status": one.status}
                times = {"next_at": one.next_at, "done_at": one.attempt.at if ended else None}
                if not tx.run(SQL.finish_attempt, where | times):
                    tx.run(SQL.release_removal, _release(one))
                attempt = msgspec.structs.asdict(one.attempt)
                del attempt["number"]
                tx.run(SQL.add_attempt, {"message": one.message.id, **attempt})
            counts = Counter("attempts_failed" if one.attempt.error else "attempts_taken" for one in finished)
            counts.update(f"messages_{one.status}" for one in finished if one.status != PENDING)
            tx.run_many(SQL.add_to_counter, [{"name": name, "value": count} for name, count in sorted(counts.items())])

        await self._store.write(change)

    async def drop(self, message: Message, now: float) -> None:
        """Give up a message that was not sent: its block was rolled back."""
        await self._store.write(lambda tx: tx.run(SQL.drop_unsent, {"id": message.id, "now": now}))

    async def postpone(self, message: Message, until: float) -> None:
        """Undo a claim: the message cannot be sent yet."""
        where = {"id": message.id, "attempts": message.attempts, "next_at": until}
        await self._store.write(lambda tx: tx.run(SQL.postpone_message, where))

    async def drop_old(self, before: float, now: float) -> int:
        """Delete some of the messages that ended before a time, with their attempts; return how many. Those that were
        pending all the time end."""
        where = {"before": before, "count": _DROPPED_AT_ONCE}

        def change(tx: Transaction) -> int:
            tx.run(SQL.expire_messages, {"before": before, "now": now})
            settled = tx.rows(SQL.settled_by_webhook, {"before": before})
            tx.run_many(SQL.put_settled, [{"webhook": webhook, "block": block} for webhook, block in settled])
            tx.run(SQL.drop_old_attempts, where)
            return tx.run(SQL.drop_old_messages, where)

        return await self._store.write(change)

    # -- lists, tests and replays --------------------------------------------------------------------------------

    async def message(self, message: str) -> Message | None:
        rows = await self._reader.rows(SQL.message, {"id": message})
        return message_of(rows[0]) if rows else None

    async def page(self, webhook: str, which: MessageFilter, before: int, count: int) -> list[Message]:
        """List messages of a webhook with a number below `before`, newest first."""
        where = {"webhook": webhook, "before": before, "count": count, **msgspec.structs.asdict(which)}
        return [message_of(row) for row in await self._reader.rows(SQL.messages_before, where)]

    async def attempts(self, message: str) -> list[Attempt]:
        return [Attempt(*row) for row in await self._reader.rows(SQL.attempts_of, {"message": message})]

    async def counts(self) -> list[MessageCount]:
        return [MessageCount(*row) for row in await self._reader.rows(SQL.message_counts)]

    async def counts_of(self, webhook: str) -> dict[str, int]:
        """The number of messages of a webhook that are stored, by status."""
        return dict(await self._reader.rows(SQL.message_counts_of, {"webhook": webhook}))

    async def oldest_pending(self, webhook: str) -> float | None:
        """Return when the oldest message that waits was made; None if none waits."""
        rows = await self._reader.rows(SQL.oldest_pending_of, {"webhook": webhook})
        return float(rows[0][0]) if rows else None

    async def note_seen(self, now: float) -> None:
        """Note that messages are being delivered."""
        await self._store.write(lambda tx: tx.run(SQL.put_counter, {"name": SEEN_AT, "value": int(now)}))

    async def state(self) -> DeliveryState:
        return await state_of(self._reader)

    async def pending(self, webhook: str) -> int:
        return int((await self._reader.rows(SQL.pending_of, {"webhook": webhook}))[0][0])

    async def replay(self, webhook: str, messages: Sequence[str], now: float) -> int:
        """Send messages of a webhook again that were delivered or failed; return how many."""

        def change(tx: Transaction) -> int:
            where = {"webhook": webhook, "now": now}
            return sum(tx.run(SQL.replay_message, {"id": one, **where}) for one in messages)

        return await self._store.write(change)

    async def replay_range(self, webhook: str, which: MessageFilter, count: int, now: float) -> int:
        """Send the newest messages of a range again, whatever their status in `which`; return how many."""
        where = {"webhook": webhook, "count": count, "now": now, **msgspec.structs.asdict(which)}
        del where["status"]
        return await self._store.write(lambda tx: tx.run(SQL.replay_range, where))

    async def add_test(self, webhook: str, chain_id: str, message: str, body: bytes, now: float) -> None:
        """Add a message that is about no event."""

        def change(tx: Transaction) -> None:
            tx.run(SQL.add_webhook_cursor, {"chain_id": chain_id})
            ((outbox, sequence, number),) = tx.rows(SQL.webhook_cursor, {"chain_id": chain_id})
            tx.run(SQL.add_message, _row(message, "", webhook, number + 1, TEST, chain_id, 0, b"", now, body))
            where = {"chain_id": chain_id, "outbox": outbox, "sequence": sequence, "number": number + 1}
            tx.run(SQL.put_webhook_cursor, where)

        await self._store.write(change)


def _take_over(tx: Transaction, chain_id: str, event: OutboxEvent, number: int, now: float) -> int:
    """Make the messages of one event; the number of the newest message then.

    An event has a message for each time that its block became part of the chain, and all but the last one are dropped.
    The outbox does not tell how many there are: an index that is made anew knows nothing of earlier rollbacks.
    """
    for removal in count() if event.is_removed else range(event.removals):
        sent = _found(tx, message_id(event.id, removal))
        if sent is not None:
            number = _take_back(tx, event, sent, removal_id(event.id, removal), number, now)
        elif removal >= event.removals:
            break
    settled = tx.rows(SQL.settled_block, {"webhook": event.webhook})
    if event.is_removed or not settled or block_of(event.tx_at) <= settled[0][0]:
        return number
    removal = 0
    while True:
        own = message_id(event.id, removal)
        row = _row_of(event, own, number + 1, ACTIVITY, chain_id, now)
        is_now = removal >= event.removals
        if not is_now:  # its block was gone before a message was made: it never will be
            row |= {"status": DROPPED, "done_at": now}
        is_new = tx.run(SQL.add_message, row)
        number += is_new
        if is_now and (is_new or not _is_dropped(tx, own)):
            return number
        removal += 1


def _found(tx: Transaction, message: str) -> Message | None:
    rows = tx.rows(SQL.message, {"id": message})
    return message_of(rows[0]) if rows else None


def _is_dropped(tx: Transaction, message: str) -> bool:
    found = _found(tx, message)
    return found is not None and found.status == DROPPED


def _take_back(tx: Transaction, event: OutboxEvent, sent: Message, own_id: str, number: int, now: float) -> int:
    """Drop a message whose block was rolled back, and follow it by another one if an attempt was made; the number of
    the newest message then."""
    if not tx.run(SQL.drop_message, {"id": sent.id, "now": now}) or sent.body is None:
        return number
    row = _row_of(event, own_id, number + 1, REMOVED, sent.chain_id, now, removed_body(sent.body, own_id))
    if sent.status == PENDING and now < sent.next_at <= now + LEASE_S:  # it may be on its way: this one follows it
        row["next_at"] = sent.next_at
    return number + tx.run(SQL.add_message, row)


def removed_body(body: bytes, own_id: str) -> bytes:
    """The body of the message that takes another one back: the same event, with `removed`."""
    sent = msgspec.json.decode(body, type=dict[str, Any])
    logs = [{**log, "removed": True} for log in sent["event"].get("logs", ())]
    event = sent["event"] | ({"logs": logs} if logs else {})
    taken_back = {"messageId": own_id, "removed": True, "removedMessageId": sent["messageId"], "event": event}
    return canonical_json(sent | taken_back)


def _row_of(
    event: OutboxEvent, own: str, number: int, kind: str, chain_id: str, now: float, body: bytes | None = None
) -> dict[str, object]:
    block = block_of(event.tx_at)
    return _row(own, event.id, event.webhook, number, kind, chain_id, block, event.tx_hash, now, body)


def _row(
    message: str,
    event: str,
    webhook: str,
    number: int,
    kind: str,
    chain_id: str,
    block: int,
    tx_hash: bytes,
    now: float,
    body: bytes | None = None,
) -> dict[str, object]:
    made = Message(message, event, webhook, number, kind, PENDING, chain_id, block, tx_hash, now, 0, now, None, body)
    return msgspec.structs.asdict(made)


def _release(one: Finished) -> dict[str, object]:
    """The message that takes back one that was dropped while it was sent, and waited for the end of that attempt."""
    sent = one.message
    return {"webhook": sent.webhook, "event": sent.event, "until": sent.next_at, "now": one.attempt.at}


async def state_of(access: Reader) -> DeliveryState:
    """The state of delivery in the access store."""
    ((webhooks, active),) = await access.rows(SQL.count_webhooks)
    ((pending, oldest),) = await access.rows(SQL.pending_messages)
    return DeliveryState(webhooks, active, pending, oldest, dict(await access.rows(SQL.webhook_counters)))


def message_of(row: Sequence[object]) -> Message:
    return Message(*row)  # type: ignore[arg-type]
