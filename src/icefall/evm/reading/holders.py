"""Holders of a token, as the indexer has counted them in the background."""

import asyncio
from typing import Literal

import msgspec

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.model import ERC20
from icefall.evm.standards import WITH_IDS

SQL = load("icefall.evm.reading", "holders.sql")
CANDIDATES_MAX = 20_000  # former holders read to fill a page
_PIECE = 1_000
_LAST_BALANCE = b"\xff"
NFTS = tuple(standard.number for standard in WITH_IDS)


class HolderTotal(msgspec.Struct, frozen=True, gc=False):
    standard: int
    holders: int
    tokens: int  # NFTs that exist; where amounts of an ID are held, IDs that ever moved


class HolderRead(msgspec.Struct, frozen=True, gc=False):
    ref: int
    address: bytes
    balance: int  # of NFTs: how many IDs it holds


class TokenTrust(msgspec.Struct, frozen=True, gc=False):
    """Whether the stored balances of a token are right. They come from its storage, from logs that audits compared with
    its state, or from logs alone."""

    is_trusted: bool
    balance_source: Literal["storage", "audited", "logs"]


class HolderReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def totals(self, token: bytes) -> list[HolderTotal]:
        """Return totals by standard; none for a token whose transfers are not counted yet."""
        return [HolderTotal(*row) for row in await self._reader.rows(SQL.total, {"address": token})]

    async def trust(self, token: bytes) -> TokenTrust:
        """Whether the stored balances of a token are right, and how that is known."""
        rows = await self._reader.rows(SQL.trust, {"address": token})
        return TokenTrust(not rows[0][0], rows[0][1]) if rows else TokenTrust(False, "logs")

    async def by_balance(
        self, token: bytes, standard: int, after: tuple[int, int] | None, limit: int
    ) -> list[HolderRead]:
        """Largest first, behind (balance, ID)."""
        balance, holder = (_LAST_BALANCE, 0) if after is None else (pack_uint(after[0]), after[1])
        where = {"address": token, "standard": standard, "balance": balance, "holder": holder, "limit": limit}
        return [_holder(row) for row in await self._reader.rows(SQL.by_balance, where)]

    async def by_id(self, token: bytes, standard: int, after: int, limit: int) -> tuple[list[HolderRead], int | None]:
        """Holders of now, and the ID behind which the next page begins. A page may be short although more follow."""
        found: list[HolderRead] = []
        read, count = 0, limit + 1  # most candidates still hold some: a piece of 1,000 would be read for ten
        while read < CANDIDATES_MAX:
            where = {"address": token, "standard": standard, "after": after, "limit": count}
            rows = [_holder(row) for row in await self._reader.rows(SQL.by_id, where)]
            found += [row for row in rows if row.balance]
            if len(found) > limit:
                return found[:limit], found[limit - 1].ref
            if len(rows) < count:
                return found, None
            after = rows[-1].ref
            read, count = read + count, min(2 * count, _PIECE)
            await asyncio.sleep(0)
        return found, after

    async def above(
        self, token: bytes, threshold: int, blocks: range, after: int, limit: int
    ) -> tuple[list[HolderRead], int | None]:
        """Find who held more than the threshold of an ERC-20 token at some block of the range, by ID."""
        found: list[HolderRead] = []
        read = 0
        while read < CANDIDATES_MAX:
            count = min(limit + 1, _PIECE)
            where = {"address": token, "standard": ERC20, "after": after, "limit": count}
            rows = [_holder(row) for row in await self._reader.rows(SQL.by_id, where)]
            for row in rows:
                if await self._held_more(token, row.ref, threshold, blocks):
                    found.append(row)
                    if len(found) > limit:
                        return found[:limit], found[limit - 1].ref
                after = row.ref
            if len(rows) < count:
                return found, None
            read += len(rows)
            await asyncio.sleep(0)
        return found, after

    async def _held_more(self, token: bytes, holder: int, threshold: int, blocks: range) -> bool:
        at = {"holder": holder, "address": token}
        ((before,),) = await self._reader.rows(SQL.balance_before, {**at, "block": blocks.start})
        if before is not None and unpack_uint(before) > threshold:
            return True
        low, packed = blocks.start, pack_uint(threshold)
        while True:
            span = {"low": low, "high": blocks.stop, "limit": _PIECE}
            rows = await self._reader.rows(SQL.balances_between, {**at, **span})
            if any(balance > packed for _, balance in rows):
                return True
            if len(rows) < _PIECE:
                return False
            low = rows[-1][0] + 1
            await asyncio.sleep(0)


def _holder(row: tuple[int, bytes, bytes]) -> HolderRead:
    return HolderRead(row[0], row[1], unpack_uint(row[2]))
