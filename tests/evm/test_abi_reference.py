"""Decoding compared with eth-abi, the decoder of the field, on random types, values and damaged data."""

import random
from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evm.test_abi_decoding import TYPES, leaves, random_value, text_of

from icefall.wire.evm.abi import declaration
from icefall.wire.evm.abi_decoding import VALUES_MAX, decode_call


def normal(kind: Any, value: Any) -> Any:
    """A value of eth-abi as `leaves` takes it: addresses are bytes."""
    if isinstance(kind, tuple) and kind[0] == "tuple":
        return [normal(one, it) for one, it in zip(kind[1], value, strict=True)]
    if isinstance(kind, tuple):
        return [normal(kind[1], it) for it in value]
    return bytes.fromhex(value[2:]) if kind == "address" else value


def decoded_by_reference(kinds: list[Any], data: bytes) -> list[tuple[str, str, str]]:
    values = decode([text_of(kind) for kind in kinds], data)
    pairs = enumerate(zip(kinds, values, strict=True))
    return [leaf for at, (kind, value) in pairs for leaf in leaves(kind, normal(kind, value), f"{at}")]


def decoded_by_us(kinds: list[Any], data: bytes) -> list[tuple[str, str, str]] | None:
    found = decode_call(declaration("function", f"f({','.join(map(text_of, kinds))})"), bytes(4) + data)
    return None if found is None else [(one.name, one.type, one.value) for one in found]


def encoded_by_reference(kinds: list[Any], seed: int) -> bytes:
    draw = random.Random(seed)
    return bytes(encode([text_of(kind) for kind in kinds], [random_value(kind, draw) for kind in kinds]))


@settings(max_examples=200, deadline=None)
@given(st.lists(TYPES, max_size=4), st.integers(0, 1 << 32))
def test_what_the_reference_wrote_is_read_as_it_reads_it(kinds: list[Any], seed: int) -> None:
    data = encoded_by_reference(kinds, seed)
    expected = decoded_by_reference(kinds, data)
    assert decoded_by_us(kinds, data) == (expected if len(expected) <= VALUES_MAX else None)


@settings(max_examples=200, deadline=None)
@given(st.lists(TYPES, min_size=1, max_size=3), st.integers(0, 1 << 32), st.integers(0, 1 << 16), st.integers(1, 255))
def test_what_we_read_of_damaged_data_is_what_the_reference_reads(
    kinds: list[Any], seed: int, place: int, change: int
) -> None:
    """We refuse more, such as overlapping parts, but never read another value than the reference."""
    data = bytearray(encoded_by_reference(kinds, seed))
    data[place % len(data)] ^= change
    found = decoded_by_us(kinds, bytes(data))
    if found is None:
        return
    try:
        expected = decoded_by_reference(kinds, bytes(data))
    except (DecodingError, UnicodeDecodeError):  # padding behind bytes, which we do not read, and invalid UTF-8
        return
    assert found == expected
