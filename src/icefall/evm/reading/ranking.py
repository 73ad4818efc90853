"""The tokens of a chain by holders, transfers, name or market value, and the totals of single ones.

Totals are those that the indexer has counted in the background (`evm/storing/holders.py`). Every list is keyed by its
last token, so that each page costs what the first one does. Tokens with a price are few, because the operator lists
them: they are read together and put in order here.
"""

from collections.abc import Awaitable, Callable, Iterable
from decimal import Decimal
from typing import Literal

import msgspec

from icefall.db.changes import StampedCache
from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.evm.encoding import unpack_uint
from icefall.evm.enriching.name_parts import lowered
from icefall.evm.model import ERC20
from icefall.evm.reading.model import AFTER_ALL
from icefall.evm.reading.tokens import SEARCH_MAX, TokenRead, token_of
from icefall.evm.standards import BY_NUMBER

SQL = load("icefall.evm.reading", "ranking.sql")
PRICED_MAX = 5_000  # tokens with a price that a list by market value knows
CURSOR_MAX = (1 << 62) - 1
_CENTS = Decimal(100)

TokenOrder = Literal["holders", "transfers", "name", "marketValue"]
Cursor = tuple[int, ...]
Step = tuple[TokenRead, Cursor]


class TokenTotals(msgspec.Struct, frozen=True, gc=False):
    """The counts of a token in one standard."""

    standard: int
    holders: int
    tokens: int  # NFTs that exist; where amounts of an ID are held, IDs that ever moved
    transfers: int
    balances: int  # the sum of all balances of an ERC-20 token

    @property
    def supply(self) -> int:
        """How much there is: the sum of all balances, or the number of NFTs."""
        return self.balances if self.standard == ERC20 else self.tokens


class TokenRanking:
    """Reads tokens in an order. A cursor is what `page` returned with the page before."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._valued: StampedCache[list[Step]] = StampedCache(list)

    async def totals(self, tokens: Iterable[TokenRead]) -> dict[int, TokenTotals]:
        """The totals of tokens in the standard that each is shown with, by ID; one query. Those that nothing is counted
        of yet are left out."""
        names = {token.token_ref: token.erc_type for token in tokens}
        rows = await self._reader.rows_of_each(SQL.totals, [(ref,) for ref in names])
        return {
            ref: TokenTotals(standard, holders, count, transfers, unpack_uint(supply))
            for ref, standard, holders, count, transfers, supply in rows
            if BY_NUMBER[standard].name == names[ref]
        }

    async def listed_namesakes(self, tokens: Iterable[TokenRead]) -> dict[int, bytes]:
        """Find listed tokens that share their name with tokens that are not listed; their addresses by the ID of the
        latter."""
        names = {token.token_ref: lowered(token.name) for token in tokens if token.name and not token.is_listed}
        rows = await self._reader.rows_of_each(SQL.listed_with_name, [(name,) for name in sorted(set(names.values()))])
        listed = {name: address for name, address in rows if address is not None}
        return {ref: listed[name] for ref, name in names.items() if name in listed}

    async def page(
        self, order: TokenOrder, after: Cursor | None, limit: int, wanted: str | None = None
    ) -> tuple[list[TokenRead], Cursor | None]:
        """A page of tokens, all or those of one standard, and its cursor; None after the last.

        At most SEARCH_MAX tokens are read for one standard: a page may be short although more follow.
        """
        steps: dict[TokenOrder, Callable[[Cursor | None, int], Awaitable[list[Step]]]] = {
            "holders": self._by_holders,
            "transfers": self._by_transfers,
            "name": self._by_name,
            "marketValue": self._by_value,
        }
        found: list[Step] = []
        read, count = 0, min(limit + 1, SEARCH_MAX)
        while True:
            rows = await steps[order](after, count)
            found += [step for step in rows if _is_shown(step[0], step[1], order, wanted)]
            if len(found) > limit:
                return [token for token, _ in found[:limit]], found[limit - 1][1]
            tokens = [token for token, _ in found]
            if len(rows) < count:
                return tokens, None
            after = rows[-1][1]
            read += count
            if read >= SEARCH_MAX:
                return tokens, after
            count = min(2 * count, SEARCH_MAX - read)

    async def _by_holders(self, after: Cursor | None, limit: int) -> list[Step]:
        return await self._counted(SQL.by_holders, after, limit)

    async def _by_transfers(self, after: Cursor | None, limit: int) -> list[Step]:
        return await self._counted(SQL.by_transfers, after, limit)

    async def _counted(self, statement: str, after: Cursor | None, limit: int) -> list[Step]:
        count, token, standard = after or (AFTER_ALL, 0, 0)
        where = {"count": count, "token": token, "standard": standard, "limit": limit}
        rows = await self._reader.rows(statement, where)
        return [(token_of(row[2:]), (row[0], row[2], row[1])) for row in rows]

    async def _by_name(self, after: Cursor | None, limit: int) -> list[Step]:
        (token,) = after or (-1,)
        where = {"token": token, "limit": limit}
        rows = list(await self._reader.rows(SQL.with_same_name, where)) if after else []
        if len(rows) < limit:
            rows += await self._reader.rows(SQL.with_later_name, where | {"limit": limit - len(rows)})
        return [(token_of(row), (row[0],)) for row in rows]

    async def _by_value(self, after: Cursor | None, limit: int) -> list[Step]:
        """Largest value first. Prices change all the time: a cursor holds the value with which a page ended."""
        priced = await self._priced()
        if after is not None:
            priced = [step for step in priced if step[1] < after]
        return priced[:limit]

    async def _priced(self) -> list[Step]:
        """All tokens with a price, by value; cached for one version of the store."""
        version = self._reader.version()
        found = [] if version is None else self._valued.of(version)
        if not found:
            rows = await self._reader.rows(SQL.priced, {"currency": "usd", "limit": PRICED_MAX})
            read = [(token := token_of(row[2:]), (_cents(token, row[1], row[0]), row[2])) for row in rows]
            found[:] = sorted(read, key=lambda step: step[1], reverse=True)
        return found


def _is_shown(token: TokenRead, cursor: Cursor, order: TokenOrder, wanted: str | None) -> bool:
    """Tell whether a token belongs to a list: once, in its own standard, although it may have totals in several."""
    if order in ("holders", "transfers") and BY_NUMBER[cursor[2]].name != token.erc_type:
        return False
    return wanted in (None, token.erc_type)


def _cents(token: TokenRead, supply: bytes | None, price: str) -> int:
    """The market value as a whole number that a page token can hold."""
    if supply is None or token.decimals is None:
        return 0
    return min(int(Decimal(unpack_uint(supply)).scaleb(-token.decimals) * Decimal(price) * _CENTS), CURSOR_MAX)
