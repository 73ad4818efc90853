"""Delivers messages: reads the outboxes of chains, and sends what is due, at least once.

Everything is in the access store: which messages there are, what is sent, who sends it until when, and what became of
it. So any number of these processes may share a server, and one that is killed loses nothing: its attempts count as
lost after some time and are made again. What is sent is stored before the first attempt.

Each webhook has a bounded number of attempts at a time, one while its receiver fails, so that a slow one does not delay
another (`webhooks/pacing.py`). A step costs the same however many messages wait for receivers that fail.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import msgspec

from icefall.db.engine import Reader, StoreError
from icefall.errors import IcefallError
from icefall.observe.log import Log
from icefall.webhooks.matching import EventDetail, decode_detail
from icefall.webhooks.messages import BLOCK_MAX, Finished, WebhookMessages
from icefall.webhooks.model import (
    EVM_ACTIVITY,
    FAILED,
    INACTIVE,
    PRIMARY,
    Attempt,
    Message,
    OutboxEvent,
    Webhook,
)
from icefall.webhooks.outbox import SQL
from icefall.webhooks.pacing import Pacing
from icefall.webhooks.primary_matching import PrimaryDetail, decode_primary_detail
from icefall.webhooks.registry import SQL as ACCESS_SQL
from icefall.webhooks.registry import WebhookRegistry
from icefall.webhooks.retrying import ATTEMPT_S, LEASE_S, Outcome, verdict, why_given_up
from icefall.webhooks.secrets import WebhookSecrets
from icefall.webhooks.signing import signature_headers

POLL_S = 0.25
PER_WEBHOOK = 8  # attempts at a time
TOTAL = 1024
QUEUE_MAX = 100_000  # messages of one webhook that may wait
KEPT_S = 30 * 86400.0  # messages that have ended
ROUND_S = 0.01  # the least time from one step to the next: what ended meanwhile is stored in one transaction
_PAGE = 500  # events read at once
_PAGES = 4  # of an outbox in one step: what is due is sent meanwhile
_NOT_READY_S = 5.0  # before a message whose event cannot be read is looked at again
_TIDY_EVERY_S = 60.0
_SEEN_EVERY_S = 5.0


class StoredEvent(NamedTuple):
    """An event as the outbox holds it now."""

    is_removed: int
    removals: int
    tx_at: int
    block_hash: bytes
    tx_hash: bytes
    detail: EventDetail | PrimaryDetail


class OutboxReader:
    """The outbox of one chain, as delivery reads it. `head` is the number of the upstream's newest block."""

    def __init__(
        self,
        chain_id: str,
        reader: Reader,
        head: Callable[[], Awaitable[int]],
        decode: Callable[[bytes], EventDetail | PrimaryDetail] = decode_detail,
    ) -> None:
        self.chain_id = chain_id
        self._reader = reader
        self.head = head
        self._decode = decode

    async def outbox_id(self) -> str:
        """The ID of the outbox; empty while it has no row."""
        rows = await self._reader.rows(SQL.outbox_id)
        return str(rows[0][0]) if rows else ""

    async def after(self, sequence: int) -> list[OutboxEvent]:
        rows = await self._reader.rows(SQL.events_after, {"sequence": sequence, "count": _PAGE})
        return [OutboxEvent(*row) for row in rows]

    async def behind(self, access: Reader) -> int:
        """How many events come after the one up to which messages were made."""
        outbox = await self.outbox_id()
        if not outbox:
            return 0
        rows = await access.rows(ACCESS_SQL.webhook_cursor_read, {"chain_id": self.chain_id})
        sequence = rows[0][1] if rows and rows[0][0] == outbox else 0
        return int((await self._reader.rows(SQL.newest_sequence))[0][0]) - sequence

    async def event(self, event: str) -> StoredEvent | None:
        rows = await self._reader.rows(SQL.event, {"id": event})
        if not rows:
            return None
        is_removed, removals, tx_at, block_hash, tx_hash, detail = rows[0]
        return StoredEvent(is_removed, removals, tx_at, bytes(block_hash), bytes(tx_hash), self._decode(detail))


def primary_outbox_reader(reader: Reader) -> OutboxReader:
    """The outbox of P, X and C, which are final: no message waits for confirmations."""

    async def head() -> int:
        return 1 << 62

    return OutboxReader(PRIMARY, reader, head, decode_primary_detail)


class Sender(Protocol):
    """Sends one request, by the rules for URLs that users name."""

    async def __call__(self, url: str, body: bytes, headers: Mapping[str, str], owner: str) -> Outcome: ...


class Begun(NamedTuple):
    """An attempt that has its place. `number`: in the pacing."""

    webhook: Webhook
    message: Message
    number: int


Keys = list[bytes] | str  # the secrets to sign with, or why there are none
Render = Callable[[Webhook, Message, StoredEvent], Awaitable[bytes]]


Outboxes = Callable[[], Sequence[OutboxReader]]


