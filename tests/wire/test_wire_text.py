"""CB58, checksummed hex, bech32 and Go's quoting, against published values and a node's own error texts."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.wire_vectors import recorded, vectors

from icefall.wire.errors import WireError
from icefall.wire.ids import (
    AVM_FX_IDS,
    AVM_ID,
    EMPTY_SHORT_ID,
    EVM_ID,
    NETWORKS,
    NODE_ID_PREFIX,
    PLATFORM_VM_ID,
    id_from_text,
    id_text,
    input_id,
    network_hrp,
    network_id_from_text,
    network_name,
    node_id_from_text,
    node_id_text,
    short_id_from_text,
    sized,
)
from icefall.wire.text import bech32, cb58, checksum_hex
from icefall.wire.text.bech32 import address_from_text, address_text
from icefall.wire.text.go_text import from_utf8, json_string, quote, quote_rune, utf8

FEW = settings(max_examples=100, deadline=None, database=None)


@pytest.mark.parametrize("row", [row for row in vectors("ids") if row["hex"] is not None], ids=lambda row: row["name"])
def test_ids_both_ways(row: Any) -> None:
    raw, expect = bytes.fromhex(row["hex"]), row["expect"]
    checks = {
        "cb58": (cb58.encode, cb58.decode),
        "base58": (cb58.base58_encode, cb58.base58_decode),
        "hex": (checksum_hex.encode, checksum_hex.decode),
        "hexnc": (lambda b: checksum_hex.encode(b, "hexnc"), lambda t: checksum_hex.decode(t, "hexnc")),
        "nodeID": (lambda b: NODE_ID_PREFIX + cb58.encode(b), node_id_from_text),
    }
    met = [name for name in checks if name in expect]
    for name in met:
        encode, decode = checks[name]
        assert encode(raw) == expect[name]
        assert decode(expect[name]) == raw
    if row["kind"] == "inputid":
        assert id_text(input_id(raw[:32], int.from_bytes(raw[32:], "big"))) == expect["inputID"]
    else:
        assert met


@pytest.mark.parametrize("row", [row for row in vectors("ids") if row["hex"] is None], ids=lambda row: row["name"])
def test_bad_hex(row: Any) -> None:
    with pytest.raises(WireError, match=f"^{re.escape(row['expect']['error'])}$"):
        checksum_hex.decode(row["input"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "base58 decoding error: zero length string"),
        ("0", "base58 decoding error: Invalid base58 digit ('0')"),
        ("1 1", "base58 decoding error: Invalid base58 digit (' ')"),
        ("\n", "base58 decoding error: Invalid base58 digit ('\\n')"),
        ("'", "base58 decoding error: Invalid base58 digit ('\\'')"),
        ("abcé0", "base58 decoding error: High-bit set on invalid digit"),
        ("X", "input string is smaller than the checksum size"),
        ("abc", "input string is smaller than the checksum size"),
        ("111", "input string is smaller than the checksum size"),
        ("11111111111111111111111111111111LpoYZ", "invalid input checksum"),
        ("111111111111111111116DBWJs", "invalid hash length: expected 32 bytes but got 20"),
        ("z" * 2000, "invalid input checksum"),
        ("z" * 1000 + "0", "base58 decoding error: Invalid base58 digit ('0')"),
    ],
)
def test_bad_cb58(text: str, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        id_from_text(text)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("", "hex", b""),
        ("", "json", b""),
        ("0x", "hexnc", b""),
        ("0xAbCd", "hexnc", b"\xab\xcd"),
        ("0x", "hex", "input string is smaller than the checksum size"),
        ("0x00", "hexc", "input string is smaller than the checksum size"),
        ("0X00", "hexnc", "missing 0x prefix to hex encoding"),
        (" 0x00", "hexnc", "missing 0x prefix to hex encoding"),
        ("0x0", "hexnc", "encoding/hex: odd length hex string"),
        ("0x00g", "hexnc", "encoding/hex: invalid byte: U+0067 'g'"),
        ("0x0 00", "hexnc", "encoding/hex: invalid byte: U+0020 ' '"),
        ("0x00é0", "hexnc", "encoding/hex: invalid byte: U+00C3 'Ã'"),
        ("0x\x0000", "hexnc", "encoding/hex: invalid byte: U+0000"),
        ("0x0017afa01e", "hex", "invalid input checksum"),
        ("0x00", "json", "unsupported encoding in method"),
    ],
)
def test_hex_decoding(text: str, encoding: str, expected: bytes | str) -> None:
    if isinstance(expected, bytes):
        assert checksum_hex.decode(text, encoding) == expected
    else:
        with pytest.raises(WireError) as caught:
            checksum_hex.decode(text, encoding)
        assert str(caught.value) == expected


def test_encoding_names() -> None:
    assert [checksum_hex.encoding_name(name) for name in ("HEX", "HexC", "hexnc", "JSON")] == [
        "hex",
        "hexc",
        "hexnc",
        "json",
    ]
    for name in ("", "cb58", "hex "):
        with pytest.raises(WireError):
            checksum_hex.encoding_name(name)
    with pytest.raises(WireError, match=r"^unsupported encoding in method$"):
        checksum_hex.encode(b"", "json")


ALIASES = {"X": "X", "avm": "X", "P": "P", "platform": "P", "C": "C", "evm": "C"}
CHAIN_IDS = {
    "X": "2eNy1mUFdmaxXNj1eQHUe7Np4gju9sJsEtWQ4MX3ToiNKuADed",
    "P": "11111111111111111111111111111111LpoYY",
    "C": "2owdGqyG6FFzTHy5qhenDXQcEghvr571KZE3gSfRJERSJinuwC",
}
ALIASES |= {text: chain for chain, text in CHAIN_IDS.items()}


def cause_of_refusal(text: str) -> str | None:
    """Follows the node's order of checks over an address parameter of the X-Chain."""
    try:
        short_id_from_text(text)
        return None
    except WireError:
        pass
    try:
        chain, hrp, payload = address_from_text(text)
        if chain not in ALIASES:
            return f"there is no ID with alias: {chain}"
        if hrp != "local":
            return f"expected hrp {quote('local')} but got {quote(hrp)}"
        sized(payload, 20)
    except WireError as error:
        return str(error)
    if ALIASES[chain] != "X":
        return f'mismatched chainIDs: expected "{CHAIN_IDS["X"]}" but got "{CHAIN_IDS[ALIASES[chain]]}"'
    return None


