"""Values of JSON-RPC parameters as the node reads them, however they are written."""

import pytest

from icefall.api.http.rpc_params import NodeBinder
from icefall.api.http.structs import InvalidValue
from icefall.api.node.schema.avm import UtxosParams

UINT32_MAX = 2**32 - 1
_bind = NodeBinder(UtxosParams).from_json


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"[]", []),
        (b'["a"]', ["a"]),
        (b'["a", "\\u00e9", "b"]', ["a", "é", "b"]),
        (b'["a", null]', ["a", ""]),
        (b'["a", "\\ud800"]', ["a", "\ufffd"]),
        (b'["a", "\xff"]', ["a", "\ufffd"]),
    ],
)
def test_lists_of_texts(raw: bytes, expected: list[str]) -> None:
    assert _bind(b'{"addresses": %b}' % raw).addresses == expected


@pytest.mark.parametrize("raw", [b'"a"', b"{}", b"1", b'["a", 1]', b'[["a"]]', b'["a", true]'])
def test_what_is_no_list_of_texts(raw: bytes) -> None:
    with pytest.raises(InvalidValue):
        _bind(b'{"addresses": %b}' % raw)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"0", 0),
        (b"7", 7),
        (b'"7"', 7),
        (b'"007"', 7),
        (b'"%b7"' % (b"0" * 61), 7),
        (b"%d" % UINT32_MAX, UINT32_MAX),
        (b'"%d"' % UINT32_MAX, UINT32_MAX),
    ],
)
def test_whole_numbers(raw: bytes, expected: int) -> None:
    assert _bind(b'{"limit": %b}' % raw).limit == expected


@pytest.mark.parametrize(
    "raw",
    [
        b'""', b'" 7"', b'"7 "', b'"+7"', b'"-7"', b"-7", b"1.0", b"1e3", b'"1_000"', b'"\\u0037"', b'"\xc2\xb2"',
        b"true", b"[7]", b'"%b7"' % (b"0" * 62), b"%d" % (UINT32_MAX + 1),
    ],
)  # fmt: skip
def test_what_is_no_whole_number(raw: bytes) -> None:
    with pytest.raises(InvalidValue):
        _bind(b'{"limit": %b}' % raw)
