"""Decoding by declarations: against a second, naive encoder on random types and values, and against hostile data."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icefall.evm.reading.contracts import DATA_MAX, ContractDecoder
from icefall.wire.evm.abi import AbiError, declaration
from icefall.wire.evm.abi_decoding import VALUES_MAX, decode_call, decode_event
from icefall.wire.evm.abi_shipped import ERRORS, ERRORS_BY_SELECTOR, EVENTS, EVENTS_BY_TOPIC
from icefall.wire.evm.events import EVENT_SIGNATURES
from icefall.wire.evm.hex import checksummed

# A type is a text of one word, ("array", type, count or None) or ("tuple", [type, ...]).
WORDS = ("address", "bool", "uint8", "uint96", "uint256", "int8", "int24", "int256", "bytes1", "bytes20", "bytes32")
TYPES = st.recursive(
    st.sampled_from((*WORDS, "bytes", "string", "function")),
    lambda inner: st.one_of(
        st.tuples(st.just("array"), inner, st.sampled_from((None, 1, 2))),
        st.tuples(st.just("tuple"), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=6,
)


def text_of(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    if kind[0] == "tuple":
        return f"({','.join(map(text_of, kind[1]))})"
    return f"{text_of(kind[1])}[{'' if kind[2] is None else kind[2]}]"


def random_value(kind: Any, draw: random.Random) -> Any:
    if isinstance(kind, tuple) and kind[0] == "tuple":
        return [random_value(one, draw) for one in kind[1]]
    if isinstance(kind, tuple):
        return [random_value(kind[1], draw) for _ in range(draw.randrange(4) if kind[2] is None else kind[2])]
    if kind == "bool":
        return draw.random() < 0.5
    if kind == "string":
        return "".join(draw.choice("aé漢🧊 \n<") for _ in range(draw.randrange(40)))
    if kind == "bytes":
        return draw.randbytes(draw.randrange(70))
    if kind.startswith("uint"):
        return draw.choice((0, (1 << int(kind[4:])) - 1, draw.getrandbits(int(kind[4:]))))
    if kind.startswith("int"):
        half = 1 << int(kind[3:]) - 1
        return draw.choice((-half, half - 1, -1, draw.randrange(-half, half)))
    return draw.randbytes({"address": 20, "function": 24}.get(kind) or int(kind[5:]))


def is_dynamic(kind: Any) -> bool:
    if isinstance(kind, str):
        return kind in ("bytes", "string")
    return any(map(is_dynamic, kind[1])) if kind[0] == "tuple" else kind[2] is None or is_dynamic(kind[1])


def encoded(kind: Any, value: Any) -> bytes:
    """The encoding as the specification of the ABI defines it, with no thought for speed."""
    if isinstance(kind, tuple) and kind[0] == "tuple":
        return encoded_list(kind[1], value)
    if isinstance(kind, tuple):
        items = encoded_list([kind[1]] * len(value), value)
        return items if kind[2] is not None else len(value).to_bytes(32, "big") + items
    if kind in ("bytes", "string"):
        raw: bytes = value if kind == "bytes" else value.encode()
        return len(raw).to_bytes(32, "big") + raw + bytes(-len(raw) % 32)
    if isinstance(value, bytes):
        return value.rjust(32, b"\0") if kind == "address" else value.ljust(32, b"\0")
    return int(value).to_bytes(32, "big", signed=value < 0)


def encoded_list(kinds: list[Any], values: list[Any]) -> bytes:
    parts = [encoded(kind, value) for kind, value in zip(kinds, values, strict=True)]
    size = sum(32 if is_dynamic(kind) else len(part) for kind, part in zip(kinds, parts, strict=True))
    heads, tails = b"", b""
    for kind, part in zip(kinds, parts, strict=True):
        heads += (size + len(tails)).to_bytes(32, "big") if is_dynamic(kind) else part
        tails += part if is_dynamic(kind) else b""
    return heads + tails


def leaves(kind: Any, value: Any, path: str) -> list[tuple[str, str, str]]:
    if isinstance(kind, tuple) and kind[0] == "tuple":
        pairs = enumerate(zip(kind[1], value, strict=True))
        return [leaf for at, (one, it) in pairs for leaf in leaves(one, it, f"{path}.{at}")]
    if isinstance(kind, tuple):
        found = [leaf for at, it in enumerate(value) for leaf in leaves(kind[1], it, f"{path}[{at}]")]
        return found if value else [(path, text_of(kind), "[]")]
    if isinstance(value, bytes):
        return [(path, kind, checksummed(value) if kind == "address" else f"0x{value.hex()}")]
    return [(path, kind, str(value).lower() if kind == "bool" else str(value))]


@settings(max_examples=300, deadline=None)
@given(st.lists(TYPES, max_size=4), st.integers(0, 1 << 32))
def test_what_a_second_encoder_wrote_is_read(kinds: list[Any], seed: int) -> None:
    draw = random.Random(seed)
    values = [random_value(kind, draw) for kind in kinds]
    expected = [
        leaf for at, (kind, it) in enumerate(zip(kinds, values, strict=True)) for leaf in leaves(kind, it, f"{at}")
    ]
    declared = declaration("function", f"f({','.join(map(text_of, kinds))})")
    data = encoded_list(kinds, values)
    found = decode_call(declared, bytes(4) + data)
    if len(expected) > VALUES_MAX:
        assert found is None
        return
    assert found is not None
    assert [(one.name, one.type, one.value) for one in found] == expected
    if data:  # the last byte may be padding of bytes, which is not read; a whole word less always shows
        assert decode_call(declared, bytes(4) + data[:-32]) is None or data[-32:] == bytes(32)
    event = declaration("event", f"E({','.join(map(text_of, kinds))})")
    assert decode_event(event, (event.topic,), data) == found


@settings(max_examples=300, deadline=None)
@given(st.lists(TYPES, min_size=1, max_size=4), st.binary(max_size=400), st.lists(st.integers(0, 12), max_size=12))
def test_any_data_is_read_or_refused(kinds: list[Any], noise: bytes, words: list[int]) -> None:
    declared = declaration("function", f"f({','.join(map(text_of, kinds))})")
    data = b"".join((32 * word).to_bytes(32, "big") for word in words) + noise  # offsets that often hit
    found = decode_call(declared, bytes(4) + data)
    if found is not None:
        assert len(found) <= VALUES_MAX
        assert sum(len(one.value) for one in found) <= 100 * len(found) + 4 * len(data)


def test_overlapping_parts_make_no_long_list() -> None:
    """Each of 200 texts is the same long one: a naive reader would answer with 200 times the data."""
    long = (6_400).to_bytes(32, "big") + bytes(6_400)
    offsets = b"".join((200 * 32).to_bytes(32, "big") for _ in range(200))
    data = (32).to_bytes(32, "big") + (200).to_bytes(32, "big") + offsets + long
    assert decode_call(declaration("function", "f(bytes[])"), bytes(4) + data) is None
    one = (32).to_bytes(32, "big") + (1).to_bytes(32, "big") + (32).to_bytes(32, "big") + long
    assert decode_call(declaration("function", "f(bytes[])"), bytes(4) + one) is not None


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("address", (1 << 160).to_bytes(32, "big")),
        ("bool", (2).to_bytes(32, "big")),
        ("uint8", (256).to_bytes(32, "big")),
        ("int8", (128).to_bytes(32, "big")),
        ("bytes4", bytes(31) + b"\1"),
        ("function", bytes(31) + b"\1"),
        ("bytes", b"\xff" * 32),
        ("uint256[]", (32).to_bytes(32, "big") + b"\xff" * 32),
        ("uint256[999999]", bytes(64)),
    ],
)
def test_words_that_no_compiler_writes_are_refused(kind: str, word: bytes) -> None:
    assert decode_call(declaration("function", f"f({kind})"), bytes(4) + word) is None


def test_indexed_arguments_are_in_topics_and_long_ones_are_hashes() -> None:
    event = declaration("event", "E(uint256 a,address indexed b,string indexed c,(uint8 d,bool) indexed e,bytes f)")
    kinds: list[Any] = ["uint256", "bytes"]
    topics = (event.topic, bytes(12) + b"\x11" * 20, b"\x22" * 32, b"\x33" * 32)
    found = decode_event(event, topics, encoded_list(kinds, [7, b"xyz"]))
    assert found is not None
    assert [(one.name, one.type, one.value, one.is_indexed, one.is_hash) for one in found] == [
        ("a", "uint256", "7", False, False),
        ("b", "address", "0x" + "11" * 20, True, False),
        ("c", "string", "0x" + "22" * 32, True, True),
        ("e", "(uint8,bool)", "0x" + "33" * 32, True, True),
        ("f", "bytes", "0x78797a", False, False),
    ]
    assert decode_event(event, topics[:-1], encoded_list(kinds, [7, b"xyz"])) is None


@pytest.mark.parametrize(
    "text",
    [
        "", "f", "f(", "f()x", "(uint256)", "f(uint257)", "f(uint0)", "f(uint08)", "f(bytes33)", "f(fixed128x18)",
        "f(())", "f(uint256[0])", "f(uint256[01])", "f(uint256[)", "f(uint256 a b)", "f(uint256,)", "f<b>(uint256)",
        "f(uint256 é)", f"f({'(' * 40}uint8{')' * 40})", f"f(uint8{'[]' * 17})", f"f({','.join(['uint8'] * 65)})",
        f"f(uint8 {'a' * 129})", f"f({' ' * 5_000})",
    ],
)  # fmt: skip
def test_invalid_declarations_are_refused(text: str) -> None:
    with pytest.raises(AbiError):
        declaration("function", text)


def test_names_and_short_forms_are_read() -> None:
    declared = declaration("function", "f(uint a, (int b,address[2][] c)[] d)")
    assert declared.signature == "f(uint256,(int256,address[2][])[])"
    assert declared.topic[:4] == declaration("function", declared.signature).topic[:4]


def test_every_event_that_is_named_is_declared() -> None:
    assert {topic: ones[0].signature for topic, ones in EVENTS_BY_TOPIC.items()} == EVENT_SIGNATURES
    assert sum(map(len, EVENTS_BY_TOPIC.values())) == len(EVENTS)
    assert len(ERRORS_BY_SELECTOR) == len(ERRORS)
    assert ERRORS_BY_SELECTOR[bytes.fromhex("08c379a0")].name == "Error"
    assert ERRORS_BY_SELECTOR[bytes.fromhex("e450d38c")].name == "ERC20InsufficientBalance"


def test_what_contracts_do_is_decoded_by_known_signatures() -> None:
    approve, unknown = bytes.fromhex("095ea7b3"), bytes.fromhex("01020304")
    decoder = ContractDecoder({approve: "approve(address,uint256)", unknown: "f(fixed128x18)"})
    arguments = bytes(12) + b"\x11" * 20 + (9).to_bytes(32, "big")
    for _ in range(2):
        found = decoder.call(approve + arguments)
        assert found is not None
        assert [(one.name, one.type, one.value) for one in found.values] == [
            ("0", "address", "0x" + "11" * 20), ("1", "uint256", "9"),
        ]  # fmt: skip
        assert decoder.call(unknown + arguments) is None
    for data in (b"", approve[:3], approve, approve + arguments[:-1], bytes(4) + arguments, approve + bytes(DATA_MAX)):
        assert decoder.call(data) is None
    text = encoded_list(["string"], ["no"])
    failed = decoder.error(bytes.fromhex("08c379a0") + text)
    assert failed is not None
    assert (failed.declared.signature, failed.values[0].value) == ("Error(string)", "no")
    assert decoder.error(approve + text) is None
    assert decoder.error(b"") is None
    topic = declaration("event", "Transfer(address,address,uint256)").topic
    nft = decoder.event((topic, bytes(32), bytes(32), (5).to_bytes(32, "big")), b"")
    assert nft is not None
    assert [one.name for one in nft.values] == ["from", "to", "tokenId"]
    coin = decoder.event((topic, bytes(32), bytes(32)), (5).to_bytes(32, "big"))
    assert coin is not None
    assert [one.name for one in coin.values] == ["from", "to", "value"]
    assert decoder.event((topic, bytes(32)), bytes(64)) is None
    assert decoder.event((), b"") is None
