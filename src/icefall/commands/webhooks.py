"""`icefall webhooks list | show | replay | test`: the webhooks of all owners, from the stores; it needs no running
program. What it changes is sent by the process that delivers."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from uuid import uuid4

from icefall.api.data.render.webhook_body import sample_body
from icefall.compose.shared_chains import ready_to_run_alone
from icefall.compose.stores import stores_of
from icefall.compose.webhooks import WebhookParts
from icefall.config.settings import Config
from icefall.db.engine import StoreError
from icefall.errors import StartRefused
from icefall.observe.program import name_process
from icefall.webhooks.messages import NUMBER_MAX, MessageFilter
from icefall.webhooks.model import PENDING, Webhook

SHOWN_MAX = 20  # messages of `show`
REPLAYED_MAX = 100_000


def webhooks_command(config: Config, action: str, webhook: str, flags: Mapping[str, str]) -> str:
    """The text to print. Raises StartRefused where the action fails."""
    with closing(stores_of(config)) as stores:
        try:
            with closing(stores.access_reader()) as reader, closing(WebhookParts(config, stores, reader)) as parts:
                return asyncio.run(_run(parts, action, webhook, flags))
        except StoreError as error:
            raise StartRefused(str(error)) from error


def run_webhooks(config: Config) -> int:
    """`icefall webhooks`: deliver in this process until it is stopped."""
    import uvloop  # noqa: PLC0415 - the other actions need neither

    from icefall.compose.webhook_delivery import run_delivery  # noqa: PLC0415 - as above

    config = ready_to_run_alone(config)
    name_process()
    return uvloop.run(run_delivery(config, supervised=False, with_engine=False))


async def _run(parts: WebhookParts, action: str, webhook_id: str, flags: Mapping[str, str]) -> str:
    if action == "list":
        return await _list(parts)
    webhook = await parts.registry.webhook(webhook_id)
    if webhook is None:
        raise StartRefused(f"there is no webhook {webhook_id}: icefall webhooks list shows all")
    if action == "show":
        return await _show(parts, webhook)
    return await (_test(parts, webhook) if action == "test" else _replay(parts, webhook, flags))


async def _list(parts: WebhookParts) -> str:
    webhooks = await parts.registry.all()
    if not webhooks:
        return "There are no webhooks."
    counts: Counter[tuple[str, str]] = Counter()
    for one in await parts.messages.counts():
        counts[one.webhook, one.status] += one.total
    rows: list[Sequence[str]] = [("ID", "OWNER", "CHAIN", "STATUS", "WAITING", "DELIVERED", "FAILED", "URL")]
    for webhook in webhooks:
        numbers = [str(counts[webhook.id, status]) for status in (PENDING, "delivered", "failed")]
        rows.append((webhook.id, webhook.owner or "-", webhook.chain_id, webhook.status, *numbers, webhook.url))
    return _table(rows)


async def _show(parts: WebhookParts, webhook: Webhook) -> str:
    addresses = await parts.registry.count_addresses(webhook.id)
    lines = [
        f"{webhook.id} {webhook.name}".rstrip(),
        f"  {webhook.status}{f': {webhook.reason}' if webhook.reason else ''}",
        f"  {webhook.event_type} of {addresses} addresses on chain {webhook.chain_id}",
        f"  to {webhook.url}",
    ]
    rows: list[Sequence[str]] = [("MESSAGE", "KIND", "STATUS", "BLOCK", "ATTEMPTS", "NEXT", "LAST")]
    for message in await parts.messages.page(webhook.id, MessageFilter(), NUMBER_MAX, SHOWN_MAX):
        attempts = await parts.messages.attempts(message.id)
        last = f"{attempts[-1].code} {attempts[-1].error}".strip() if attempts else ""
        again = _time_text(message.next_at) if message.status == PENDING else ""
        block = str(message.block) if message.event else ""
        rows.append((message.id, message.kind, message.status, block, str(len(attempts)), again, last))
    return "\n".join([*lines, "", _table(rows) if len(rows) > 1 else "It has no messages."])


async def _test(parts: WebhookParts, webhook: Webhook) -> str:
    if not webhook.is_active:
        raise StartRefused(f"webhook {webhook.id} is inactive: nothing is sent to it")
    now, own_id = time.time(), str(uuid4())
    body = sample_body(webhook, own_id, int(now))
    await parts.messages.add_test(webhook.id, webhook.chain_id, own_id, body, now)
    return f"The test {own_id} will be sent to {webhook.url}."


async def _replay(parts: WebhookParts, webhook: Webhook, flags: Mapping[str, str]) -> str:
    if "message" in flags:
        found = await parts.messages.message(flags["message"])
        if found is None or found.webhook != webhook.id:
            raise StartRefused(f"webhook {webhook.id} has no message {flags['message']}")
        count = await parts.messages.replay(webhook.id, [found.id], time.time())
    else:
        which = MessageFilter(
            low=_number(flags, "first", 0),
            high=_number(flags, "last", 2**53) + 1,
            first=_number(flags, "since", 0),
            last=_number(flags, "until", 2**53) + 1,
        )
        if not {"first", "last", "since", "until"} & set(flags):
            raise StartRefused(
                "icefall webhooks replay needs --message=ID, --first=BLOCK and --last=BLOCK, or --since=TIME and "
                "--until=TIME"
            )
        count = await parts.messages.replay_range(webhook.id, which, REPLAYED_MAX, time.time())
    return f"{count} messages will be sent again."


def _number(flags: Mapping[str, str], name: str, default: int) -> int:
    text = flags.get(name, str(default))
    if not (text.isascii() and text.isdigit()):
        raise StartRefused(f"--{name} must be {_RANGES[name]}")
    return int(text)


_RANGES = dict.fromkeys(("first", "last"), "the number of a block") | dict.fromkeys(
    ("since", "until"), "a time in Unix seconds"
)


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _time_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
