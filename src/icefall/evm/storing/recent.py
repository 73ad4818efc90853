"""The tables of an embedded store that are in two parts, and how rows move from the first to the second.

Every transfer adds rows to these tables at places all over them. Inserted into a large table, each row would change a
page of its own, and each changed page is written to disk twice: the cost of a transfer would grow with the chain. So
rows are inserted into a part that stays small, and moved to the large one in the order of their keys, round and round:
then many of them share a page. A server does that by itself, with its memory and its own log.
"""

from collections.abc import Mapping
from typing import Any

from icefall.db.copying import StoredTable
from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.storing.writing import Steps

SQL = load("icefall.evm.storing", "recent.sql")
RECENT_ROWS = 1_000_000  # of each table. More of them share a page when they move, but more pages change until then.
STEP_ROWS = 8_192  # moved at once: some milliseconds
_BEFORE_ALL = -1  # before every value of a key, also before bytes


SPLIT_TABLES = (
    StoredTable("native_of", ("address", "tx_at"), ("address", "tx_at")),
    StoredTable("touch_of", ("address", "tx_at"), ("address", "tx_at")),
    StoredTable("erc20_of", ("address", "log_at"), ("address", "log_at")),
    StoredTable("tx_by_hash", ("prefix", "block"), ("prefix", "block")),
    StoredTable("native_balance", ("address", "block", "balance", "before"), ("address", "block")),
    StoredTable("erc20_balance", ("holder", "token", "block", "balance"), ("holder", "token", "block")),
    StoredTable("erc20_holding", ("holder", "token_address", "token", "baseline"), ("holder", "token_address")),
)


class RecentRows:
    """The mover of rows of one store. Call `forget` after a transaction that did not commit, or that deleted rows."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # rows in the first part
        self._moved_to: dict[str, tuple[Any, ...]] = {}  # the key up to which rows were moved in this round

    def forget(self) -> None:
        self._counts.clear()

    def move(self, tx: Transaction, added: Mapping[str, int]) -> Steps:
        """Move what is too many. `added`: how many rows the same transaction has inserted, by table."""
        for table in SPLIT_TABLES:
            name = table.name
            self._counts[name] = self._counts[name] + added.get(name, 0) if name in self._counts else _count(tx, table)
            while self._counts[name] >= RECENT_ROWS + STEP_ROWS:
                self._move_step(tx, table)
                yield

    def _move_step(self, tx: Transaction, table: StoredTable) -> None:
        after = self._moved_to.pop(table.name, (_BEFORE_ALL,) * len(table.key))
        found = tx.rows(table.filled(SQL.last_of_step), (*after, STEP_ROWS - 1))
        for last in found or tx.rows(table.filled(SQL.last)):
            tx.run(table.filled(SQL.copy_step), (*after, *last))
            self._counts[table.name] -= tx.run(table.filled(SQL.drop_step), (*after, *last))
        if found:
            self._moved_to[table.name] = found[0]
        else:  # a round has ended
            self._counts[table.name] = _count(tx, table)


def _count(tx: Transaction, table: StoredTable) -> int:
    return int(tx.rows(table.filled(SQL.count))[0][0])


def clear_recent(tx: Transaction) -> None:
    for table in SPLIT_TABLES:
        tx.run(table.filled(SQL.clear))
