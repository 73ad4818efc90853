"""RLP and trie roots, against blocks and receipts recorded from geth."""

from typing import Any

import pytest
from Crypto.Hash import keccak
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.wire_vectors import inner_blocks, recorded

from icefall.wire.errors import WireError
from icefall.wire.evm import rlp
from icefall.wire.evm.rlp import keccak256

FEW = settings(max_examples=100, deadline=None, database=None)
ITEMS: st.SearchStrategy[Any] = st.recursive(
    st.binary(max_size=70), lambda children: st.lists(children, max_size=6), max_leaves=20
)


def unhex(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def number(text: str) -> bytes:
    return rlp.number(int(text, 16))


def log_item(log: Any) -> rlp.Item:
    return [unhex(log["address"]), [unhex(topic) for topic in log["topics"]], unhex(log["data"])]


def receipt_bytes(receipt: Any) -> bytes:
    head = [number(receipt["status"]), number(receipt["cumulativeGasUsed"]), unhex(receipt["logsBloom"])]
    kind = int(receipt["type"], 16)
    return (bytes([kind]) if kind else b"") + rlp.encode([*head, [log_item(log) for log in receipt["logs"]]])


@pytest.mark.parametrize("row", recorded("geth-1_roots.jsonl.gz"), ids=lambda row: f"{len(row['receipts'])}-receipts")
def test_receipts_root(row: Any) -> None:
    root = rlp.ordered_root([receipt_bytes(receipt) for receipt in row["receipts"]])
    assert root == unhex(row["block"]["receiptsRoot"])


def test_empty_roots() -> None:
    assert rlp.EMPTY_ROOT.hex() == "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
    assert rlp.ordered_root([]) == rlp.trie_root({}) == rlp.secure_root({}) == rlp.EMPTY_ROOT


def test_transaction_roots_of_recorded_blocks() -> None:
    for raw in inner_blocks("C"):
        header, txs, *_ = rlp.slices(raw)
        fields = [rlp.string(field) for field in rlp.slices(header)]
        assert rlp.ordered_root([tx if tx[0] >= 0xC0 else rlp.string(tx) for tx in rlp.slices(txs)]) == fields[4]


def test_key_that_is_a_prefix_of_another() -> None:
    both = rlp.trie_root({b"do": b"verb", b"dog": b"puppy", b"doge": b"coin", b"horse": b"stallion"})
    assert both.hex() == "5991bb8c6514148a29db676a14ac506cd2cd5775ace63c30a4fe457715e9ac84"


@FEW
@given(ITEMS)
def test_round_trip(item: Any) -> None:
    raw = rlp.encode(item)
    assert rlp.decode(raw) == item
    if isinstance(item, list):
        assert rlp.slices(raw) == [rlp.encode(part) for part in item]
        assert rlp.encode_list(rlp.slices(raw)) == raw
    else:
        assert rlp.string(raw) == item


@FEW
@given(st.integers(min_value=0, max_value=2**256))
def test_numbers(value: int) -> None:
    assert rlp.to_number(rlp.number(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8100",
        "81",
        "b8",
        "b801ff",
        "b90000",
        "b8378001",
        "c180ff",
        "c28100",
        "c3",
        "f800",
        "0000",
        "bfffffffffffffffff",
    ],
)
def test_bad_rlp(text: str) -> None:
    with pytest.raises(WireError, match=r"^RLP: "):
        rlp.decode(bytes.fromhex(text))


def test_deep_nesting_is_refused() -> None:
    raw = b"\xc0"
    for _ in range(200):
        raw = rlp.encode_list([raw])
    with pytest.raises(WireError, match="nested"):
        rlp.decode(raw)
    for part in (rlp.string, rlp.slices):
        with pytest.raises(WireError):
            part(b"\xc0" if part is rlp.string else b"\x80")
    with pytest.raises(WireError):
        rlp.to_number(b"\0\1")


def test_keccak() -> None:
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"


@pytest.mark.parametrize("size", [1, 31, 32, 134, 135, 136, 137, 271, 272, 273, 1000])
def test_keccak_is_that_of_another_library(size: int) -> None:
    """Around the sizes at which another round of the permutation begins."""
    raw = bytes(index * 37 % 251 for index in range(size))
    assert keccak256(raw) == keccak.new(digest_bits=256, data=raw).digest()
