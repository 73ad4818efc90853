"""A real store of a program that can be killed: at any statement of a transaction, before or after a commit.

A killed program writes nothing more; what it had not committed is not there when the file is opened again.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.store.opened import make_empty

from icefall.db.engine import Row, StatementParams, Transaction
from icefall.db.sqlite import SqliteStore

T = TypeVar("T")


class Killed(BaseException):
    """The program is dead: nothing of it may catch this and go on."""


class KillSwitch:
    """Kills at the n-th statement. `killed` may also be set from outside, at any moment."""

    def __init__(self, at_statement: int) -> None:
        self.killed = False
        self._left = at_statement

    def count(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self.killed = True
        if self.killed:
            raise Killed


class _CountedTransaction:
    def __init__(self, tx: Transaction, switch: KillSwitch) -> None:
        self._tx, self._switch = tx, switch

    def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        self._switch.count()
        return self._tx.rows(statement, params)

    def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        self._switch.count()
        return self._tx.rows_of_each(statement, keys)

    def run(self, statement: str, params: StatementParams = ()) -> int:
        self._switch.count()
        return self._tx.run(statement, params)

    def run_many(self, statement: str, params: Sequence[StatementParams]) -> None:
        self._switch.count()
        self._tx.run_many(statement, params)


class KillableStore(SqliteStore):
    def __init__(self, path: Path, package: str, switch: KillSwitch, on_commit: Callable[[], None]) -> None:
        make_empty(path, package)
        super().__init__(path, package)
        self._writer.execute("pragma synchronous = off")  # only a power cut would need more
        self._switch = switch
        self._on_commit = on_commit

    def write_here(self, change: Callable[[Transaction], T]) -> T:
        self._switch.count()  # before it begins
        result = super().write_here(lambda tx: change(_CountedTransaction(tx, self._switch)))
        self._on_commit()
        self._switch.count()  # committed, and the caller does not know it
        return result
