"""Prices and values of balances. Prices are decimal strings and stay exact until the last step."""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from typing import cast

import msgspec
from msgspec import UNSET, UnsetType

from icefall.api.schema.parties import CurrencyCode, Price

_FRACTION = Decimal(1).scaleb(-8)
_EXACT = Context(prec=400, rounding=ROUND_HALF_EVEN)  # any balance times any price


class Money(msgspec.Struct, frozen=True):
    """`as_numbers`: prices as JSON numbers, as in the live dialect, instead of strings."""

    currency: str
    as_numbers: bool

    def price(self, price: str | None) -> Price | UnsetType:
        if price is None:
            return UNSET
        currency = cast(CurrencyCode, self.currency)  # checked by the kind of the parameter
        return Price(currency, float(price) if self.as_numbers else price)

    def value(self, balance: int, decimals: int, price: str | None) -> Price | UnsetType:
        """Value of a balance in the token's smallest unit, with at most eight decimals."""
        if price is None:
            return UNSET
        exact = _EXACT.multiply(Decimal(balance).scaleb(-decimals, _EXACT), Decimal(price))
        return self.price(plain(exact.quantize(_FRACTION, context=_EXACT)))


money_of = cache(Money)  # a closed set of currencies


def plain(number: Decimal) -> str:
    """Without exponent and trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
