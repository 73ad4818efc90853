"""Reads the results of enrichment for the API: token and NFT metadata, prices, reputations. Each is one index seek."""

from collections.abc import Iterable

import msgspec

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.evm.amounts import pack_uint, unpack_uint
from icefall.evm.enriching.listed import NATIVE_ADDRESS, NOW
from icefall.evm.enriching.nft_metadata import NftMetadata, unpack
from icefall.evm.enriching.nft_outcomes import DAY_S, IndexStatus

SQL = load("icefall.evm.enriching", "queries.sql")


class TokenDetails(msgspec.Struct, frozen=True):
    """Name and symbol empty, `decimals` None: the contract returned no valid one, or was not called yet. While they are
    read again, those that were read before are kept."""

    name: str = ""
    symbol: str = ""
    decimals: int | None = None
    price: str | None = None  # in the requested currency


class NftDetails(msgspec.Struct, frozen=True):
    """`read_at`: when it was read, in Unix seconds; None: not read yet."""

    token_uri: str = ""
    status: str = IndexStatus.UNINDEXED.name
    read_at: int | None = None
    metadata: NftMetadata = NftMetadata()


class EnrichReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def priced_tokens(self, tokens: Iterable[int], currency: str) -> dict[int, TokenDetails]:
        """By token ID, with current prices, in one query; IDs that are not tokens are left out."""
        rows = await self._reader.rows(SQL.priced_tokens, {"tokens": list(tokens), "currency": currency})
        return {
            token: TokenDetails(name or "", symbol or "", decimals, price)
            for token, name, symbol, decimals, price in rows
        }

    async def nft_metadata(self, nfts: Iterable[tuple[int, int]]) -> dict[tuple[int, int], NftDetails]:
        """By token and NFT ID. An NFT that was never transferred is UNINDEXED."""
        found = dict.fromkeys(nfts, NftDetails())
        keys = [(token, pack_uint(token_id)) for token, token_id in found]
        rows = await self._reader.rows_of_each(SQL.nft_metadata, keys)
        for token, token_id, status, uri, read_at, metadata in rows:
            found[token, unpack_uint(token_id)] = NftDetails(uri, status, read_at, unpack(metadata))
        return found

    async def historic_price(self, token_address: bytes, currency: str, time: int) -> str | None:
        """The price on the UTC day of a Unix time."""
        return await self._price(token_address, currency, time // DAY_S)

    async def native_price(self, currency: str) -> str | None:
        """The current price of the native token, as the provider writes it."""
        return await self.current_price(NATIVE_ADDRESS, currency)

    async def current_price(self, token_address: bytes, currency: str) -> str | None:
        return await self._price(token_address, currency, NOW)

    async def reputation(self, token_addresses: Iterable[bytes]) -> dict[bytes, str]:
        """Malicious or Benign, for the addresses on the list."""
        keys = [(address,) for address in set(token_addresses)]
        return dict(await self._reader.rows_of_each(SQL.reputation, keys))

    async def _price(self, token_address: bytes, currency: str, day: int) -> str | None:
        key = {"token_address": token_address, "currency": currency, "day": day}
        rows = await self._reader.rows(SQL.price, key)
        return str(rows[0][0]) if rows else None
