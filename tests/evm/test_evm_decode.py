"""Shapes and spellings that clients differ in, and texts that must be refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.evm.recordings import CHAINS, decoded, full_blocks, like, lines

from icefall.wire.errors import WireError
from icefall.wire.evm.block import decode_block, decode_receipts
from icefall.wire.evm.decode import decode_full
from icefall.wire.evm.geth_traces import decode_geth_calls, decode_geth_diffs
from icefall.wire.evm.hex import HexAddresses, HexAmounts, HexNumbers, HexWords, amount, data, fixed, minimal
from icefall.wire.evm.types import IncompleteBlock

ADDRESS, OTHER = "0x" + "11" * 20, "0x" + "22" * 20
HASH = "0x" + "33" * 32


def packed(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_a_block_that_is_not_there() -> None:
    assert decode_block(b"null") is None
    assert decode_receipts(b"null") is None
    row = lines(like("geth"))[1]
    for parts in ((b"null", bytes(row.receipts)), (bytes(row.block), b"null")):
        with pytest.raises(IncompleteBlock):
            decode_full(*parts, None, None)


@pytest.mark.parametrize("decode", [decode_block, decode_receipts, decode_geth_calls, decode_geth_diffs])
@pytest.mark.parametrize("raw", [b"", b"{", b"[{}]", b"1", b'"x"', b'{"a":1}', b"\xff", b'["0x1"]', b"[" * 5000])
def test_refused(decode: Callable[[bytes], object], raw: bytes) -> None:
    with pytest.raises(WireError):
        decode(raw)


@pytest.mark.parametrize(
    "text", ["", "0x", "12", "0X1", "0x-1", "-0x1", "0x1_0", " 0x1", "0x 1", "0xg", "0x" + "1" * 65, "0x\u0661", "0x+1"]
)
def test_numbers_are_strict(text: str) -> None:
    for read in (amount, minimal, HexNumbers().__getitem__, HexAmounts().__getitem__):
        with pytest.raises(WireError):
            read(text)


@pytest.mark.parametrize("text", ["", "12", "0x1", "0x1 2", "0x 12", "0x12 ", "0xgg", "0X12", "0x1_", "0x\u0661\u0661"])
def test_bytes_are_strict(text: str) -> None:
    for read in (data, HexAddresses().__getitem__, HexWords().__getitem__):
        with pytest.raises(WireError):
            read(text)


def test_sizes() -> None:
    assert amount("0x" + "f" * 64) == 2**256 - 1
    assert amount("0x0001") == 1
    assert [minimal(text) for text in ("0x0", "0x1ff", "0x" + "00" * 31 + "7f", HASH)] == [
        b"",
        b"\x01\xff",
        b"\x7f",
        b"\x33" * 32,
    ]
    for text in ("0x" + "3" * 62 + "  ", "0x" + "3 " * 32, "0x" + "3" * 63 + "g", "0x" + "3" * 63 + "_"):
        with pytest.raises(WireError):
            minimal(text)
    assert HexNumbers()["0xffffffffffffffff"] == 2**64 - 1
    assert data("0x") == b""
    with pytest.raises(WireError):
        HexNumbers()["0x10000000000000000"]
    with pytest.raises(WireError, match="expected 20 bytes"):
        fixed(HASH, 20)


def test_what_each_client_sends() -> None:
    blocks = {chain: full_blocks(chain)[1].block for chain in CHAINS}
    for chain, block in blocks.items():
        assert not block.unknown_fields
        assert (block.base_fee is None) == chain.startswith("berlin")
        assert (block.ext_data_hash is not None) == chain.startswith("cchain")
        assert (block.requests_hash is not None) == chain.startswith("geth")
        assert (block.withdrawals is not None) == chain.startswith(("geth", "anvil"))
    kinds = {tx.type_id for full in full_blocks(like("geth")) for tx in full.block.txs}
    assert kinds == {0, 1, 2, 3, 4}


def test_every_recorded_field_is_known() -> None:
    """A field that is new to us would be met here first: the decoder then reports it."""
    for chain in CHAINS:
        assert not any(full.block.unknown_fields for full in full_blocks(chain))
        recorded = json.loads(bytes(lines(chain)[1].block))
        recorded["l1BlockNumber"] = "0x1"
        other = decode_block(packed(recorded))
        assert other is not None
        assert other.unknown_fields
        assert other.txs == full_blocks(chain)[1].block.txs


def test_transactions_given_by_hash_only_are_refused() -> None:
    row = next(row for row, full in zip(lines(like("geth")), full_blocks(like("geth")), strict=True) if full.block.txs)
    recorded = json.loads(bytes(row.block))
    recorded["transactions"] = [tx["hash"] for tx in recorded["transactions"]]
    with pytest.raises(WireError, match="block: "):
        decode_block(packed(recorded))


def test_older_transactions() -> None:
    """No type, no chain ID, no parity: blocks and clients from before those existed."""
    row = next(
        row
        for row, full in zip(lines(like("geth")), full_blocks(like("geth")), strict=True)
        if [tx.type_id for tx in full.block.txs] == [0]
    )
    recorded = json.loads(bytes(row.block))
    for name in ("type", "chainId"):
        del recorded["transactions"][0][name]
    block, expected = decode_block(packed(recorded)), decoded(row).block
    assert block is not None
    assert block.txs[0].type_id == 0
    assert block.txs[0].tx_hash == expected.txs[0].tx_hash
    del recorded["transactions"][0]["gasPrice"]
    with pytest.raises(WireError, match="without a gas price"):
        decode_block(packed(recorded))


def test_receipts_of_before_byzantium() -> None:
    receipts = json.loads(bytes(next(row for row in lines(like("geth")) if bytes(row.receipts) != b"[]").receipts))
    for receipt in receipts:
        del receipt["status"], receipt["effectiveGasPrice"]
        receipt["root"] = HASH
    read = decode_receipts(packed(receipts))
    assert read
    assert {(one.status, one.state_root, one.gas_price) for one in read} == {(None, b"\x33" * 32, None)}
    del receipts[0]["root"]
    with pytest.raises(WireError, match="without a status"):
        decode_receipts(packed(receipts))


def frame(kind: str = "CALL", **more: Any) -> dict[str, Any]:
    return {"type": kind, "from": ADDRESS, "to": OTHER, "gas": "0x5", "gasUsed": "0x1", "input": "0x", **more}


def trace(root: Any) -> bytes:
    return packed([{"txHash": HASH, "result": root}])


def test_frames_that_matter() -> None:
    root = frame(
        value="0x0",
        calls=[
            frame("STATICCALL", calls=[frame(value="0x1")]),
            frame("DELEGATECALL", value="0x7"),
            frame(value="0x0"),
            frame("CALLCODE", value="0x2", error="out of gas", calls=[frame(value="0x3")]),
            {**frame("CREATE", error="execution reverted"), "to": None},
            frame("SELFDESTRUCT", value="0x0"),
            frame("NEWCALL", value="0x1"),
        ],
    )
    (read,) = decode_geth_calls(trace(root))
    assert read.frame_count == 10
    assert [(one.number, one.opcode, one.value, one.is_reverted) for one in read.frames] == [
        (0, "CALL", 0, False),
        (2, "CALL", 1, False),
        (5, "CALLCODE", 2, True),
        (6, "CALL", 3, True),
        (7, "CREATE", 0, True),
        (8, "SELFDESTRUCT", 0, False),
    ]
    assert read.frames[4].to == b""


def test_a_failed_creation_has_no_place_whatever_the_client_says() -> None:
    (read,) = decode_geth_calls(trace(frame(calls=[frame("CREATE2", error="contract address collision")])))
    assert read.frames[1].to == b""


def test_a_frame_that_succeeded_nowhere_is_refused() -> None:
    for kind in ("CALL", "CREATE"):
        broken = frame(kind)
        del broken["to"]
        with pytest.raises(WireError, match="no recipient"):
            decode_geth_calls(trace(broken))


def test_items_without_a_result() -> None:
    """One failed item makes the whole answer incomplete: it is not a transaction without calls."""
    items = [{"txHash": HASH, "result": frame()}, {"txHash": HASH, "error": "execution timeout"}]
    with pytest.raises(IncompleteBlock, match="execution timeout"):
        decode_geth_calls(packed(items))
    with pytest.raises(IncompleteBlock):
        decode_geth_diffs(packed([{"txHash": HASH, "error": {"code": -32000}}]))
    empty: list[Any] = [{"txHash": HASH, "result": {}}, {"result": {"pre": {}}}]  # anvil, for tracers it has not
    for item in empty:
        with pytest.raises(WireError):
            decode_geth_calls(packed([item]))
        with pytest.raises(WireError):
            decode_geth_diffs(packed([item]))


def test_items_without_a_hash() -> None:
    assert decode_geth_calls(packed([{"result": frame()}]))[0].tx_hash == b""
    assert decode_geth_diffs(packed([{"result": {"pre": {}, "post": {}}}]))[0].tx_hash == b""


@pytest.mark.parametrize("depth", [10, 600, 1024])
def test_calls_nested_as_deep_as_the_machine_allows(depth: int) -> None:
    one = packed(frame(value="0x1"))[:-1]
    raw = b'[{"txHash":"' + HASH.encode() + b'","result":' + (one + b',"calls":[') * depth + one + b"}"
    (read,) = decode_geth_calls(raw + b"]}" * depth + b"}]")
    assert (read.frame_count, len(read.frames)) == (depth + 1, depth + 1)
    for broken in (raw + b"]}" * depth, raw + b"]}" * (depth + 2), raw + b"]}" * depth + b"}]1"):
        with pytest.raises(WireError):
            decode_geth_calls(broken)
    with pytest.raises(IncompleteBlock):
        decode_geth_calls(raw + b"]}" * depth + b'},{"error":"late"}]')


class TooDeep:
    def decode(self, raw: bytes) -> Any:
        raise RecursionError


@pytest.mark.parametrize("depth", [3, 4, 5])  # cut at arrays and at objects, at objects, at both again
def test_deep_traces_are_read_as_shallow_ones_are(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    raws = [bytes(row.calls) for chain in CHAINS for row in lines(chain)[:60]]
    raws = [raw for raw in raws if raw != b"null" and b"traceAddress" not in raw]
    assert raws
    expected = [decode_geth_calls(raw) for raw in raws]
    monkeypatch.setattr("icefall.wire.text.jsonscan._PIECE_DEPTH", depth)
    monkeypatch.setattr("icefall.wire.evm.geth_traces._traces", TooDeep())
    assert [decode_geth_calls(raw) for raw in raws] == expected
    for broken in (
        b"",
        b"[",
        b"]",
        b"{1:2}",
        b"[1]2",
        b'"',
        b"[tru]",
        b"\xff",
        packed([{"result": frame(calls=["x"])}]),
    ):
        with pytest.raises(WireError):
            decode_geth_calls(broken)


def diff(pre: Any, post: Any) -> Any:
    (read,) = decode_geth_diffs(packed([{"txHash": HASH, "result": {"pre": pre, "post": post}}]))
    return {one.address.hex()[:2]: one for one in read.accounts}


def test_what_a_diff_means() -> None:
    coded = {"balance": "0x5", "code": "0x6000", "nonce": 1}
    read = diff({ADDRESS: coded, OTHER: {"balance": "0x9"}}, {ADDRESS: {"balance": "0x7"}})
    assert (read["11"].balance_before, read["11"].balance_after) == (5, 7)
    assert (read["11"].had_code, read["11"].has_code, read["11"].is_gone) == (True, True, False)
    assert (read["22"].balance_before, read["22"].balance_after, read["22"].is_gone) == (9, 0, True)
    new = diff({}, {ADDRESS: {"balance": "0x1", "code": "0xfe", "storage": {HASH: HASH}}})["11"]
    assert (new.balance_before, new.had_code, new.has_code, new.changed_storage) == (0, False, True, True)
    kept = diff({ADDRESS: coded}, {ADDRESS: {"nonce": 2, "storage": {}}})["11"]
    assert (kept.balance_before, kept.balance_after, kept.changed_storage) == (5, 5, False)


@pytest.mark.parametrize("after", [{"code": "0x"}, {"codeHash": "0x" + "00" * 32}, {"code": "0x", "codeHash": HASH}])
def test_a_cleared_delegation(after: dict[str, str]) -> None:
    """geth reports it by a code hash of zeros, without any code."""
    read = diff({ADDRESS: {"balance": "0x5", "code": "0xef0100" + "22" * 20}}, {ADDRESS: {**after, "nonce": 3}})
    assert (read["11"].had_code, read["11"].has_code) == (True, False)


def test_code_left_out_but_hashed() -> None:
    """geth with disableCode: the hash still shows that there is some."""
    read = diff({ADDRESS: {"balance": "0x5", "codeHash": HASH}}, {ADDRESS: {"nonce": 3}})
    assert (read["11"].had_code, read["11"].has_code) == (True, True)
