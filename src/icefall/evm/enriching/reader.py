"""Reads the results of enrichment for the API: token and NFT metadata, prices, reputations. Each is one index seek."""

import asyncio
from collections.abc import Iterable
from typing import Literal

import msgspec

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.evm.encoding import pack_uint, unpack_uint
from icefall.evm.enriching.nft_metadata import NftMetadata, unpack
from icefall.evm.enriching.nft_outcomes import DAY_S, IndexStatus

CURRENCIES = ("usd", "eur", "aud", "cad", "chf", "clp", "cny", "czk", "dkk", "gbp", "hkd", "huf", "jpy", "nzd")
NATIVE_ADDRESS = b""  # price.token_address of the native token
NOW = -1  # price.day of the current price
Reputation = Literal["Malicious", "Benign"]


SQL = load("icefall.evm.enriching", "queries.sql")
KEPT_MAX = 50_000  # addresses whose details are kept, most of them of no token


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


class AnswerTokens:
    """What is known of tokens, with prices in one currency. `details` by ID, None for an ID that is no token; `native`
    is the price of the native token, UNSET if it was not read. `parties`, `erc20_tokens` and `held_tokens` are what
    presenting has made of it, as JSON by address."""

    __slots__ = ("details", "erc20_tokens", "held_tokens", "native", "parties")

    def __init__(self) -> None:
        self.details: dict[int, TokenDetails | None] = {}
        self.native: str | msgspec.UnsetType | None = msgspec.UNSET
        self.parties: dict[bytes, str] = {}
        self.erc20_tokens: dict[bytes, str] = {}
        self.held_tokens: dict[bytes, str] = {}


class EnrichReader:
    """Details of tokens are kept until the store changes: at the head of a chain that is once per block."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._kept: dict[str, AnswerTokens] = {}  # by currency
        self._kept_at: int | None = None

    async def answer_tokens(self, tokens: Iterable[int], currency: str) -> AnswerTokens:
        """Of at least these IDs, in one query at most."""
        kept = self._answer_tokens(currency)
        if missing := set(tokens).difference(kept.details):
            found = await self._priced_tokens(list(missing), currency)
            kept.details.update((token, found.get(token)) for token in missing)
        return kept

    async def priced_tokens(self, tokens: Iterable[int], currency: str) -> dict[int, TokenDetails]:
        """By token ID, with current prices, in one query at most; IDs that are not tokens are left out."""
        wanted = list(tokens)
        kept = (await self.answer_tokens(wanted, currency)).details
        return {token: details for token in wanted if (details := kept[token]) is not None}

    def _answer_tokens(self, currency: str) -> AnswerTokens:
        """Those that are kept, if the store has not changed since."""
        version = self._reader.version()
        if version is None:
            return AnswerTokens()
        if version != self._kept_at:
            self._kept_at, self._kept = version, {}
        kept = self._kept.get(currency)
        if kept is None or len(kept.details) > KEPT_MAX:
            kept = self._kept[currency] = AnswerTokens()
        return kept

    async def _priced_tokens(self, tokens: list[int], currency: str) -> dict[int, TokenDetails]:
        if self._reader.prefers_flat:
            return await self._flat_tokens(tokens, currency)
        rows = await self._reader.rows(SQL.priced_tokens, {"tokens": tokens, "currency": currency})
        return {
            token: TokenDetails(name or "", symbol or "", decimals, price)
            for token, name, symbol, decimals, price in rows
        }

    async def _flat_tokens(self, tokens: list[int], currency: str) -> dict[int, TokenDetails]:
        rows, ids = await asyncio.gather(
            self._reader.rows(SQL.tokens_alone, {"tokens": tokens}),
            self._reader.rows(SQL.addresses_alone, {"tokens": tokens}),
        )
        address_of: dict[int, bytes] = dict(ids)
        keys = [(address_of[row[0]], currency) for row in rows if row[0] in address_of]
        prices: dict[bytes, str] = dict(await self._reader.rows_of_each(SQL.prices_alone, keys))
        return {
            token: TokenDetails(name or "", symbol or "", decimals, prices.get(address_of.get(token, b"")))
            for token, name, symbol, decimals in rows
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
        kept = self._answer_tokens(currency)
        if kept.native is msgspec.UNSET:
            kept.native = await self.current_price(NATIVE_ADDRESS, currency)
        return kept.native

    async def current_price(self, token_address: bytes, currency: str) -> str | None:
        return await self._price(token_address, currency, NOW)

    async def _price(self, token_address: bytes, currency: str, day: int) -> str | None:
        key = {"token_address": token_address, "currency": currency, "day": day}
        rows = await self._reader.rows(SQL.price, key)
        return str(rows[0][0]) if rows else None
