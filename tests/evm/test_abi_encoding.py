"""Arguments written as call data: compared with eth-abi on random types and values, and what is refused."""

import random
from typing import Any

import pytest
from eth_abi.abi import encode
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evm.test_abi_decoding import TYPES, random_value, text_of

from icefall.wire.evm.abi import AbiError, declaration
from icefall.wire.evm.abi_encoding import ENCODED_MAX, ITEMS_MAX, encode_call


def as_json(kind: Any, value: Any) -> Any:
    """A value of eth-abi as a caller sends it: numbers as text, bytes in hex, tuples as lists."""
    if isinstance(kind, tuple) and kind[0] == "tuple":
        return [as_json(one, it) for one, it in zip(kind[1], value, strict=True)]
    if isinstance(kind, tuple):
        return [as_json(kind[1], it) for it in value]
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return value if isinstance(value, bool | str) else str(value)


@settings(max_examples=200, deadline=None)
@given(st.lists(TYPES, max_size=4), st.integers(0, 1 << 32))
def test_what_is_sent_is_what_the_reference_writes(kinds: list[Any], seed: int) -> None:
    draw, texts = random.Random(seed), [text_of(kind) for kind in kinds]
    values = [random_value(kind, draw) for kind in kinds]
    declared = declaration("function", f"f({','.join(texts)})")
    given_values = [as_json(kind, value) for kind, value in zip(kinds, values, strict=True)]
    assert encode_call(declared, given_values) == declared.topic[:4] + encode(texts, values)


@pytest.mark.parametrize(
    ("kind", "value", "word"),
    [
        ("uint8", 255, "ff"),
        ("uint8", "0xff", "ff"),
        ("int8", "-1", "f" * 64),
        ("int256", -(1 << 255), "8" + "0" * 63),
        ("bool", "true", "1"),
        ("(uint8 a,bool b)", {"b": False, "a": 3}, "3" + "0" * 64),
    ],
)
def test_forms_that_callers_use(kind: str, value: Any, word: str) -> None:
    declared = declaration("function", f"f({kind})")
    assert int.from_bytes(encode_call(declared, [value])[4:], "big") == int(word, 16)


@pytest.mark.parametrize(
    ("kind", "value", "wrong"),
    [
        ("uint8", 256, "goes from 0 to 255"),
        ("uint8", -1, "goes from 0 to 255"),
        ("uint8", True, "a number in decimal"),
        ("uint8", 1.0, "a number in decimal"),
        ("uint8", "1e3", "a number in decimal"),
        ("uint256", "9" * 5000, "a number in decimal"),
        ("bool", 1, "true or false"),
        ("address", "0x12", "has 20 bytes, not 1"),
        ("address", "vitalik.eth", "hex digits after 0x"),
        ("bytes4", "0x123", "hex digits after 0x"),
        ("bytes4", 7, "a text"),
        ("string", None, "a text"),
        ("uint8[2]", [1], "has 2 items, not 1"),
        ("uint8[]", "1", "a list of at most"),
        ("uint8[]", [1] * (ITEMS_MAX + 1), "a list of at most"),
        ("uint8[]", [1, 2, 300], r"0\[2\] is uint8"),
        ("(uint8 a,bool b)[]", [{"a": 1}], r"0\[0\].b is bool"),
        ("(uint8,bool)", [1], "takes 2 values, and there are 1"),
        ("(uint8,bool)", 1, "takes 2 values, and there are no"),
        ("bytes", "0x" + "00" * (ENCODED_MAX + 1), "bytes|text"),
        ("string[]", ["x" * 1000] * 100, "more than|take"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(kind: str, value: Any, wrong: str) -> None:
    with pytest.raises(AbiError, match=wrong):
        encode_call(declaration("function", f"f({kind})"), [value])


def test_the_number_of_arguments_is_checked() -> None:
    with pytest.raises(AbiError, match="the function takes 1 values, and there are 2"):
        encode_call(declaration("function", "f(uint8)"), [1, 2])
