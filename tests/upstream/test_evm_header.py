"""The header of a fetched block: whatever is not a hash in it is refused, although all are checked together."""

from collections.abc import Callable

import msgspec
import pytest

from icefall.upstream.evm.block_parts import decode_header
from icefall.upstream.evm.errors import IncompleteAnswer

NUMBER = 0x4D2
FIELDS = ("hash", "parentHash", "transactionsRoot", "first transaction", "last transaction")


def a_hash(byte: int) -> str:
    return "0x" + f"{byte:02x}" * 32


def header(**changed: str) -> msgspec.Raw:
    texts = {name: a_hash(0xA0 + place) for place, name in enumerate(FIELDS)} | {"number": hex(NUMBER)} | changed
    transactions = [{"hash": texts.pop("first transaction")}, {"hash": texts.pop("last transaction")}]
    return msgspec.Raw(msgspec.json.encode({**texts, "transactions": transactions, "nonce": "0x0"}))


DAMAGES: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "short": lambda text: text[:-1],
    "long": lambda text: text + "0",
    "a capital": lambda text: text.replace("a", "A", 1),
    "a capital prefix": lambda text: text.replace("0x", "0X"),
    "no prefix": lambda text: "00" + text[2:],
    "another prefix": lambda text: "1x" + text[2:],
    "a prefix behind": lambda text: text[2:] + "0x",
    "two prefixes": lambda text: "0x" + text[:-2],
    "no digit": lambda text: text[:-1] + "g",
    "a blank": lambda text: text[:-1] + " ",
    "an underscore": lambda text: text[:-2] + "_0",
    "a digit of another script": lambda text: text[:-1] + "\u0663",
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_a_hash_is_refused(damage: str, field: str) -> None:
    damaged = DAMAGES[damage](a_hash(0xA0 + FIELDS.index(field)))
    with pytest.raises(IncompleteAnswer, match=f"block {NUMBER}: "):
        decode_header(header(**{field: damaged}), NUMBER)


def test_hashes_that_are_as_long_as_they_should_be_only_together() -> None:
    first, last = a_hash(0xA3), a_hash(0xA4)
    for moved in (1, 2, 64):
        pair = {"first transaction": first + last[:moved], "last transaction": last[moved:]}
        with pytest.raises(IncompleteAnswer):
            decode_header(header(**pair), NUMBER)


def test_a_header() -> None:
    found = decode_header(header(), NUMBER)
    assert (found.number, found.hash, found.parent_hash) == (NUMBER, a_hash(0xA0), a_hash(0xA1))
    assert found.txids == (a_hash(0xA3), a_hash(0xA4))


@pytest.mark.parametrize("text", ["0x04d2", "0x00000004d2"])
def test_a_number_with_leading_zeros(text: str) -> None:
    assert decode_header(header(number=text), NUMBER).number == NUMBER


@pytest.mark.parametrize("text", ["0x4d3", "0x", "4d2", "0X4D2", "0x4D2", " 0x4d2", "0x4_d2", "1234"])
def test_another_number_is_refused(text: str) -> None:
    with pytest.raises(IncompleteAnswer, match=f"block {NUMBER}"):
        decode_header(header(number=text), NUMBER)
