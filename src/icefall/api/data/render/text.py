"""Text of answers: JSON that is written by hand for the items of long lists, and prices and values of balances.

`msgspec.Raw` is copied into the answer as it is: an item costs a third of what a struct for it, and encoding that,
would cost. Whatever a chain or an operator has chosen, such as names, is encoded by msgspec. The text around it has
the fields of the schema in their order, which tests/api/test_data_schema.py checks.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache, lru_cache
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from icefall.api.data.schema.tokens import CurrencyCode, Price

_FRACTION = Decimal(1).scaleb(-8)
_EXACT = Context(prec=400, rounding=ROUND_HALF_EVEN)  # any balance times any price
RawJson = Any  # a msgspec.Raw: it stands where the schema names a struct


def json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# The same few strings again and again: chain IDs, names of methods, types of calls.
quoted = lru_cache(maxsize=4096)(json_text)


class Money(msgspec.Struct, frozen=True):
    """A currency, and how prices in it are written. `as_numbers`: as JSON numbers, as in the live dialect, instead of
    strings."""

    currency: str
    as_numbers: bool

    def price(self, price: str | None) -> Price | UnsetType:
        if price is None:
            return UNSET
        currency = cast(CurrencyCode, self.currency)  # checked by the type of the parameter
        return Price(currency, float(price) if self.as_numbers else price)

    def value(self, balance: int, decimals: int, price: str | None) -> Price | UnsetType:
        """The value of a balance in the token's smallest unit, with at most eight decimals."""
        if price is None:
            return UNSET
        exact = _EXACT.multiply(Decimal(balance).scaleb(-decimals, _EXACT), Decimal(price))
        return self.price(plain(exact.quantize(_FRACTION, context=_EXACT)))


money_of = cache(Money)  # a closed set of currencies


def plain(number: Decimal) -> str:
    """Write a number without exponent and trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
