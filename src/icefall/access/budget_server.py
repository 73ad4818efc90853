"""The process that owns the budgets of a data directory and leases slices of them to workers over a socket. It also
stores what was spent, and the usage that workers report, once a second.

The engine owns them where there is one, else a listener's own process. The first process holds a lock and the others
wait for it, so that `icefall data` and `icefall metrics` share the budgets when both run.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from icefall.access.budgets import DAY_S, MINUTE_S, Budgets, Grant, Spent, Tier
from icefall.access.store import SQL, ReopenedStore
from icefall.access.usage import AnsweredRequest, UsageRow
from icefall.access.usage_store import UsageStore
from icefall.db.disk import StoreLock
from icefall.db.engine import Store, StoreError, Transaction
from icefall.errors import StartRefused
from icefall.ipc.socket import SocketServer, socket_path

_RETRY_S = 1.0
_SAVE_S = 1.0
_ROWS_MAX = 100_000  # reported and not stored yet


def budget_socket(data_dir: Path) -> Path:
    return socket_path(data_dir, "limits.sock")


def budget_commands(budgets: Budgets, clock: Callable[[], float] = time.time) -> dict[str, Callable[..., Any]]:
    """The commands that a worker may send to the owner."""

    def lease(caller: str, per_minute: int, per_day: int, need: int) -> Grant:
        return budgets.lease(caller, Tier("", per_minute, per_day), need, int(clock()))

    def give_back(minute: int, unspent: list[tuple[str, int]]) -> None:
        for caller, units in unspent:
            budgets.give_back(caller, units, minute)

    return {"lease": lease, "give_back": give_back}


class OwnedUsage:
    """Budgets and reported usage on their way to the store. Where it fails, what was not stored is kept and counted."""

    def __init__(self, budgets: Budgets, store: UsageStore) -> None:
        self._budgets = budgets
        self._store = store
        self._usage: list[UsageRow] = []
        self._requests: list[AnsweredRequest] = []
        self._taken: dict[str, int] = {}  # the last batch of each sender

    def record(self, sender: str, number: int, usage: list[Any], requests: list[Any]) -> None:
        """Take a batch of a worker. One that is sent again is not counted again. With a store that fails for long,
        the newest are dropped."""
        if number <= self._taken.get(sender, 0):
            return
        self._taken[sender] = number
        if len(self._usage) < _ROWS_MAX:
            self._usage += msgspec.convert(usage, list[UsageRow])
            self._requests += msgspec.convert(requests, list[AnsweredRequest])

    async def save(self) -> None:
        spent, usage, requests = self._budgets.changes(), self._usage, self._requests
        if spent or usage:
            self._usage, self._requests = [], []
            try:
                await self._store.save(spent, usage, requests)
            except Exception:
                self._usage, self._requests = usage + self._usage, requests + self._requests
                self._budgets.keep_changes(spent)
                raise

    async def save_until(self, stopped: asyncio.Event) -> None:
        """Save once a second and at the end. It must not be cancelled: the store may commit what was begun, and what
        was put back would be counted twice."""
        while True:
            is_last = stopped.is_set()
            with suppress(StoreError):  # a full disk, a server that is gone: the budgets in memory hold on
                await self.save()
            if is_last:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_SAVE_S):
                    await stopped.wait()


async def serve_budgets(data_dir: Path, open_store: Callable[[], Store], *, drops_old: bool = True) -> None:
    """Own the budgets as soon as no other process does, until cancelled. They go on as the last owner stored them.

    `drops_old`: deletes rows that are too old as well, which the role of a reader may not."""
    lock = await _lock(data_dir / "run" / "limits.lock")
    store, budgets = UsageStore(ReopenedStore(open_store)), Budgets()
    await _load(budgets, store)
    usage = OwnedUsage(budgets, store)
    commands = {**budget_commands(budgets), "record": usage.record}
    server = SocketServer(budget_socket(data_dir), commands, lambda: lambda: None)
    stopped = asyncio.Event()
    saving = asyncio.create_task(usage.save_until(stopped))
    dropping = [asyncio.create_task(store.drop_old_forever())] if drops_old else []
    try:
        while True:
            try:
                await server.start()
                break
            except (OSError, StartRefused):  # until then each worker grants its share
                await asyncio.sleep(_RETRY_S)
        await asyncio.Event().wait()
    finally:
        await server.stop()
        for task in dropping:
            task.cancel()
        stopped.set()
        await asyncio.gather(saving, *dropping, return_exceptions=True)
        store.close()
        lock.release()


async def _load(budgets: Budgets, store: UsageStore) -> None:
    """Load the counters as soon as the store can be opened; until then each worker grants its share."""
    while True:
        try:
            budgets.load(await store.spent_today(time.time()))
            return
        except StoreError:
            await asyncio.sleep(_RETRY_S)


async def _lock(path: Path) -> StoreLock:
    while True:
        try:
            return StoreLock(path)
        except StoreError:
            await asyncio.sleep(_RETRY_S)


class StoredBudgets:
    """Called by `BudgetLeases` in place of the owner's socket. Rows of callers that were not seen for long are deleted
    by the writer of the store: the role of a reader may not."""

    def __init__(self, open_store: Callable[[], Store], clock: Callable[[], float] = time.time) -> None:
        self._store = ReopenedStore(open_store)
        self._clock = clock

    async def call(self, command: str, **params: Any) -> Any:
        commands: dict[str, Callable[..., Callable[[Transaction], Any]]]
        commands = {"lease": self._lease, "give_back": self._give_back}
        return await self._store.write(commands[command](**params))

    def close(self) -> None:
        self._store.close()

    def _lease(self, caller: str, per_minute: int, per_day: int, need: int) -> Callable[[Transaction], Grant]:
        now = int(self._clock())

        def change(tx: Transaction) -> Grant:
            tx.run(SQL.open_spent, {"caller": caller, "minute": now // MINUTE_S, "day": now // DAY_S})
            budgets = _stored(tx, caller)
            grant = budgets.lease(caller, Tier("", per_minute, per_day), need, now)
            _put(tx, budgets)
            return grant

        return change

    def _give_back(self, minute: int, unspent: list[tuple[str, int]]) -> Callable[[Transaction], None]:
        def change(tx: Transaction) -> None:
            for caller, units in sorted(unspent):  # in one order everywhere: two workers never wait for each other
                budgets = _stored(tx, caller)
                budgets.give_back(caller, units, minute)
                _put(tx, budgets)

        return change


def _stored(tx: Transaction, caller: str) -> Budgets:
    """Read the budget of one caller, whose row is locked until the end of the transaction."""
    budgets = Budgets()
    budgets.load(Spent(*row) for row in tx.rows(SQL.spent, {"caller": caller}))
    return budgets


def _put(tx: Transaction, budgets: Budgets) -> None:
    tx.run_many(SQL.put_spent, [one._asdict() for one in budgets.changes()])