def test_recorded_bad_addresses() -> None:
    compared = 0
    for row in recorded("scenario-1/wire_bad_addresses.jsonl.gz"):
        params = json.loads(row["request"]["body"])["params"]
        address = params["address"] if "address" in params else (params.get("addresses") or [None])[0]
        if not isinstance(address, str):
            continue
        error = json.loads(row["response"]["body"]).get("error")
        if error is None:
            assert cause_of_refusal(address) is None
        elif error["message"].startswith(("couldn't parse address", "problem parsing address")):
            assert error["message"].endswith(f"couldn't parse address {quote(address)}: {cause_of_refusal(address)}")
            compared += 1
    assert compared >= 50


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("X", "no separator found in address"),
        ("X-1234567", "invalid bech32 string length 7"),
        ("X-" + "q" * 106, "invalid bech32 string length 106"),
        ("X-X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u", "string not all lowercase or all uppercase"),
        ("X-loca 18jma8ppw3nhx5", "invalid character in string: ' '"),
        ("X-locaé18jma8ppw3nhx5", "invalid character in string: 'Ã'"),
        ("X-qqqqqqqq", "invalid separator index -1"),
        ("X-1qqqqqqq", "invalid separator index 0"),
        ("X-local1qqqqq", "invalid separator index 5"),
        ("X-local1bqqqqqq", "invalid character not part of charset: 98"),
        (
            "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96v",
            "invalid checksum (expected (bech32=00z96u, bech32m=00z96u6njfl7), got 00z96v)",
        ),
    ],
)
def test_bad_addresses(text: str, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        address_from_text(text)
    assert str(caught.value) == reason


EWOQ = "X-local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"


def test_lenient_bech32() -> None:
    chain, hrp, payload = address_from_text(EWOQ)
    assert address_text(chain, hrp, payload) == EWOQ
    assert address_from_text("X-" + EWOQ[2:].upper()) == ("X", "local", payload)
    assert bech32.decode(EWOQ[2:-6] + "6njfl7") == ("local", payload)  # a bech32m checksum
    for size, decoded in ((19, 20), (20, 20), (21, 22), (32, 33)):
        assert len(bech32.decode(bech32.encode("local", bytes(range(size))))[1]) == decoded
    assert bech32.decode(bech32.encode("local", bytes(range(1, 20))))[1] == bytes(range(1, 20)) + b"\0"


@FEW
@given(st.binary(max_size=80))
def test_cb58_round_trip(raw: bytes) -> None:
    assert cb58.decode(cb58.encode(raw)) == raw
    assert checksum_hex.decode(checksum_hex.encode(raw)) == raw


@pytest.mark.parametrize("text", ["z" * 1_000_000, "1" * 1_000_000, cb58.encode(bytes(range(256)) * 10)])
def test_only_the_start_of_an_overlong_id_is_decoded(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding a megabyte of digits would take seconds."""
    decoded: list[str] = []
    decode = cb58.decode

    def noted(digits: str) -> bytes:
        decoded.append(digits)
        return decode(digits)

    monkeypatch.setattr(cb58, "decode", noted)
    with pytest.raises(WireError, match=r"invalid input checksum|invalid hash length"):
        id_from_text(text)
    assert decoded == [text[:1024]]


def test_long_addresses_are_not_kept() -> None:
    """A chain's name may be of any length, so it must not be part of what a cache holds."""
    text = "A" * 100_000 + EWOQ[1:]
    assert address_from_text(text)[1:] == address_from_text(EWOQ)[1:]
    assert not hasattr(address_from_text, "cache_info")


@FEW
@given(st.binary(min_size=600, max_size=900))
def test_long_base58_round_trip(raw: bytes) -> None:
    assert cb58.base58_decode(cb58.base58_encode(raw)) == raw


@FEW
@given(st.binary(min_size=20, max_size=20), st.sampled_from([hrp for _, hrp in NETWORKS.values()]))
def test_address_round_trip(address: bytes, hrp: str) -> None:
    assert address_from_text(address_text("X", hrp, address)) == ("X", hrp, address)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("abc", '"abc"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("\a\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"'),
        ("\x00\x1b\x7f", '"\\x00\\x1b\\x7f"'),
        ("é☺\u00a0\u200b\ufeff", '"é☺\\u00a0\\u200b\\ufeff"'),
        ("\U000e0001😀", '"\\U000e0001😀"'),
        ("it's", '"it\'s"'),
        (b"a\xff\xc3".decode(errors="surrogateescape"), '"a\\xff\\xc3"'),
        ("\ud800", '"\ufffd"'),
    ],
)
def test_go_quote(text: str, quoted: str) -> None:
    assert quote(text) == quoted


