"""Who held how much of a chain's native token: now, throughout some blocks, or at some time in them.

Native balances are stored by address and not by amount, so a question walks through all addresses that the chain has
named, a piece at a time. How many there may be, and how many changes are read, is bounded.
"""

import asyncio
from typing import NamedTuple

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.errors import BadRequest
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.reading.balances import BalanceReader

SQL = load("icefall.evm.reading", "native_holdings.sql")
ADDRESSES_MAX = 500_000  # that the chain has named
CHANGES_MAX = 2_000_000  # of balances, read for one question
UNKNOWN_MAX = 200  # balances that state is asked for
_AFTER_ALL = 1 << 40
_PIECE = 500
_CHANGES_PIECE = 1_000


class NativeQuestion(NamedTuple):
    """Who held at least so much throughout the blocks, or at some time in them. `blocks`: the first block of the time
    in question, and the first one behind it. What was held before the first block was held in this time too."""

    least: int
    blocks: range
    throughout: bool


class NativeHoldingReader:
    """The native balances of one chain. `balances` answers for an address whose balance at the time is not stored,
    because its first change was not seen as a difference."""

    def __init__(self, reader: Reader, balances: BalanceReader) -> None:
        self._reader = reader
        self._balances = balances

    async def now(self, least: int) -> set[bytes]:
        """Find who holds at least so much after the newest block."""
        return await self.of(NativeQuestion(least, range(_AFTER_ALL, _AFTER_ALL), throughout=True))

    async def of(self, question: NativeQuestion) -> set[bytes]:
        """Find the addresses that a question is about. BadRequest where it would read too much."""
        ((end,),) = await self._reader.rows(SQL.end)
        if end > ADDRESSES_MAX:
            raise BadRequest(
                f"this chain has named more than {ADDRESSES_MAX:,} addresses: its native balances are not searched"
            )
        walk = _Walk(self._reader, self._balances, question)
        for low in range(0, end, _PIECE):
            await walk.take(low, min(low + _PIECE, end))
            await asyncio.sleep(0)
        return walk.found


class _Walk:
    """The answer to one question so far, and what it may still read."""

    def __init__(self, reader: Reader, balances: BalanceReader, question: NativeQuestion) -> None:
        self.found: set[bytes] = set()
        self._reader = reader
        self._balances = balances
        self._asked = question
        self._changes_left = CHANGES_MAX
        self._calls_left = UNKNOWN_MAX

    async def take(self, low: int, high: int) -> None:
        """Look at the addresses with these numbers."""
        asked = self._asked
        blocks = {"block": asked.blocks.start, "stop": max(asked.blocks.stop, asked.blocks.start)}
        where = {"least": pack_uint(asked.least), "low": low, "high": high, "limit": _CHANGES_PIECE, **blocks}
        for number, address, balance, first, before, changes, enough in await self._reader.rows(SQL.held, where):
            if first is None:
                continue  # the chain has named it, and never changed its balance
            self._spend(changes)
            if asked.throughout and enough < changes:
                continue
            if not asked.throughout and enough:
                self.found.add(address)
                continue
            held = balance if balance is not None else before
            at_first = unpack_uint(held) if held is not None else await self._from_state(address)
            if (at_first >= asked.least) is not asked.throughout:
                if at_first >= asked.least:
                    self.found.add(address)
            elif await self._stays(number, changes) is asked.throughout:
                self.found.add(address)

    async def _stays(self, number: int, changes: int) -> bool:
        """Tell whether further changes leave an address what it was at first and after the changes that were counted:
        rich enough throughout, or never."""
        low, stop = self._asked.blocks.start, self._asked.blocks.stop
        while changes == _CHANGES_PIECE:
            where = {"id": number, "low": low, "high": stop, "limit": _CHANGES_PIECE}
            rows = await self._reader.rows(SQL.between, where)
            self._spend(len(rows))
            if any((unpack_uint(balance) >= self._asked.least) is not self._asked.throughout for _, balance in rows):
                return False
            changes, low = len(rows), rows[-1][0] + 1 if rows else stop
            await asyncio.sleep(0)
        return True

    async def _from_state(self, address: bytes) -> int:
        """Read the balance after the block before the time in question."""
        self._calls_left -= 1
        if self._calls_left < 0:
            raise BadRequest(f"the balances of more than {UNKNOWN_MAX} addresses are not stored for this time")
        return await self._balances.native(address, max(self._asked.blocks.start - 1, 0))

    def _spend(self, changes: int) -> None:
        self._changes_left -= changes
        if self._changes_left < 0:
            raise BadRequest(f"balances changed more than {CHANGES_MAX:,} times in this time: ask for a shorter one")
