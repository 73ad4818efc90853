"""The state of delivery, as Prometheus and the health check `webhooks` show it: read from the stores, so it is the same
in every process and after a restart.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from icefall.compose.stores import Stores
from icefall.db.engine import BlockingReader, StoreError
from icefall.errors import Unavailable
from icefall.node.health.runner import Check, Health, Unhealthy
from icefall.webhooks.delivering import OutboxReader
from icefall.webhooks.messages import SEEN_AT, DeliveryState, state_of
from icefall.webhooks.model import PRIMARY

if TYPE_CHECKING:
    from icefall.evm.reading.directory import LazyChainReader

CHECK = "webhooks"
UNSEEN_S = 60.0  # messages that wait for so long while no process delivers
BEHIND_MAX = 10_000  # events of a chain that no process has made messages of
_WATCH_EVERY_S = 2.0


class WebhookState:
    """Reads with connections of its own, which `close` closes. The access store may be created later."""

    def __init__(self, stores: Stores, chain_ids: Callable[[], Sequence[str]]) -> None:
        self._stores = stores
        self._chain_ids = chain_ids
        self._access: BlockingReader | None = None
        self._outboxes: dict[str, tuple[LazyChainReader | BlockingReader, OutboxReader]] = {}

    async def read(self) -> DeliveryState | None:
        """Return None where there has never been a webhook, or the store cannot be read."""
        try:
            if self._access is None:
                self._access = self._stores.access_reader()
            state = await state_of(self._access)
        except StoreError:
            return None
        if state.webhooks == 0:
            return None
        return state._replace(behind={one: await self._behind(one) for one in self._chain_ids()})

    async def _behind(self, chain_id: str) -> int:
        """How many events of a chain no process has made messages of; 0 while it is not indexed."""
        if chain_id not in self._outboxes:
            try:
                self._outboxes[chain_id] = self._opened(chain_id)
            except StoreError:  # the node's store is created by the engine
                return 0
        assert self._access is not None
        try:
            return await self._outboxes[chain_id][1].behind(self._access)
        except (StoreError, Unavailable):
            return 0

    def _opened(self, chain_id: str) -> "tuple[LazyChainReader | BlockingReader, OutboxReader]":
        reader = self._stores.node_reader() if chain_id == PRIMARY else self._stores.chain_reader(chain_id)
        return reader, OutboxReader(chain_id, reader, _no_head)

    def close(self) -> None:
        if self._access is not None:
            self._access.close()
            self._access = None
        for reader, _ in self._outboxes.values():
            reader.close()
        self._outboxes.clear()


async def _no_head() -> int:
    return 0


def problem_of(state: DeliveryState, now: float) -> str:
    """Why messages do not reach receivers as they should; empty if they do. A receiver that fails is no problem here:
    its webhook is switched off in the end, and says why."""
    late = [chain for chain, count in sorted(state.behind.items()) if count > BEHIND_MAX]
    if late:
        return f"more than {BEHIND_MAX} events of chain {late[0]} wait to be delivered"
    waits = state.oldest is not None and now - state.oldest > UNSEEN_S
    unseen_s = now - state.counters.get(SEEN_AT, 0)
    if unseen_s > UNSEEN_S and (waits or any(state.behind.values())):
        return "messages wait and no process delivers them: run `icefall webhooks`"
    return ""


def webhook_check(state: WebhookState, clock: Callable[[], float] = time.time) -> Check:
    """The check that fails when the outbox grows because nothing delivers it, or not fast enough."""

    async def run() -> Any:
        found, now = await state.read(), clock()
        if found is None:
            return {}
        oldest = {} if found.oldest is None else {"oldestSeconds": round(max(0.0, now - found.oldest), 1)}
        details = {
            "active": found.active,
            "pending": found.pending,
            **oldest,
            "notTakenOver": sum(found.behind.values()),
        }
        problem = problem_of(found, now)
        if problem:
            raise Unhealthy(problem, details)
        return details

    return Check(CHECK, run)


async def watch_webhooks(state: WebhookState, health: Health) -> None:
    """Register the check with the first webhook: an installation without any has no such check. Runs for ever."""
    is_registered = False
    while True:
        if not is_registered and await state.read() is not None:
            await health.register(webhook_check(state))
            is_registered = True
        await asyncio.sleep(_WATCH_EVERY_S)
