"""The tokens of a chain: lists, search by name or symbol, single contracts and NFTs, and daily prices."""

import msgspec

from icefall.db.engine import Reader, Row
from icefall.db.statements import load
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.enriching.name_parts import beginning, beginning_of_parts, lowered
from icefall.evm.enriching.reader import details_of
from icefall.evm.model import ProbedStandard
from icefall.evm.reading.model import AFTER_ALL
from icefall.evm.reading.nft_ranges import NftRangeReader
from icefall.evm.standards import STANDARDS, Holding

SQL = load("icefall.evm.reading", "tokens.sql")
SEARCH_MAX = 2_000  # contracts read to find those of a standard
PLACES_MAX = 3  # in a name, on average, at which the searched text occurs


class TokenRead(msgspec.Struct, frozen=True, gc=False):
    token_ref: int
    address: bytes
    first_block: int
    erc_type: str
    name: str
    symbol: str
    decimals: int | None
    logo_uri: str = ""
    is_listed: bool = False  # on the operator's token list

    @property
    def cursor(self) -> tuple[int, ...]:
        return (self.first_block, self.token_ref)


class ContractRead(msgspec.Struct, frozen=True, gc=False):
    """`erc_type` is empty for a contract without transfers; `decimals` None: its `decimals()` does not decode."""

    erc_type: str
    name: str
    symbol: str
    decimals: int | None
    has_code: bool
    is_read: bool  # name, symbol and decimals


class NftRead(msgspec.Struct, frozen=True, gc=False):
    token_ref: int
    token_id: int
    holding: Holding


class DayPrice(msgspec.Struct, frozen=True, gc=False):
    day: int  # of UTC, since 1970
    value: str


class TokenReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._ranges = NftRangeReader(reader)

    async def tokens(
        self, before: tuple[int, ...] | None, limit: int, wanted: str | None = None
    ) -> tuple[list[TokenRead], tuple[int, ...] | None]:
        """A page, by first transfer and newest first, and where the next one begins; None after the last.

        At most SEARCH_MAX contracts are read for one standard: a page may be short although more follow.
        """
        block, token = before or (AFTER_ALL, 0)
        found: list[TokenRead] = []
        read, count = 0, min(limit + 1, SEARCH_MAX)
        while True:
            rows = await self._reader.rows(SQL.tokens, {"block": block, "token": token, "limit": count})
            listed = [token_of(row) for row in rows]
            found += [one for one in listed if wanted in (None, one.erc_type)]
            if len(found) > limit:
                return found[:limit], found[limit - 1].cursor
            if len(rows) < count:
                return found, None
            block, token = listed[-1].cursor
            read += count
            if read >= SEARCH_MAX:
                return found, (block, token)
            count = min(2 * count, SEARCH_MAX - read)

    async def search(self, text: str, limit: int) -> list[TokenRead]:
        """Tokens with the text in their name or symbol, in any case of ASCII letters.

        First those whose symbol begins with it, then those whose name does. A single character is looked for at the
        beginning only. A name may have the text in several places: so many are read that a page is seldom short.
        """
        low = lowered(text)
        found: dict[int, TokenRead] = {}
        for statement in (SQL.tokens_by_symbol, SQL.tokens_by_name):
            for row in await self._reader.rows(statement, {**beginning(text), "limit": limit}):
                found.setdefault(row[0], token_of(row))
        if len(found) < limit and len(low) > 1:
            where = {**beginning_of_parts(text), "limit": PLACES_MAX * limit}
            for row in await self._reader.rows(SQL.tokens_by_part, where):
                token = token_of(row)
                if low in lowered(token.name) or low in lowered(token.symbol):
                    found.setdefault(row[0], token)
        return list(found.values())[:limit]

    async def addresses_between(self, first: bytes, last: bytes, limit: int) -> list[tuple[bytes, ContractRead]]:
        """Return known addresses from the first to the last one, in order."""
        where = {"low": first, "high": last, "limit": limit}
        return [(row[0], _contract(row[1:])) for row in await self._reader.rows(SQL.addresses_between, where)]

    async def token(self, address: bytes) -> TokenRead | None:
        """None if the address has moved no tokens."""
        rows = await self._reader.rows(SQL.token_at, {"address": address})
        return token_of(rows[0]) if rows else None

    async def contract(self, address: bytes) -> ContractRead | None:
        """None if the address does not occur in the index."""
        rows = await self._reader.rows(SQL.contract, {"address": address})
        return _contract(rows[0]) if rows else None

    async def nfts(self, contract: bytes, after: bytes, limit: int) -> list[NftRead]:
        """NFTs of a contract by ID, behind the packed ID `after`; burned ones too."""
        where = {"address": contract, "after": after, "limit": limit}
        found = {row[1]: _nft(row) for row in await self._reader.rows(SQL.nfts_of_contract, where)}
        in_ranges = await self._ranges.of_contract(contract, after, limit)
        if not in_ranges:
            return list(found.values())
        found |= {pack_uint(token_id): NftRead(ref, token_id, Holding.OWNER) for ref, token_id in in_ranges}
        return [found[key] for key in sorted(found)[:limit]]

    async def nft(self, contract: bytes, token_id: int) -> NftRead | None:
        rows = await self._reader.rows(SQL.nft, {"address": contract, "token_id": pack_uint(token_id)})
        found = _nft(rows[0]) if rows else None
        if found is None or found.holding is not Holding.OWNER:
            in_range = await self._ranges.owner(contract, token_id)
            found = found if in_range is None else NftRead(in_range.token_ref, token_id, Holding.OWNER)
        return found

    async def prices(
        self, token_address: bytes, currency: str, first_day: int, last_day: int, limit: int
    ) -> list[DayPrice]:
        """Newest first. `token_address` is empty for the native token."""
        where = {"token_address": token_address, "currency": currency, "first": first_day, "last": last_day}
        return [DayPrice(*row) for row in await self._reader.rows(SQL.prices, {**where, "limit": limit})]


def erc_type(standards: int, probed: str | None) -> str:
    """The standard found by calling the contract, else the first standard of its transfers."""
    if standards and probed in (ProbedStandard.ERC20.value, ProbedStandard.ERC721.value):
        return probed
    return next((standard.name for standard in STANDARDS if standards & standard.number), "")


def token_of(row: Row) -> TokenRead:
    """Make a token of the columns of the fragment `token`."""
    token, address, first_block, standards, probed, name, symbol, decimals, listed = row
    known = details_of(name, symbol, decimals, None, listed)
    kind = erc_type(standards, probed)
    is_listed = listed is not None
    return TokenRead(
        token, address, first_block, kind, known.name, known.symbol, known.decimals, known.logo_uri, is_listed
    )


def _contract(row: Row) -> ContractRead:
    standards, probed, name, symbol, decimals, listed, has_code = row
    known = details_of(name, symbol, decimals, None, listed)
    kind, has = erc_type(standards or 0, probed), bool(has_code)
    return ContractRead(kind, known.name, known.symbol, known.decimals, has, known.is_read)


def _nft(row: Row) -> NftRead:
    token, token_id, has_owner = row
    return NftRead(token, unpack_uint(token_id), Holding.OWNER if has_owner else Holding.AMOUNT_BY_ID)
