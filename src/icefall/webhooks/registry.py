"""Webhooks in the access store: created, changed and listed there, with their addresses and encrypted secrets."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from icefall.db.engine import Reader, Transaction
from icefall.db.statements import load
from icefall.errors import BadRequest, NotFound
from icefall.webhooks.model import Unfilled, Webhook

T = TypeVar("T")
SQL = load("icefall.access", "webhooks.sql")
ADDRESSES_MAX = 100_000  # of one webhook
ACTIVE_MAX = 1_000  # webhooks of one owner
RESUMED_S = 48 * 3600.0  # what failed since then is tried anew when a webhook becomes active again
_ID_AFTER_ALL = "~"  # behind every UUID
_CREATED_AFTER_ALL = 2**62
_EVERY = 2**31


class WebhookWriter(Protocol):
    async def write(self, change: Callable[[Transaction], T]) -> T: ...


class WebhookRegistry:
    """Reads with `reader`; writes with `store`, which is opened when something is written."""

    def __init__(self, reader: Reader, store: WebhookWriter) -> None:
        self._reader = reader
        self._store = store

    # -- webhooks ------------------------------------------------------------------------------------------------

    async def webhook(self, webhook_id: str) -> Webhook | None:
        rows = await self._reader.rows(SQL.webhook, {"id": webhook_id})
        return Webhook(*rows[0]) if rows else None

    async def owned(self, owner: str, webhook_id: str) -> Webhook:
        """Find a webhook of an owner; NotFound also for those of others."""
        found = await self.webhook(webhook_id)
        if found is None or found.owner != owner:
            raise NotFound(f"there is no webhook {webhook_id[:64]}")
        return found

    async def page(self, owner: str, status: str, after: tuple[int, str] | None, count: int) -> list[Webhook]:
        """List the webhooks of an owner, newest first. An empty status stands for both."""
        created, webhook_id = after or (_CREATED_AFTER_ALL, _ID_AFTER_ALL)
        where = {"owner": owner, "status": status, "created": created, "id": webhook_id, "count": count}
        return [Webhook(*row) for row in await self._reader.rows(SQL.webhooks_of, where)]

    async def is_empty(self) -> bool:
        return not await self._reader.rows(SQL.any_webhook)

    async def all(self) -> list[Webhook]:
        return [Webhook(*row) for row in await self._reader.rows(SQL.all_webhooks)]

    async def add(self, webhook: Webhook, addresses: Iterable[bytes]) -> None:
        listed = _rows(webhook.id, addresses)

        def change(tx: Transaction) -> None:
            tx.rows(SQL.lock_webhooks)
            _check_room(tx, webhook.owner)
            tx.run(SQL.add_webhook, msgspec.structs.asdict(webhook))
            tx.run_many(SQL.add_webhook_address, listed)

        await self._store.write(change)

    async def change(self, webhook: str, now: float, **fields: Any) -> Webhook:
        """Change some fields of a webhook; those that another process changes at the same time stay. When it becomes
        active again, its messages of the last two days that had failed are tried anew."""

        def change(tx: Transaction) -> Webhook:
            tx.rows(SQL.lock_webhooks)
            before = Webhook(*tx.rows(SQL.webhook, {"id": webhook})[0])
            after = msgspec.structs.replace(before, **fields)
            is_resumed = after.is_active and not before.is_active
            if is_resumed:
                _check_room(tx, after.owner)
            tx.run(SQL.put_webhook, msgspec.structs.asdict(after))
            if is_resumed:
                tx.run(SQL.resume_messages, {"webhook": webhook, "since": now - RESUMED_S, "now": now})
            return after

        return await self._store.write(change)

    # -- addresses -----------------------------------------------------------------------------------------------

    async def addresses(self, webhook_id: str, after: bytes = b"", count: int = _EVERY) -> list[bytes]:
        where = {"webhook": webhook_id, "after": after, "count": count}
        return [bytes(address) for (address,) in await self._reader.rows(SQL.webhook_addresses, where)]

    async def count_addresses(self, webhook_id: str) -> int:
        return int((await self._reader.rows(SQL.count_webhook_addresses, {"webhook": webhook_id}))[0][0])

    async def change_addresses(self, webhook_id: str, added: Iterable[bytes], dropped: Iterable[bytes] = ()) -> None:
        """Add and remove addresses. BadRequest if there would be none or too many."""
        more, fewer = _rows(webhook_id, added), _rows(webhook_id, dropped)

        def change(tx: Transaction) -> None:
            tx.rows(SQL.lock_webhooks)
            tx.run_many(SQL.add_webhook_address, more)
            tx.run_many(SQL.drop_webhook_address, fewer)
            left = tx.rows(SQL.count_webhook_addresses, {"webhook": webhook_id})[0][0]
            if not 1 <= left <= ADDRESSES_MAX:
                raise BadRequest(f"a webhook has 1 to {ADDRESSES_MAX} addresses, this one would have {left}")
            tx.run(SQL.bump_webhook, {"id": webhook_id})

        await self._store.write(change)

    # -- the indexer's view --------------------------------------------------------------------------------------

    async def newest_version(self, chain_id: str) -> int:
        return int((await self._reader.rows(SQL.newest_version, {"chain_id": chain_id}))[0][0])

    async def changed(self, chain_id: str, version: int) -> list[tuple[Webhook, int, list[bytes]]]:
        rows = await self._reader.rows(SQL.changed_webhooks, {"chain_id": chain_id, "version": version})
        return [
            (Webhook(*columns), own, [bytes.fromhex(one) for one in addresses.split(",")] if addresses else [])
            for *columns, own, addresses in rows
        ]

    async def put_start(self, webhooks: Sequence[str], block: int) -> None:
        rows = [{"id": webhook_id, "start_block": block} for webhook_id in webhooks]
        await self._store.write(lambda tx: tx.run_many(SQL.put_start, rows))

    async def unfilled(self, chain_id: str) -> Unfilled | None:
        """A webhook that starts at a block stored before, and of which older blocks are left to match."""
        rows = await self._reader.rows(SQL.unfilled_webhook, {"chain_id": chain_id})
        if not rows:
            return None
        *columns, first = rows[0]
        webhook = Webhook(*columns)
        assert webhook.live_block is not None
        return Unfilled(webhook, first, webhook.live_block, await self.addresses(webhook.id))

    async def put_filled(self, webhook: str, block: int) -> None:
        await self._store.write(lambda tx: tx.run(SQL.put_filled, {"id": webhook, "block": block}))

    # -- secrets -------------------------------------------------------------------------------------------------

    async def secrets_of(self, owner: str) -> list[tuple[int, bytes, float | None]]:
        """The encrypted secrets of an owner, the newest first, with the times they expire."""
        rows = await self._reader.rows(SQL.webhook_secrets, {"owner": owner})
        return [(number, bytes(value), expires) for number, value, expires in rows]

    async def has_secrets(self) -> bool:
        return bool(await self._reader.rows(SQL.any_webhook_secret))

    async def put_secret(self, owner: str, value: bytes, now: float, expires: float, *, replaces: bool = True) -> None:
        """Store a new secret; those before expire then, and expired ones are deleted. Not `replaces`: only if there is
        none."""

        def change(tx: Transaction) -> None:
            tx.rows(SQL.lock_webhooks)
            if not replaces and tx.rows(SQL.webhook_secrets, {"owner": owner}):
                return
            tx.run(SQL.drop_webhook_secrets, {"owner": owner, "now": now})
            tx.run(SQL.expire_webhook_secrets, {"owner": owner, "expires": expires})
            known = tx.rows(SQL.webhook_secrets, {"owner": owner})
            number = known[0][0] + 1 if known else 1
            tx.run(SQL.add_webhook_secret, {"owner": owner, "number": number, "value": value})

        await self._store.write(change)


def _check_room(tx: Transaction, owner: str) -> None:
    """Raise BadRequest if an owner can have no more active webhooks."""
    if tx.rows(SQL.active_webhooks_of, {"owner": owner})[0][0] >= ACTIVE_MAX:
        raise BadRequest(f"there are {ACTIVE_MAX} active webhooks already: deactivate one")


def _rows(webhook_id: str, addresses: Iterable[bytes]) -> list[dict[str, object]]:
    return [{"webhook": webhook_id, "address": address} for address in dict.fromkeys(addresses)]
