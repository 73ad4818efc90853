"""Decoding of contract answers, for any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefall.evm.contract_calls import (
    DECIMALS,
    NAME,
    SYMBOL,
    TEXT_SIZE_MAX,
    decimals_of,
    printable,
    string_of,
    text_of,
    uri_of,
    with_id,
)


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def packed(raw: bytes, offset: int = 32) -> bytes:
    return word(offset) + bytes(offset - 32) + word(len(raw)) + raw + bytes(-len(raw) % 32)


def test_selectors() -> None:
    assert [NAME.hex(), SYMBOL.hex(), DECIMALS.hex()] == ["06fdde03", "95d89b41", "313ce567"]


TEXTS = [
    (packed(b"Alpha Dollar"), "Alpha Dollar"),
    (packed('Beta "Coin" é😀'.encode()), 'Beta "Coin" é😀'),
    (packed(b""), ""),
    (packed(b"far away", offset=96), "far away"),
    (word(32) + word(3) + b"ABC", "ABC"),  # not padded
    (b"Old Maker Coin".ljust(32, b"\0"), "Old Maker Coin"),
    (b"x" * 32, "x" * 32),
    (bytes(32), ""),
    (word(32), ""),  # the offset of a string without the string
    (b"", ""),
    (b"\x06\xfd\xde\x03", ""),  # a fallback that echoes
    (word(32) + word(4) + b"ABC", ""),  # longer than the answer
    (word(2**255) + word(3) + b"ABC".ljust(32), ""),
    (word(32) + word(2**64) + b"ABC".ljust(32), ""),
    (word(33) + word(3) + b"ABC".ljust(32), ""),
    (packed(b"\xff\xfe"), ""),
    (b"\xff".ljust(32, b"\0"), ""),
    (packed(b"A\0B\0"), "AB"),
    (packed("a\tb\nc\x7f\u202ed\u2066e\ufeff".encode()), "abcde"),
    (packed("\U0001f468\u200d\U0001f469".encode()), "\U0001f468\u200d\U0001f469"),
    (packed(b"n" * 5000), "n" * TEXT_SIZE_MAX),
]


@pytest.mark.parametrize(("answer", "text"), TEXTS)
def test_names(answer: bytes, text: str) -> None:
    assert text_of(answer) == text


@pytest.mark.parametrize(
    ("answer", "decimals"),
    [
        (word(0), 0),
        (word(18), 18),
        (word(255), 255),
        (word(256), None),
        (word(2**256 - 1), None),
        (b"", None),
        (bytes(31), None),
        (word(6) + word(0), None),
        (b"\x31\x3c\xe5\x67", None),  # a fallback that echoes
    ],
)
def test_decimals(answer: bytes, decimals: int | None) -> None:
    assert decimals_of(answer) == decimals


def test_uris() -> None:
    assert uri_of(packed(b" https://a/1\n")) == "https://a/1"
    assert uri_of(packed(b"")) == ""
    assert uri_of(b"ipfs://in-one-word".ljust(32, b"\0")) is None
    assert uri_of(packed(b"\xff")) is None
    assert with_id("https://a/{id}.json?{id}", 0x4CCE0) == f"https://a/{'4cce0':0>64}.json?{'4cce0':0>64}"
    assert with_id("https://a/{ID}", 1) == "https://a/{ID}"


@given(st.binary(max_size=300))
def test_arbitrary_bytes(raw: bytes) -> None:
    text = text_of(raw)
    assert text == printable(text)
    assert len(text) <= TEXT_SIZE_MAX
    text.encode()
    decimals, uri = decimals_of(raw), uri_of(raw)
    assert decimals is None or 0 <= decimals <= 255
    assert uri is None or uri.encode() in raw


@given(st.binary(max_size=200), st.integers(0, 9), st.binary(max_size=40))
def test_every_string_is_decoded(raw: bytes, gap: int, tail: bytes) -> None:
    assert string_of(packed(raw, 32 + 32 * gap) + tail) == raw


@given(st.integers(0, 400), st.integers(0, 400), st.binary(max_size=300))
def test_a_string_is_part_of_the_answer(offset: int, size: int, rest: bytes) -> None:
    answer = (word(offset) + rest)[:offset].ljust(offset, b"\1") + word(size) + rest
    found = string_of(answer)
    assert found is None or (found in answer and len(found) <= len(answer) - 32)
