"""What something is worth. Prices are decimal texts and stay exact until the last step."""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import cast

from msgspec import UNSET, UnsetType

from icefall.api.schema.parties import CurrencyCode, Price

_FRACTION = Decimal(1).scaleb(-8)
_EXACT = Context(prec=400, rounding=ROUND_HALF_EVEN)  # any balance times any price


class Money:
    """`as_numbers`: the live dialect, whose clients read numbers."""

    def __init__(self, currency: str, *, as_numbers: bool) -> None:
        self._currency = cast(CurrencyCode, currency)  # the parameter's kind has seen to that
        self._as_numbers = as_numbers

    def price(self, value: str | None) -> Price | UnsetType:
        if value is None:
            return UNSET
        return Price(self._currency, float(value) if self._as_numbers else value)

    def worth(self, balance: int, decimals: int, value: str | None) -> Price | UnsetType:
        """Of a balance in the token's smallest unit, with at most eight digits after the point."""
        if value is None:
            return UNSET
        whole = _EXACT.multiply(Decimal(balance).scaleb(-decimals, _EXACT), Decimal(value))
        return self.price(plain(whole.quantize(_FRACTION, context=_EXACT)))


def plain(number: Decimal) -> str:
    """Without exponent, and without zeros that say nothing."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
