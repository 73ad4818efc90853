"""Reads the results of enrichment for the API: token and NFT metadata, prices, reputations. Each is one index seek."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import msgspec

from icefall.db.changes import StampedCache
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
CACHED_MAX = 50_000  # addresses whose details are cached, most of them of no token


class TokenDetails(msgspec.Struct, frozen=True):
    """Name and symbol empty, `decimals` None: the contract returned no valid one, or was not called yet (`is_read`).
    While they are read again, those that were read before stay."""

    name: str = ""
    symbol: str = ""
    decimals: int | None = None
    price: str | None = None  # in the requested currency
    logo_uri: str = ""  # of the operator's token list
    is_read: bool = False  # from the contract or from the list
    is_listed: bool = False  # on that list


class ListedToken(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token as the operator's token list describes it; so it is stored, as JSON."""

    name: str
    symbol: str
    decimals: int
    logo_uri: str = ""


def details_of(
    name: str | None, symbol: str | None, decimals: int | None, price: str | None, listed: str | None
) -> TokenDetails:
    """Make details of what the contract returned and, where it returned nothing, of the stored `listed`."""
    if listed is None:
        return TokenDetails(name or "", symbol or "", decimals, price, is_read=name is not None)
    known = _LISTED_DECODER.decode(listed)
    decimals = known.decimals if decimals is None else decimals
    name, symbol = name or known.name, symbol or known.symbol
    return TokenDetails(name, symbol, decimals, price, known.logo_uri, is_read=True, is_listed=True)


_LISTED_DECODER = msgspec.json.Decoder(ListedToken)


class NftDetails(msgspec.Struct, frozen=True):
    """`read_at`: when it was read, in Unix seconds; None: not read yet."""

    token_uri: str = ""
    status: str = IndexStatus.UNINDEXED.name
    read_at: int | None = None
    metadata: NftMetadata = NftMetadata()


class AnswerTokens:
    """What is known of tokens, with prices in one currency. `details` by ID, None for an ID that is no token; `native`
    is the price of the native token, UNSET if it was not read. `texts` is what callers make of addresses and details,
    by its kind and then by address and ID: all is replaced whenever the store has changed. The ID is part of the key,
    as an answer that is read again, because its ID belongs to another address since, leaves its texts."""

    __slots__ = ("details", "native", "texts")

    def __init__(self) -> None:
        self.texts: dict[str, dict[tuple[bytes, int], str]] = defaultdict(dict)
        self.details: dict[int, TokenDetails | None] = {}
        self.native: str | msgspec.UnsetType | None = msgspec.UNSET


ReadDetails = Callable[[list[int], str], Awaitable[dict[int, TokenDetails]]]


class EnrichReader:
    """Details of tokens are cached for one version of the store: at the head of a chain that is once per block.

    `read_details` reads them by ID, in a currency: `token_details` of the chain's lists.
    """

    def __init__(self, reader: Reader, read_details: ReadDetails) -> None:
        self._reader = reader
        self._read_details = read_details
        self._cache: StampedCache[dict[str, AnswerTokens]] = StampedCache(dict)  # by currency

    async def answer_tokens(self, tokens: Iterable[int], currency: str) -> AnswerTokens:
        """Return details of at least these token IDs; at most one query."""
        known = self._answer_tokens(currency)
        if missing := set(tokens).difference(known.details):
            found = await self._read_details(list(missing), currency)
            known.details.update((token, found.get(token)) for token in missing)
        return known

    def known_tokens(self, currency: str) -> AnswerTokens | None:
        """Return what is cached of the store as it is now; None where nothing is."""
        known = self._answer_tokens(currency)
        return known if known.details else None

    async def priced_tokens(self, tokens: Iterable[int], currency: str) -> dict[int, TokenDetails]:
        """Return details with current prices by token ID, in at most one query; IDs that are not tokens are left
        out."""
        wanted = list(tokens)
        known = (await self.answer_tokens(wanted, currency)).details
        return {token: details for token in wanted if (details := known[token]) is not None}

    def _answer_tokens(self, currency: str) -> AnswerTokens:
        """Return those of the cache, if the store has not changed since."""
        version = self._reader.version()
        if version is None:
            return AnswerTokens()
        by_currency = self._cache.of(version)
        known = by_currency.get(currency)
        if known is None or len(known.details) > CACHED_MAX:
            known = by_currency[currency] = AnswerTokens()
        return known

    async def malicious_of(self, addresses: Iterable[bytes]) -> set[bytes]:
        """Return the tokens among these addresses that the reputation list calls malicious."""
        rows = await self._reader.rows_of_each(SQL.malicious_of, [(one,) for one in sorted(set(addresses))])
        return {address for (address,) in rows}

    async def nft_metadata(self, nfts: Iterable[tuple[int, int]]) -> dict[tuple[int, int], NftDetails]:
        """Return details by token and NFT ID. An NFT that was never transferred is UNINDEXED."""
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
        known = self._answer_tokens(currency)
        if known.native is msgspec.UNSET:
            known.native = await self.current_price(NATIVE_ADDRESS, currency)
        return known.native

    async def current_price(self, token_address: bytes, currency: str) -> str | None:
        return await self._price(token_address, currency, NOW)

    async def _price(self, token_address: bytes, currency: str, day: int) -> str | None:
        key = {"token_address": token_address, "currency": currency, "day": day}
        rows = await self._reader.rows(SQL.price, key)
        return str(rows[0][0]) if rows else None
