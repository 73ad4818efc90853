"""The scanner accepts JSON and refuses everything else, with the node's error texts."""

import json
import random
import re
from typing import Any

import pytest

from icefall.api.http.rpc_params import NodeBinder
from icefall.api.node.schema.platform import AddressesParams
from icefall.wire.text.jsonscan import (
    SCAN_MAX,
    JsonError,
    compact,
    elements,
    first_value,
    json_type,
    members,
    string_of,
)

# What the node was seen to say, or what the decoder it is built with says by its source.
REFUSED = {
    b"": "EOF",
    b" \n": "EOF",
    b"{": "unexpected EOF",
    b'"a': "unexpected EOF",
    b'"\\u12': "unexpected EOF",
    b"nul": "unexpected EOF",
    b"x": "invalid character 'x' looking for beginning of value",
    b"'a'": "invalid character '\\'' looking for beginning of value",
    b"\xef\xbb\xbf{}": "invalid character 'ï' looking for beginning of value",
    b"\x80": "invalid character '\\u0080' looking for beginning of value",
    b"\x00": "invalid character '\\x00' looking for beginning of value",
    b"{a": "invalid character 'a' looking for beginning of object key string",
    b'{"a" 1}': "invalid character '1' after object key",
    b'{"a":1 "b"': "invalid character '\"' after object key:value pair",
    b"[1 2]": "invalid character '2' after array element",
    b"[1,]": "invalid character ']' looking for beginning of value",
    b'{"a":1,}': "invalid character '}' looking for beginning of object key string",
    b'"a\nb"': "invalid character '\\n' in string literal",
    b'"\\x"': "invalid character 'x' in string escape code",
    b'"\\u12G4"': "invalid character 'G' in \\u hexadecimal character escape",
    b"1.x": "invalid character 'x' after decimal point in numeric literal",
    b"1ex": "invalid character 'x' in exponent of numeric literal",
    b"-x": "invalid character 'x' in numeric literal",
    b"nuxl": "invalid character 'x' in literal null (expecting 'l')",
    b"[" * 10_001: "invalid character '[' exceeded max depth",
}


@pytest.mark.parametrize("data", REFUSED, ids=lambda data: repr(data)[:30])
def test_the_words_for_what_is_no_json(data: bytes) -> None:
    with pytest.raises(JsonError) as refused:
        first_value(data)
    assert str(refused.value) == REFUSED[data]


def _random_value(dice: random.Random, depth: int = 0) -> Any:
    match dice.randrange(8 if depth < 4 else 6):
        case 0:
            return dice.choice([None, True, False])
        case 1:
            return dice.choice([0, -1, 10**30, 1.5, -2e-7])
        case 2 | 3 | 4 | 5:
            return "".join(dice.choice('a"\\/\n\x7fé✓😀{}[],: ') for _ in range(dice.randrange(6)))
        case 6:
            return [_random_value(dice, depth + 1) for _ in range(dice.randrange(4))]
        case _:
            return {f"k{n}": _random_value(dice, depth + 1) for n in range(dice.randrange(4))}


def _accepted(data: bytes) -> bool:
    try:
        json.loads(data.decode("utf-8", "replace"), parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


def test_it_agrees_with_another_decoder_on_what_json_is() -> None:
    dice = random.Random(7)
    refused = 0
    for _ in range(4000):
        text = json.dumps(_random_value(dice), ensure_ascii=dice.random() < 0.5, indent=dice.choice([None, 1]))
        data = bytearray(text.encode())
        for _ in range(dice.randrange(3)):
            at = dice.randrange(len(data) + 1)
            data[at : at + dice.randrange(3)] = dice.choice(
                [b"", b'"', b"\\", b",", b"}", b"]", b"1", b"e", b" ", b"t"]
            )
        raw = bytes(data)
        try:
            value, rest = first_value(raw)
            taken = not rest
        except JsonError:
            taken = False
        assert taken == _accepted(raw), raw
        refused += not taken
        if taken:
            _assert_taken_apart(value)
    assert 500 < refused < 3500


def _assert_taken_apart(value: bytes) -> None:
    value = value.decode("utf-8", "replace").encode()
    read = json.loads(value)
    if value[:1] == b"{":
        assert {key: json.loads(raw) for key, raw in members(value)} == read
        assert json_type(value) == "object"
    elif value[:1] == b"[":
        assert [json.loads(raw) for raw in elements(value)] == read
        assert json_type(value) == "array"
    elif value[:1] == b'"':
        assert string_of(value) == re.sub("[\ud800-\udfff]", "\ufffd", read)
    assert json.loads(compact(value)) == read


def test_bytes_after_the_first_value_are_returned_separately() -> None:
    assert first_value(b' {"a": 1} [2] ') == (b'{"a": 1}', b"[2]")
    assert first_value(b"1 x") == (b"1", b"x")


def test_every_member_is_seen_in_order() -> None:
    assert members(b'{ "a" : 1, "A":2,"a":null }') == [("a", b"1"), ("A", b"2"), ("a", b"null")]


def test_nesting_is_no_recursion() -> None:
    deep = b"[" * 10_000 + b"]" * 10_000
    assert first_value(deep) == (deep, b"")
    assert elements(deep) == [deep[1:-1]]


def test_text_that_is_not_unicode_is_tolerated() -> None:
    assert string_of(b'"a\xff\xc3"') == "a\ufffd\ufffd"
    assert string_of(b'"\\ud800x\\ud83d\\ude00"') == "\ufffdx😀"
    assert members(b'{"\xff":"\xff"}') == [("\ufffd", b'"\xff"')]


MANY = b"[" + b"1," * SCAN_MAX


@pytest.mark.parametrize("more", [b"1]", b"1] x"])
def test_a_long_body_is_taken_all_the_same(more: bytes) -> None:
    value, rest = first_value(MANY + more)
    assert len(elements(value)) == SCAN_MAX + 1
    assert rest == more[2:].strip()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (MANY + b"1", "Input data was truncated"),
        (MANY + b"x", "JSON is malformed: invalid character"),
        (b"[" * SCAN_MAX * 2, "nested too deeply"),
    ],
    ids=["cut", "bad", "deep"],
)
def test_a_long_body_is_refused_in_other_words(data: bytes, words: str) -> None:
    with pytest.raises(JsonError, match=words):
        first_value(data)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"addresses":["a","b"],"addresses":[null]}', ["a"]),
        (b'{"addresses":["a","b"],"Addresses":[null,"c"]}', ["a", "c"]),
        (b'{"addresses":["a","b"],"addresses":["c"],"addresses":["d",null,null]}', ["d", "b", ""]),
        (b'{"addresses":["a"],"addresses":null,"addresses":[null]}', [""]),
        (b'{"addresses":["a"],"addresses":[],"addresses":[null]}', [""]),
        (b'{"addresses":[null,"a"]}', ["", "a"]),
    ],
)
def test_null_in_a_list_that_is_given_again_is_what_was_there(raw: bytes, expected: list[str]) -> None:
    """Go's decoder writes into the slice that it has, so AvalancheGo 1.14.2 answers platform.getBalance in this way."""
    assert NodeBinder(AddressesParams).from_json(raw).addresses == expected
