"""The messages of a webhook of the caller: listed with every attempt, counted, sent again, and tested."""

import time
from typing import get_args
from uuid import uuid4

from msgspec import UNSET

from icefall.access.client_address import CurrentCaller
from icefall.api.data.render.webhook_body import sample_body
from icefall.api.data.schema.webhooks import (
    ReplayRequest,
    ReplayResult,
    SentTest,
    WebhookAttempt,
    WebhookMessage,
    WebhookMessageCounts,
    WebhookMessagePage,
    WebhookMessagesParams,
    WebhookParams,
)
from icefall.api.http.paging import Paging
from icefall.api.http.structs import hash_text
from icefall.errors import BadRequest
from icefall.webhooks.messages import NUMBER_MAX, MessageFilter, WebhookMessages
from icefall.webhooks.model import EVM_ACTIVITY, PENDING, Message, MessageStatus, Webhook
from icefall.webhooks.registry import WebhookRegistry
from icefall.wire.ids import id_text

REPLAYED_MAX = 10_000  # messages of one call
_MESSAGES = "webhookMessages"


async def list_messages(
    params: WebhookMessagesParams,
    registry: WebhookRegistry,
    messages: WebhookMessages,
    caller: CurrentCaller,
    paging: Paging,
) -> WebhookMessagePage:
    """List the messages of a webhook, newest first, with what became of each attempt."""
    webhook = await registry.owned(caller.get().key, params.id)
    cursor = paging.after(_MESSAGES, params)
    before = int.from_bytes(cursor, "big") if cursor else NUMBER_MAX
    which = MessageFilter(status=params.status or "")
    found = await messages.page(webhook.id, which, before, params.page_size + 1)
    page = found[: params.page_size]
    more = paging.token(_MESSAGES, params, page[-1].number.to_bytes(8, "big")) if len(found) > len(page) else UNSET
    return WebhookMessagePage(next_page_token=more, messages=[await _message(messages, webhook, one) for one in page])


async def count_messages(
    params: WebhookParams, registry: WebhookRegistry, messages: WebhookMessages, caller: CurrentCaller
) -> WebhookMessageCounts:
    webhook = await registry.owned(caller.get().key, params.id)
    counts, oldest = await messages.counts_of(webhook.id), await messages.oldest_pending(webhook.id)
    return WebhookMessageCounts(
        **{status: counts.get(status, 0) for status in get_args(MessageStatus)},
        oldest_pending_at=UNSET if oldest is None else _millis(oldest),
    )


async def replay(
    params: WebhookParams,
    body: ReplayRequest,
    registry: WebhookRegistry,
    messages: WebhookMessages,
    caller: CurrentCaller,
) -> ReplayResult:
    """Send messages again: those that are named, or all of a range of times or blocks."""
    webhook, now = await registry.owned(caller.get().key, params.id), time.time()
    if body.message_ids is not UNSET:
        return ReplayResult(replayed=await messages.replay(webhook.id, body.message_ids, now))
    ends = {
        "first": body.start_timestamp,
        "last": body.end_timestamp,
        "low": body.start_block,
        "high": body.end_block,
    }
    given = {name: value for name, value in ends.items() if value is not UNSET}
    if not given:
        raise BadRequest("messageIds, or a range of times or blocks, is missing")
    which = MessageFilter(**given)  # type: ignore[arg-type]
    return ReplayResult(replayed=await messages.replay_range(webhook.id, which, REPLAYED_MAX, now))


async def send_test(
    params: WebhookParams, registry: WebhookRegistry, messages: WebhookMessages, caller: CurrentCaller
) -> SentTest:
    webhook = await registry.owned(caller.get().key, params.id)
    if not webhook.is_active:
        raise BadRequest("the webhook is inactive: nothing is sent to it")
    now, own_id = time.time(), str(uuid4())
    await messages.add_test(webhook.id, webhook.chain_id, own_id, sample_body(webhook, own_id, int(now)), now)
    return SentTest(message_id=own_id)


async def _message(messages: WebhookMessages, webhook: Webhook, message: Message) -> WebhookMessage:
    hash_of = hash_text if webhook.event_type == EVM_ACTIVITY else id_text
    return WebhookMessage(
        message_id=message.id,
        kind=message.kind,  # type: ignore[arg-type]
        status=message.status,  # type: ignore[arg-type]
        chain_id=webhook.chain_id,
        block_number=str(message.block) if message.event else UNSET,
        tx_hash=hash_of(message.tx_hash) if message.tx_hash else UNSET,
        created_at=_millis(message.created),
        next_attempt_at=_millis(message.next_at) if message.status == PENDING else UNSET,
        attempts=[
            WebhookAttempt(
                attempted_at=_millis(one.at),
                response_code=one.code or UNSET,
                duration_msecs=round(one.duration_ms),
                error=one.error or UNSET,
            )
            for one in await messages.attempts(message.id)
        ],
    )


def _millis(seconds: float) -> int:
    return round(seconds * 1000)
