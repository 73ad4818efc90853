"""Reads a list of prices of the native token and of tokens, current and daily (docs/lists.md)."""

import re
from datetime import date
from typing import NamedTuple

import msgspec

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.enriching.feeds import ADDRESS, FeedError
from icefall.evm.enriching.reader import CURRENCIES, NATIVE_ADDRESS, NOW, Reputation
from icefall.upstream.client import MALFORMED

NATIVE = "native"
POINTS_MAX = 1_000_000
_VALUE = re.compile(r"(0|[1-9][0-9]{0,29})(\.[0-9]{1,30})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH = date(1970, 1, 1).toordinal()
SQL = load("icefall.evm.enriching", "queries.sql")


class _Series(msgspec.Struct, forbid_unknown_fields=True):
    current: str | None = None
    daily: dict[str, str] = {}


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    currencies: dict[str, dict[str, _Series]]


class PricePoint(NamedTuple):
    token_address: bytes
    currency: str
    day: int


Prices = dict[PricePoint, str]
_DECODER = msgspec.json.Decoder(_Document)


def prices_of(raw: bytes) -> Prices:
    """All prices of a document; FeedError says where it is invalid."""
    try:
        document = _DECODER.decode(raw)
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


Reputations = dict[bytes, Reputation]
_REPUTATION_DECODER = msgspec.json.Decoder(dict[Reputation, list[str]])
SQL = load("icefall.evm.enriching", "queries.sql")


def reputations_of(raw: bytes) -> Reputations:
    """The reputation of each listed token address; FeedError says where the list is invalid."""
    try:
        document = _REPUTATION_DECODER.decode(raw)
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
