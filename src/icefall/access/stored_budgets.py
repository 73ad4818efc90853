"""Budgets in the access store of a server: any number of workers on any machines share them.

Each lease is one short transaction, which locks the row of its caller. The arithmetic is that of `budgets.py`.
"""

import time
from collections.abc import Callable
from typing import Any

from icefall.access.budgets import DAY_S, MINUTE_S, Budgets, Grant, Spent, Tier
from icefall.access.store import SQL, ReopenedStore
from icefall.db.engine import Store, Transaction


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
