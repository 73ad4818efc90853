"""A store that writes down which statements were executed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from icefall.db.engine import Row, StatementParams, Store, Transaction

T = TypeVar("T")


class RecordedTransaction:
    def __init__(self, tx: Transaction, used: set[str]) -> None:
        self._tx = tx
        self._used = used

    def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        self._used.add(statement)
        return self._tx.rows(statement, params)

    def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        self._used |= {statement} if keys else set()
        return self._tx.rows_of_each(statement, keys)

    def run(self, statement: str, params: StatementParams = ()) -> int:
        self._used.add(statement)
        return self._tx.run(statement, params)

    def run_many(self, statement: str, params: Sequence[StatementParams]) -> None:
        self._used |= {statement} if params else set()
        self._tx.run_many(statement, params)


class RecordedStore:
    """`rows` answers without suspending, so that plain functions can ask."""

    def __init__(self, store: Store, used: set[str]) -> None:
        self._store = store
        self._used = used

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        return self.read(statement, params)

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        self._used |= {statement} if keys else set()
        return await self._store.rows_of_each(statement, keys)

    @property
    def is_embedded(self) -> bool:
        return self._store.is_embedded

    @property
    def joins_are_slow(self) -> bool:
        return self._store.joins_are_slow

    @property
    def generation(self) -> int:
        return self._store.generation

    def version(self) -> int | None:
        return self._store.version()

    async def current_version(self) -> int | None:
        return await self._store.current_version()

    def read(self, statement: str, params: StatementParams = ()) -> list[Row]:
        self._used.add(statement)
        return self._store.read(statement, params)

    def read_each(self, statement: str, params: Sequence[Mapping[str, Any]]) -> list[list[Row]]:
        self._used |= {statement} if params else set()
        return self._store.read_each(statement, params)

    async def write(self, change: Callable[[Transaction], T]) -> T:
        return await self._store.write(lambda tx: change(RecordedTransaction(tx, self._used)))

    async def write_in_steps(self, change: Callable[[Transaction], Iterator[None]]) -> None:
        await self._store.write_in_steps(lambda tx: change(RecordedTransaction(tx, self._used)))

    def write_here(self, change: Callable[[Transaction], T]) -> T:
        return self._store.write_here(lambda tx: change(RecordedTransaction(tx, self._used)))

    def close(self) -> None:
        self._store.close()