def test_go_quote_rune() -> None:
    assert [quote_rune(char) for char in "a\n'\""] == ["'a'", "'\\n'", "'\\''", "'\"'"]


@FEW
@given(st.binary(max_size=40))
def test_any_bytes_survive_as_text(raw: bytes) -> None:
    assert utf8(from_utf8(raw)) == raw


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", '"plain"'),
        ('<a href="x">&', '"\\u003ca href=\\"x\\"\\u003e\\u0026"'),
        ("\b\f\n\r\t\x00\x1f\x7f\\", '"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\\\\"'),
        ("é\u2028\u2029", '"é\\u2028\\u2029"'),
        (b"\xff".decode(errors="surrogateescape"), '"\\ufffd"'),
    ],
)
def test_go_json_string(text: str, written: str) -> None:
    assert json_string(text) == written


@pytest.mark.parametrize(
    ("text", "number"),
    [("local", 12345), ("LOCAL", 12345), ("testnet", 5), ("fuji", 5), ("1", 1), ("network-77", 77), ("007", 7)],
)
def test_network_names(text: str, number: int) -> None:
    assert network_id_from_text(text) == number


@pytest.mark.parametrize("text", ["foo", "", "network-", "-1", "4294967296", "+1", "1_0", "٣", "9" * 5000])
def test_bad_network_names(text: str) -> None:
    with pytest.raises(WireError, match=r"^failed to parse network name: "):
        network_id_from_text(text)


def test_networks_by_number() -> None:
    assert [(network_name(n), network_hrp(n)) for n in (1, 5, 12345, 10, 99)] == [
        ("mainnet", "avax"),
        ("fuji", "fuji"),
        ("local", "local"),
        ("testing", "testing"),
        ("network-99", "custom"),
    ]


def test_well_known_ids() -> None:
    assert [id_text(vm_id)[:4] for vm_id in (AVM_ID, EVM_ID, PLATFORM_VM_ID)] == ["jvYy", "mgj7", "rWhp"]
    assert [id_text(fx_id)[:4] for fx_id in AVM_FX_IDS] == ["spdx", "qd2U", "rXJs"]
    assert node_id_text(b"").startswith("NodeID-")
    assert len(node_id_from_text(node_id_text(b"any certificate"))) == 20
    assert short_id_from_text("111111111111111111116DBWJs") == EMPTY_SHORT_ID
    with pytest.raises(WireError, match=r"^ID: NodeId-x is missing the prefix: NodeID-$"):
        node_id_from_text("NodeId-x")
