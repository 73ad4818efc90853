"""A worker's side of usage: counts requests in memory and sends them to the owner of the budgets once a second."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from icefall.access.usage import AnsweredRequest, UsageCounts, UsageKey, UsageRow, count
from icefall.errors import IcefallError

FLUSH_S = 1.0
REQUESTS_MAX = 500  # logged requests kept until the next flush; more are counted, but not logged
KEYS_MAX = 10_000  # counts kept while no owner answers

CallOwner = Callable[..., Awaitable[Any]]


class UsageRecorder:
    def __init__(self, call_owner: CallOwner) -> None:
        self._call_owner = call_owner
        self._counts: dict[UsageKey, UsageCounts] = {}
        self._requests: list[AnsweredRequest] = []
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
        await asyncio.sleep(FLUSH_S)
        await self.flush()

    async def flush(self) -> None:
        """What the owner does not take is sent with the next counts."""
        counts, requests = self._counts, self._requests
        self._counts, self._requests = {}, []
        rows = [msgspec.to_builtins(UsageRow(key, of_key)) for key, of_key in counts.items()]
        try:
            await self._call_owner("record", usage=rows, requests=msgspec.to_builtins(requests))
        except IcefallError:
            for key, of_key in self._counts.items():
                counts.setdefault(key, UsageCounts()).add(of_key)
            self._counts, self._requests = counts, (requests + self._requests)[:REQUESTS_MAX]