class Delivery:
    """The delivery of one process. `outboxes` returns those of the chains that are served now: one may be added while
    it runs."""

    def __init__(
        self,
        registry: WebhookRegistry,
        messages: WebhookMessages,
        secrets: WebhookSecrets,
        outboxes: Outboxes,
        render: Render,
        send: Sender,
        log: Log,
        *,
        clock: Callable[[], float] = time.time,
        dice: Callable[[], float] = random.random,
        per_webhook: int = PER_WEBHOOK,
        total: int = TOTAL,
    ) -> None:
        self._registry = registry
        self._messages = messages
        self._secrets = secrets
        self._outboxes = outboxes
        self._chains: dict[str, OutboxReader] = {}
        self._render = render
        self._send = send
        self._log = log
        self._clock = clock
        self._dice = dice
        self._pacing = Pacing(per_webhook, total)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended: list[Finished] = []
        self._something_ended = asyncio.Event()
        self._tidy_at = 0.0
        self._seen_at = 0.0

    async def run(self) -> None:
        """Deliver until cancelled. A store that cannot be used now is tried again."""
        problem = ""
        while True:
            is_busy = False
            try:
                is_busy = await self.round()
                problem = ""
            except IcefallError as error:
                if str(error) != problem:
                    self._log.warn("webhooks cannot be delivered, trying again", error=str(error))
                problem = str(error)
                await asyncio.sleep(_NOT_READY_S / 5)
            self._something_ended.clear()
            if not is_busy and not self._ended:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):  # unlike wait_for, it never loses a cancellation
                        await self._something_ended.wait()
            await asyncio.sleep(ROUND_S)

    async def close(self) -> None:
        """Wait for the attempts that are being made, and store how they ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._store_ended()

    async def round(self) -> bool:
        """Do what is to be done now; whether there was anything."""
        await self._store_ended()
        if await self._registry.is_empty():
            return False
        self._chains = {chain.chain_id: chain for chain in self._outboxes()}
        taken_over = 0
        for chain in self._chains.values():
            taken_over += await self._take_over(chain)
        await self._tidy()
        begun = await self._claim()
        keys = {owner: await self._keys(owner) for owner in {one.webhook.owner for one in begun}}
        for one in begun:
            task = asyncio.create_task(self._attempt(one, keys[one.webhook.owner]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return taken_over > 0 or len(begun) > 0

    async def drain(self) -> None:
        """Deliver what is due, and return when nothing is."""
        while await self.round() or self._tasks or self._ended:
            await asyncio.gather(*self._tasks)

    # -- which messages ------------------------------------------------------------------------------------------

    async def _take_over(self, chain: OutboxReader) -> int:
        """Make messages of some new events of a chain; return of how many."""
        count = 0
        try:
            outbox = await chain.outbox_id()
            sequence = await self._messages.cursor(chain.chain_id, outbox) if outbox else 0
            while outbox and count < _PAGE * _PAGES and (events := await chain.after(sequence)):
                await self._messages.take_over(chain.chain_id, outbox, events, self._clock())
                sequence, count = events[-1].sequence, count + len(events)
        except StoreError as error:  # one chain that is not indexed yet must not hold up the others
            self._log.debug("outbox not read", chain=chain.chain_id, error=str(error))
        return count

    async def _claim(self) -> list[Begun]:
        """Begin attempts, as many as may be made at a time, and prepare what they send."""
        now = self._clock()
        due: list[Begun] = []
        begun: list[Begun] = []
        heads: dict[str, int] = {}
        try:
            for webhook in self._pacing.in_turn(await self._messages.due_webhooks(now), now):
                room = self._pacing.room(webhook)
                for message in await self._due(webhook, now, room, heads) if room > 0 else ():
                    due.append(Begun(webhook, message, self._pacing.begin(webhook.id, now)))
            if due:
                claimed = await self._messages.claim([one.message for one in due], now + LEASE_S)
                by_id = {one.message.id: one for one in due}
                begun = await self._prepared([by_id[message.id]._replace(message=message) for message in claimed])
        finally:
            kept = {one.number for one in begun}
            for one in due:
                if one.number not in kept:
                    self._pacing.cancel(one.webhook.id, one.number)
        return begun

    async def _due(self, webhook: Webhook, now: float, count: int, heads: dict[str, int]) -> list[Message]:
        """The messages that may be tried now. In order, that is the oldest one of all, or none yet."""
        confirmed = await self._confirmed(webhook, heads)
        if webhook.ordered:
            return await self._messages.due_in_order(webhook.id, now, confirmed)
        return await self._messages.due(webhook.id, now, count, confirmed)

    async def _confirmed(self, webhook: Webhook, heads: dict[str, int]) -> int:
        """The newest block whose messages may be sent."""
        chain = self._chains.get(webhook.chain_id) if webhook.event_type == EVM_ACTIVITY else None
        if not webhook.confirmations or chain is None:
            return BLOCK_MAX
        if chain.chain_id not in heads:
            heads[chain.chain_id] = await chain.head()
        return heads[chain.chain_id] - webhook.confirmations

    async def _prepared(self, claimed: Sequence[Begun]) -> list[Begun]:
        """Store what is sent with first attempts; the messages that can be sent now."""
        ready = [one for one in claimed if one.message.body is not None]
        bodies: dict[str, bytes] = {}
        fresh = [one for one in claimed if one.message.body is None]
        for one in fresh:
            body = await self._body(one.webhook, one.message)
            if body is not None:
                bodies[one.message.id] = body
        stored = await self._messages.put_bodies(bodies) if bodies else set()
        for one in fresh:
            if one.message.id in stored:
                ready.append(one._replace(message=msgspec.structs.replace(one.message, body=bodies[one.message.id])))
        return ready

    async def _body(self, webhook: Webhook, message: Message) -> bytes | None:
        """Make the body of a message that was never sent; None if it is not sent now."""
        now, chain = self._clock(), self._chains.get(message.chain_id)
        try:
            event = await chain.event(message.event) if chain is not None else None
            if event is not None and event.is_removed:
                await self._messages.drop(message, now)
                return None
            if event is not None:
                return await self._render(webhook, message, event)
            why = "its event is not in the store of the chain"
        except IcefallError as error:  # rolled back while it was read, or an upstream that must be asked
            why = str(error)
        except Exception as error:  # whatever is wrong with one event must not stop the others
            self._log.error("message cannot be made, trying again", id=message.id, error=repr(error))
            why = "the log says why"
        self._log.debug("message not ready", id=message.id, why=why)
        await self._messages.postpone(message, now + _NOT_READY_S)
        return None

    # -- one attempt ---------------------------------------------------------------------------------------------

    async def _keys(self, owner: str) -> Keys:
        try:
            return await self._secrets.valid(owner) or "it cannot be signed: there is no secret"
        except IcefallError as error:
            self._log.error("messages cannot be signed", owner=owner, error=str(error))
            return "it cannot be signed: the log says why"

    async def _attempt(self, begun: Begun, keys: Keys) -> None:
        webhook, message, number = begun
        began, at, is_taken = time.perf_counter(), self._clock(), False
        if at + ATTEMPT_S > message.next_at:  # this process was held up: another one may begin meanwhile
            self._pacing.cancel(webhook.id, number)
            with suppress(StoreError):
                await self._messages.postpone(message, at)
            return
        try:
            outcome = await self._sent(webhook, message, int(at), keys)
            is_taken = outcome.is_taken
        finally:
            took_s = time.perf_counter() - began
            self._pacing.end(webhook.id, number, is_taken=is_taken, took_s=took_s)
            self._something_ended.set()
        now = self._clock()
        if outcome.retry_after_s and not is_taken:
            self._pacing.pause(webhook, now + outcome.retry_after_s, now)
        status, next_at = verdict(message.attempts, outcome, now, self._dice())
        attempt = Attempt(0, now, outcome.code, took_s * 1000, outcome.error)
        self._ended.append(Finished(message, status, next_at, attempt))

    async def _sent(self, webhook: Webhook, message: Message, at: int, keys: Keys) -> Outcome:
        assert message.body is not None
        if isinstance(keys, str):
            return Outcome(0, keys)
        headers = signature_headers(keys, message.id, at, message.body)
        try:
            return await self._send(webhook.url, message.body, headers, webhook.owner)
        except Exception as error:  # it counts as an attempt, so that it is shown, tried later and given up in the end
            self._log.error("attempt to send failed", webhook=webhook.id, error=repr(error))
            return Outcome(0, "it could not be sent: the log says why")

    async def _store_ended(self) -> None:
        ended, self._ended = self._ended, []
        if not ended:
            return
        try:
            await self._messages.finish(ended)
        except StoreError:
            self._ended = ended + self._ended
            raise
        for one in ended:
            if one.status == FAILED:
                await self._switch_off(one.message.webhook, why_given_up(one.attempt.code, one.message.attempts))

    async def _switch_off(self, webhook_id: str, reason: str) -> None:
        webhook = await self._registry.webhook(webhook_id)
        if webhook is not None and webhook.is_active:
            self._log.warn("webhook switched off", webhook=webhook_id, reason=reason)
            await self._registry.change(webhook_id, self._clock(), status=INACTIVE, reason=reason)

    async def _tidy(self) -> None:
        """Say that this process is at work, and now and then delete what is old and switch off what is too far
        behind."""
        now = self._clock()
        if now >= self._seen_at:
            self._seen_at = now + _SEEN_EVERY_S
            await self._messages.note_seen(now)
        if now < self._tidy_at:
            return
        self._tidy_at = now + _TIDY_EVERY_S
        await self._messages.drop_old(now - KEPT_S, now)
        for webhook in await self._messages.due_webhooks(now):
            if await self._messages.pending(webhook.id) > QUEUE_MAX:
                await self._switch_off(webhook.id, f"more than {QUEUE_MAX} messages were waiting")
