"""The usage of API keys: counted in a worker, sent to the owner of the budgets, and written by that one."""

import asyncio
import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from icefall.access.budgets import DAY_S, Spent
from icefall.access.store import SQL
from icefall.access.usage import AnsweredRequest, UsageCounts, UsageKey, UsageRow, count
from icefall.db.engine import Reader, StoreError, Transaction
from icefall.errors import IcefallError

T = TypeVar("T")

LOG_DAYS, LOG_ROWS_MAX = 7, 100_000
USAGE_DAYS = 400
_DROP_EVERY_S = 3600.0


class LoggedRequest(msgspec.Struct, frozen=True):
    id: int
    request: AnsweredRequest


class Written(Protocol):
    async def write(self, change: Callable[[Transaction], T]) -> T: ...

    def close(self) -> None: ...


class UsageStore:
    """The usage tables as the owner of the budgets writes them. Keys are written next to it by `icefall keys`, so its
    transactions are short."""

    def __init__(self, store: Written) -> None:
        self._store = store

    async def spent_today(self, now: float) -> list[Spent]:
        rows = await self._store.write(lambda tx: tx.rows(SQL.spent_of_day, {"day": int(now) // DAY_S}))
        return [Spent(*row) for row in rows]

    async def save(
        self, spent: Sequence[Spent], usage: Sequence[UsageRow], requests: Sequence[AnsweredRequest]
    ) -> None:
        """Store all of it in one transaction; usage is added to what is stored."""
        await self._store.write(lambda tx: _save(tx, spent, usage, requests))

    async def drop_old(self, now: float) -> None:
        def change(tx: Transaction) -> None:
            today = int(now) // DAY_S
            tx.run(SQL.drop_spent, {"day": today})
            tx.run(SQL.drop_usage, {"day": today - USAGE_DAYS})
            tx.run(SQL.drop_requests, {"before": now - LOG_DAYS * DAY_S, "rows_max": LOG_ROWS_MAX})

        await self._store.write(change)

    async def drop_old_forever(self, clock: Callable[[], float] = time.time) -> None:
        while True:
            with suppress(StoreError):  # what is old is dropped later
                await self.drop_old(clock())
            await asyncio.sleep(_DROP_EVERY_S)

    def close(self) -> None:
        self._store.close()


def _save(
    tx: Transaction, spent: Iterable[Spent], usage: Iterable[UsageRow], requests: Iterable[AnsweredRequest]
) -> None:
    tx.run(SQL.open_usage_lock)
    tx.rows(SQL.lock_usage)
    tx.run_many(SQL.put_spent, [one._asdict() for one in spent])
    for row in usage:
        key, counts = msgspec.structs.asdict(row.key), UsageCounts()
        for calls, units, durations in tx.rows(SQL.usage_row, key):
            counts = UsageCounts(calls, units, msgspec.json.decode(durations))
        counts.add(row.counts)
        durations = msgspec.json.encode(counts.durations).decode()
        tx.run(SQL.put_usage, {**key, "calls": counts.calls, "units": counts.units, "durations": durations})
    tx.run_many(SQL.add_request, [_logged(request) for request in requests])


def _logged(request: AnsweredRequest) -> dict[str, object]:
    row = msgspec.structs.asdict(request)
    del row["route"]
    return row


class UsageReader:
    def __init__(self, reader: Reader, clock: Callable[[], float] = time.time) -> None:
        self._reader = reader
        self.now = clock

    async def between(self, first_day: int, last_day: int) -> list[UsageRow]:
        """Return the usage between two days, by day and in their order."""
        rows = await self._reader.rows(SQL.usage_between, {"first": first_day, "last": last_day})
        return [
            UsageRow(
                UsageKey(day, caller, path, chain, status), UsageCounts(calls, units, msgspec.json.decode(durations))
            )
            for day, caller, path, chain, status, calls, units, durations in rows
        ]

    async def requests(
        self, *, caller: str, before: int, first: float, last: float, path: str, chain: str, status: int, count: int
    ) -> list[LoggedRequest]:
        """Return logged requests with IDs below `before`, newest first. Empty texts and status 0 stand for all."""
        params = {"caller": caller, "before": before, "first": first, "last": last}
        params |= {"path": path, "chain": chain, "status": status, "count": count}
        rows = await self._reader.rows(SQL.requests_before, params)
        return [
            LoggedRequest(number, AnsweredRequest(at, name, "", where, of_chain, code, units, took, peer, host, agent))
            for number, at, name, where, of_chain, code, units, took, peer, host, agent in rows
        ]


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
        """Count a request. Those without a key are counted together and not logged one by one."""
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
        """Send the counts to the owner. What it does not take is sent again later, before newer counts."""
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
