"""Sender and recipient, prices and the native token: shared by all chain data resources."""

from typing import Literal

from msgspec import UNSET, UnsetType

from icefall.api.schema.names import RestResult

CurrencyCode = Literal[
    "usd", "eur", "aud", "cad", "chf", "clp", "cny", "czk", "dkk", "gbp", "hkd", "huf", "jpy", "nzd"
]  # fmt: skip


class Party(RestResult, frozen=True, gc=False, kw_only=True):
    """An address. The other fields are present for a token whose contract returns them."""

    name: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    decimals: int | UnsetType = UNSET
    logo_uri: str | UnsetType = UNSET
    address: str


class Price(RestResult, frozen=True, gc=False):
    currency_code: CurrencyCode
    value: str | float  # by dialect


class NetworkToken(RestResult, frozen=True):
    name: str
    symbol: str
    decimals: int
    logo_uri: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
