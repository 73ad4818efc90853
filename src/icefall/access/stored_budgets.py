"""Budgets in the access store of a server: any number of workers on any machines share them.

Each lease is one short transaction, which locks the row of its caller. The arithmetic is that of `budgets.py`.
"""

import time
from collections.abc import Callable
from typing import Any

from icefall.access.budgets import DAY_S, MINUTE_S, Budgets, Grant, Tier
from icefall.access.store import SQL
from icefall.db.engine import Store, StoreLost, Transaction


class StoredBudgets:
    """Called by `BudgetLeases` in place of the owner's socket. Opens its store at the first lease, and again when the
    session was lost."""

    def __init__(self, open_store: Callable[[], Store], clock: Callable[[], float] = time.time) -> None:
        self._open_store = open_store
        self._clock = clock
        self._store: Store | None = None
        self._day = 0

    async def call(self, command: str, **params: Any) -> Any:
        commands: dict[str, Callable[..., Callable[[Transaction], Any]]]
        commands = {"lease": self._lease, "give_back": self._give_back}
        change = commands[command](**params)
        if self._store is None:
            self._store = self._open_store()
        try:
            return await self._store.write(change)
        except StoreLost:
            self._store.close()
            self._store = None
            raise

    def _lease(self, caller: str, per_minute: int, per_day: int, need: int) -> Callable[[Transaction], Grant]:
        now = int(self._clock())

        def change(tx: Transaction) -> Grant:
            self._drop_old(tx, now // DAY_S)
            spent = Budgets()
            at = {"minute": now // MINUTE_S, "day": now // DAY_S}
            tx.run(SQL.open_budget, {"caller": caller, **at})
            minute, minute_units, day, day_units = tx.rows(SQL.budget, {"caller": caller})[0]
            before = minute_units if minute == at["minute"] else 0, day_units if day == at["day"] else 0
            spent.restore(caller, now, *before)
            grant = spent.lease(caller, Tier("", per_minute, per_day), need, now)
            units = {"minute_units": before[0] + grant.units, "day_units": before[1] + grant.units}
            tx.run(SQL.put_budget, {"caller": caller, **at, **units})
            return grant

        return change

    def _give_back(self, minute: int, unspent: list[tuple[str, int]]) -> Callable[[Transaction], None]:
        def change(tx: Transaction) -> None:
            for caller, units in sorted(unspent):  # in one order everywhere: two workers never wait for each other
                for at_minute, minute_units, day, day_units in tx.rows(SQL.budget, {"caller": caller}):
                    if day == minute * MINUTE_S // DAY_S:
                        left = {"minute_units": minute_units, "day": day, "day_units": max(0, day_units - units)}
                        tx.run(SQL.put_budget, {"caller": caller, "minute": at_minute, **left})

        return change

    def _drop_old(self, tx: Transaction, day: int) -> None:
        """Once a day: callers that were not seen since."""
        if day != self._day:
            tx.run(SQL.drop_old_budgets, {"day": day})
            self._day = day
