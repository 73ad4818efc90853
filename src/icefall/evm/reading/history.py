"""How the balance of an address changed: its stored rows, and the last blocks of periods."""

import msgspec

from icefall.db.engine import Reader, Row
from icefall.db.statements import load
from icefall.evm.encoding import unpack_uint

SQL = load("icefall.evm.reading", "history.sql")


class BalanceChange(msgspec.Struct, frozen=True, gc=False):
    """The balance from this block on."""

    block: int
    time: int
    balance: int


class HistoryReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def native(self, address: bytes, low: int, high: int, limit: int) -> list[BalanceChange]:
        """Changes in the blocks from `low` to before `high`, newest first."""
        where = {"address": address, "low": low, "high": high, "limit": limit}
        return [_change(row) for row in await self._reader.rows(SQL.native_changes, where)]

    async def erc20(self, address: bytes, token: bytes, low: int, high: int, limit: int) -> list[BalanceChange]:
        where = {"address": address, "token": token, "low": low, "high": high, "limit": limit}
        return [_change(row) for row in await self._reader.rows(SQL.erc20_changes, where)]

    async def is_untrusted(self, address: bytes, token: bytes) -> bool | None:
        """Whether the stored balances of a holder of this ERC-20 token may be wrong; None: it never held any."""
        rows = await self._reader.rows(SQL.is_holder, {"address": address, "token": token})
        return bool(rows[0][0]) if rows else None

    async def periods(self, span: int) -> tuple[int, int] | None:
        """The first and the last period (metrics/periods.py) with a block; None: there is no block."""
        ((first, last),) = await self._reader.rows(SQL.periods, {"span": span})
        return None if first is None else (first, last)

    async def last_block(self, span: int, period: int) -> int | None:
        """The last block of a period, or of the newest one before it that has blocks."""
        rows = await self._reader.rows(SQL.last_block_of_period, {"span": span, "period": period})
        return rows[0][0] if rows else None


def _change(row: Row) -> BalanceChange:
    return BalanceChange(row[0], row[1], unpack_uint(row[2]))
