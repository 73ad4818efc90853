"""What enrichment has found out, as the API reads it: a seek for each thing asked, nothing that can change anything."""

from collections.abc import Iterable

import msgspec

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.evm.amounts import pack_uint
from icefall.evm.enriching.metadata import Metadata, unpack
from icefall.evm.enriching.outcomes import IndexStatus
from icefall.evm.enriching.prices import NATIVE_ADDRESS, NOW

SQL = load("icefall.evm.enriching", "queries.sql")
DAY_S = 86_400


class TokenFacts(msgspec.Struct, frozen=True):
    """`decimals` None: the contract has none that decode. `is_read` False: nobody has asked yet."""

    name: str = ""
    symbol: str = ""
    decimals: int | None = None
    is_read: bool = False
    price: str | None = None  # where it was asked for


class NftFacts(msgspec.Struct, frozen=True):
    """`read_at`: Unix seconds of what is told here; None: not read yet."""

    token_uri: str = ""
    status: str = IndexStatus.UNINDEXED.name
    read_at: int | None = None
    metadata: Metadata = Metadata()


class EnrichReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def token_facts(self, tokens: Iterable[int]) -> dict[int, TokenFacts]:
        """By interned token; those that are no tokens are left out."""
        found = {}
        for token in set(tokens):
            for name, symbol, decimals, read_at in await self._reader.rows(SQL.token_facts, {"token": token}):
                found[token] = TokenFacts(name or "", symbol or "", decimals, read_at is not None)
        return found

    async def priced_tokens(self, tokens: Iterable[int], currency: str) -> dict[int, TokenFacts]:
        """The same with current prices, in one query."""
        rows = await self._reader.rows(SQL.priced_tokens, {"tokens": str(list(tokens)), "currency": currency})
        return {
            token: TokenFacts(name or "", symbol or "", decimals, read_at is not None, price)
            for token, name, symbol, decimals, read_at, price in rows
        }

    async def nft_metadata(self, nfts: Iterable[tuple[int, int]]) -> dict[tuple[int, int], NftFacts]:
        """By interned token and token ID. Of those nobody has seen there is nothing but UNINDEXED."""
        found = {}
        for token, token_id in set(nfts):
            key = {"token": token, "token_id": pack_uint(token_id)}
            facts = NftFacts()
            for status, uri, read_at, metadata in await self._reader.rows(SQL.nft_metadata, key):
                facts = NftFacts(uri, status, read_at, unpack(metadata))
            found[token, token_id] = facts
        return found

    async def price(self, token_address: bytes, currency: str) -> str | None:
        """The current price of a token, as the provider wrote it; NATIVE_ADDRESS for the native one."""
        return await self._price(token_address, currency, NOW)

    async def historic_price(self, token_address: bytes, currency: str, time: int) -> str | None:
        """The price of the UTC day that a Unix time lies in."""
        return await self._price(token_address, currency, time // DAY_S)

    async def prices(self, token_addresses: Iterable[bytes], currency: str) -> dict[bytes, str]:
        """Current prices of those that have one."""
        found = {address: await self.price(address, currency) for address in set(token_addresses)}
        return {address: value for address, value in found.items() if value is not None}

    async def native_price(self, currency: str) -> str | None:
        return await self.price(NATIVE_ADDRESS, currency)

    async def reputation(self, token_addresses: Iterable[bytes]) -> dict[bytes, str]:
        """Malicious or Benign, of those that are on a list."""
        found = {}
        for address in set(token_addresses):
            for (word,) in await self._reader.rows(SQL.reputation, {"token_address": address}):
                found[address] = word
        return found

    async def _price(self, token_address: bytes, currency: str, day: int) -> str | None:
        key = {"token_address": token_address, "currency": currency, "day": day}
        rows = await self._reader.rows(SQL.price, key)
        return str(rows[0][0]) if rows else None
