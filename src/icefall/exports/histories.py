"""The transactions and transfers of one address, and the transfers of one token, in the order of the chain, page by
page, for export jobs."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from icefall.db.engine import Reader, StatementParams
from icefall.db.statements import Statement
from icefall.evm.reading.lists.rows import transfers_of, tx_of
from icefall.evm.reading.model import InternalRead, TransferRead, TxRead
from icefall.evm.reading.transfers import internals_read
from icefall.evm.standards import STANDARDS, load_statements

SQL = load_statements("icefall.exports", "histories.sql")
HistoryRow = TxRead | InternalRead | TransferRead
TRANSACTIONS, INTERNALS = "transactions", "internal_transactions"
_TRANSFERS = tuple(f"{one.table}_transfers" for one in STANDARDS)
KINDS = (TRANSACTIONS, INTERNALS, *_TRANSFERS)


class HistorySpan(NamedTuple):
    """The rows of an address or token behind the cursor `after` and before the position `high`."""

    address: bytes
    after: tuple[int, int]
    high: int

    def where(self, limit: int) -> StatementParams:
        low, inside = self.after
        return {
            "address": self.address,
            "low": low,
            "inside": inside,
            "high": self.high,
            "limit": limit,
            "logs": limit + 1,
        }


async def transactions(reader: Reader, span: HistorySpan, limit: int) -> list[HistoryRow]:
    where = span.where(limit)
    return [tx_of(row) for row in await reader.rows(SQL.transactions, where)]


async def internals(reader: Reader, span: HistorySpan, limit: int) -> list[HistoryRow]:
    return [*internals_read(await reader.rows(SQL.internals, span.where(limit)))]


HistoryRead = Callable[[Reader, HistorySpan, int], Awaitable[list[HistoryRow]]]


def _transfers(statement: Statement) -> HistoryRead:
    async def read(reader: Reader, span: HistorySpan, limit: int) -> list[HistoryRow]:
        return [*transfers_of(await reader.rows(statement, span.where(limit)))]

    return read


READERS: dict[str, HistoryRead] = {
    TRANSACTIONS: transactions,
    INTERNALS: internals,
    **{kind: _transfers(SQL.named(kind)) for kind in _TRANSFERS},
}
TOKEN_READERS: dict[str, HistoryRead] = {kind: _transfers(SQL.named(f"{kind}_in_token")) for kind in _TRANSFERS}


def cursor_of(row: HistoryRow) -> tuple[int, int]:
    """The place of a row among those of its kind: two numbers that ascend."""
    if isinstance(row, TransferRead):
        return (row.log_at, row.position)
    return (row.tx_at, row.frame) if isinstance(row, InternalRead) else (row.tx_at, 0)
