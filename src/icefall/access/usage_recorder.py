"""A worker's side of usage: counts requests in memory and sends them to the owner of the budgets once a second."""

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from icefall.access.usage import AnsweredRequest, UsageCounts, UsageKey, UsageRow, count
from icefall.errors import IcefallError

FLUSH_S = 1.0
REQUESTS_MAX = 500  # logged requests kept until the next flush; more are counted, but not logged
KEYS_MAX = 10_000  # counts kept while no owner answers

CallOwner = Callable[..., Awaitable[Any]]


class UsageBatch(NamedTuple):
    """Counts as they are sent. The owner takes each number of a sender once: when its answer is lost or late, the same
    batch is sent again."""

    number: int
    usage: list[Any]
    requests: list[Any]


class UsageRecorder:
    def __init__(self, call_owner: CallOwner) -> None:
        self._call_owner = call_owner
        self._sender = secrets.token_hex(8)
        self._counts: dict[UsageKey, UsageCounts] = {}
        self._requests: list[AnsweredRequest] = []
        self._numbers = itertools.count(1)
        self._unanswered: UsageBatch | None = None
        self._sending = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None

    def note(self, request: AnsweredRequest) -> None:
        """Requests without a key are counted together and not logged one by one."""
        if len(self._counts) < KEYS_MAX:
            count(self._counts, request)
        if request.caller and len(self._requests) < REQUESTS_MAX:
            self._requests.append(request)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush_soon())

    async def _flush_soon(self) -> None:
        while self._counts or self._unanswered:
            await asyncio.sleep(FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        """What the owner does not take is sent again later, before newer counts."""
        async with self._sending:
            if self._unanswered is None or await self._is_taken(self._unanswered):
                await self._send_counts()

    async def _send_counts(self) -> None:
        if self._counts:
            usage = [msgspec.to_builtins(UsageRow(key, of_key)) for key, of_key in self._counts.items()]
            self._unanswered = UsageBatch(next(self._numbers), usage, msgspec.to_builtins(self._requests))
            self._counts, self._requests = {}, []
            await self._is_taken(self._unanswered)

    async def _is_taken(self, batch: UsageBatch) -> bool:
        try:
            await self._call_owner("record", sender=self._sender, **batch._asdict())
        except IcefallError:
            return False
        self._unanswered = None
        return True
