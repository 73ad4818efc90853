"""The tables of budgets and usage in the access store: written by the owner of the budgets, read by workers."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

import msgspec

from icefall.access.budgets import DAY_S, Spent
from icefall.access.store import PAGE_TOKENS, SQL
from icefall.access.usage import AnsweredRequest, UsageCounts, UsageKey, UsageRow
from icefall.db.engine import Reader, StoreError, Transaction

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
        """All of it in one transaction; usage is added to what is stored."""
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
    tx.rows(SQL.lock_usage, {"name": PAGE_TOKENS})
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
        """Newest first, with IDs below `before`. Empty texts and status 0 stand for all."""
        params = {"caller": caller, "before": before, "first": first, "last": last}
        params |= {"path": path, "chain": chain, "status": status, "count": count}
        rows = await self._reader.rows(SQL.requests_before, params)
        return [
            LoggedRequest(number, AnsweredRequest(at, name, "", where, of_chain, code, units, took, peer, host, agent))
            for number, at, name, where, of_chain, code, units, took, peer, host, agent in rows
        ]
