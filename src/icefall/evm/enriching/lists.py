"""The lists of prices and reputations that an operator provides (docs/lists.md): where they come from, what they
contain and how they are stored.

A feed is a file that is read when it changes, or a URL that is polled. An import replaces the rows of its table by a
list, in one transaction.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from icefall.db.engine import Store, Transaction
from icefall.db.statements import load
from icefall.evm.enriching.guarded_fetcher import FetchFailed, GuardedFetcher, TooLarge
from icefall.evm.enriching.nft_outcomes import EnrichCounts
from icefall.evm.enriching.reader import CURRENCIES, NATIVE_ADDRESS, NOW, Reputation
from icefall.upstream.client import MALFORMED
from icefall.upstream.meter import Clock
from icefall.upstream.pool import PoolLog

SQL = load("icefall.evm.enriching", "queries.sql")
SIZE_MAX = 64 << 20  # bytes of a list
POINTS_MAX = 1_000_000
NATIVE = "native"
ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")  # of a token, as lists contain it
_VALUE = re.compile(r"(0|[1-9][0-9]{0,29})(\.[0-9]{1,30})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH = date(1970, 1, 1).toordinal()
_RETRY_S = 60.0
T = TypeVar("T")


class FeedError(Exception):
    """The list cannot be read or is invalid. What was imported before stays."""


# -- feeds -------------------------------------------------------------------------------------------------------


class FileFeed:
    """A file. It has changed if its modification time, size or inode differ."""

    def __init__(self, path: str) -> None:
        self.name = path
        self._path = Path(path)
        self._imported: tuple[int, int, int] | None = None
        self._pending: tuple[int, int, int] | None = None

    async def fresh(self) -> bytes | None:
        """The bytes of the file, if they differ from what was imported last."""
        try:
            stat = self._path.stat()
            self._pending = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if self._pending == self._imported:
                return None
            if stat.st_size > SIZE_MAX:
                raise FeedError(f"{self.name} has more than {SIZE_MAX} bytes")
            return await asyncio.to_thread(self._path.read_bytes)
        except OSError as error:
            self._pending = None  # a repaired file may have the same time and size
            raise FeedError(f"{self.name} cannot be read: {error.strerror}") from error

    def mark_imported(self) -> None:
        self._imported = self._pending


class HttpFeed:
    """A URL, fetched every `every_s` seconds; sooner after a failure."""

    def __init__(self, url: str, guard: GuardedFetcher, every_s: float, clock: Clock) -> None:
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.hostname}"  # path and query may contain a secret
        self._url = url
        self._guard = guard
        self._every_s = every_s
        self._clock = clock
        self._next_s = clock.now()
        self._last = self._pending = b""  # digests

    async def fresh(self) -> bytes | None:
        if self._clock.now() < self._next_s:
            return None
        self._next_s = self._clock.now() + min(self._every_s, _RETRY_S)
        try:
            body = await self._guard.get(self._url, trusted=True)
        except (FetchFailed, TooLarge) as error:
            raise FeedError(f"{self.name} cannot be fetched: {error}") from error
        self._next_s = self._clock.now() + self._every_s
        self._pending = hashlib.sha256(body).digest()
        return None if self._pending == self._last else body

    def mark_imported(self) -> None:
        self._last = self._pending


class FeedImport(Generic[T]):
    """The import of one list from its feed into its table. Without a feed the table is emptied once."""

    def __init__(
        self,
        name: str,
        feed: FileFeed | HttpFeed | None,
        parse: Callable[[bytes], T],
        put: Callable[[T, Transaction], None],
        empty: T,
        *,
        store: Store,
        counts: EnrichCounts,
        log: PoolLog,
    ) -> None:
        self._name = name
        self._feed = feed
        self._parse = parse
        self._put = put
        self._empty: T | None = empty
        self._store = store
        self._counts = counts
        self._log = log
        self._last_error = ""

    async def round(self) -> bool:
        """Import the list if it has changed. Return whether it had."""
        if self._feed is None:
            if self._empty is not None:
                await self._store.write(partial(self._put, self._empty))
                self._empty = None
            return False
        try:
            raw = await self._feed.fresh()
            if raw is None:
                return False
            rows = await asyncio.to_thread(self._parse, raw)
        except FeedError as error:
            self._feed.mark_imported()  # an invalid list is not parsed twice
            self._report(str(error))
            return False
        await self._store.write(partial(self._put, rows))
        self._feed.mark_imported()
        self._counts.lists_loaded[self._name] += 1
        self._last_error = ""
        return True

    def _report(self, error: str) -> None:
        self._counts.failures[self._name] += 1
        if error != self._last_error:
            self._log.warn(f"{self._name}: list not imported, the previous one stays", error=error)
            self._last_error = error


# -- prices ------------------------------------------------------------------------------------------------------


class _Series(msgspec.Struct, forbid_unknown_fields=True):
    current: str | None = None
    daily: dict[str, str] = {}


class _PriceDocument(msgspec.Struct, forbid_unknown_fields=True):
    currencies: dict[str, dict[str, _Series]]


class PricePoint(NamedTuple):
    """The place of a price: a token, a currency, and a day or NOW."""

    token_address: bytes
    currency: str
    day: int


Prices = dict[PricePoint, str]
_PRICES_DECODER = msgspec.json.Decoder(_PriceDocument)


def prices_of(raw: bytes) -> Prices:
    """Read all prices of a document; FeedError says where it is invalid."""
    try:
        document = _PRICES_DECODER.decode(raw)
    except MALFORMED as error:
        raise FeedError(f"not a list of prices: {error}") from None
    prices: Prices = {}
    for currency, tokens in document.currencies.items():
        if currency not in CURRENCIES:
            raise FeedError(f"currencies: {currency[:20]!r} is not one of {', '.join(CURRENCIES)}")
        for token, series in tokens.items():
            where = f"currencies.{currency}.{token[:50]}"
            address = _address(token, where)
            if series.current is not None:
                _add(prices, PricePoint(address, currency, NOW), series.current, where)
            for day, value in series.daily.items():
                _add(prices, PricePoint(address, currency, _day(day, where)), value, where)
    return prices


def put_prices(prices: Prices, tx: Transaction) -> None:
    """Make the table equal to the list; only differences are written."""
    stored = {PricePoint(address, currency, day): value for address, currency, day, value in tx.rows(SQL.prices)}
    tx.run_many(SQL.drop_price, [tuple(point) for point in stored if point not in prices])
    tx.run_many(SQL.put_price, [(*point, value) for point, value in prices.items() if stored.get(point) != value])


def _add(prices: Prices, point: PricePoint, value: str, where: str) -> None:
    if not _VALUE.fullmatch(value):
        raise FeedError(f"{where}: {value[:50]!r} is not a price such as 12.5")
    if point in prices:
        raise FeedError(f"{where}: the same token is listed twice")
    if len(prices) >= POINTS_MAX:
        raise FeedError(f"{where}: more than {POINTS_MAX} prices")
    prices[point] = value


def _address(text: str, where: str) -> bytes:
    if text == NATIVE:
        return NATIVE_ADDRESS
    if not ADDRESS.fullmatch(text):
        raise FeedError(f"{where}: expected {NATIVE} or an address of 0x and 40 hex digits")
    return bytes.fromhex(text[2:])


def _day(text: str, where: str) -> int:
    try:
        number = date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        number = -1
    if number < 0 or not _DAY.fullmatch(text):
        raise FeedError(f"{where}: {text[:20]!r} is not a day such as 2026-01-31")
    return number


# -- reputations -------------------------------------------------------------------------------------------------

Reputations = dict[bytes, Reputation]
_REPUTATIONS_DECODER = msgspec.json.Decoder(dict[Reputation, list[str]])


def reputations_of(raw: bytes) -> Reputations:
    """Read the reputation of each listed token address; FeedError says where the list is invalid."""
    try:
        document = _REPUTATIONS_DECODER.decode(raw)
    except MALFORMED as error:
        raise FeedError(f"not a list of reputations: {error}") from None
    found: Reputations = {}
    for reputation, addresses in document.items():
        for text in addresses:
            if not ADDRESS.fullmatch(text):
                raise FeedError(f"{reputation}: {text[:50]!r} is not an address of 0x and 40 hex digits")
            if found.setdefault(bytes.fromhex(text[2:]), reputation) != reputation:
                raise FeedError(f"{text} is listed as both Malicious and Benign")
    return found


def put_reputations(listed: Reputations, tx: Transaction) -> None:
    """Make the table equal to the list; only differences are written."""
    stored: Reputations = dict(tx.rows(SQL.reputations))
    tx.run_many(SQL.drop_reputation, [(address,) for address in stored if address not in listed])
    changed = [(address, reputation) for address, reputation in listed.items() if stored.get(address) != reputation]
    tx.run_many(SQL.put_reputation, changed)
