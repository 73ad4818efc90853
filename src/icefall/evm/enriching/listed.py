"""How prices and reputations from external lists are stored: for those who import them and those who read them."""

from typing import Literal

CURRENCIES = ("usd", "eur", "aud", "cad", "chf", "clp", "cny", "czk", "dkk", "gbp", "hkd", "huf", "jpy", "nzd")
NATIVE_ADDRESS = b""  # price.token_address of the native token
NOW = -1  # price.day of the current price
Reputation = Literal["Malicious", "Benign"]
