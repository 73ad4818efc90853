"""Every hash of every recorded block recomputes, and every damaged one is noticed."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec
import pytest
from tests.evm.recordings import CHAINS, REORGS, full_blocks, like

from icefall.wire.errors import WireError
from icefall.wire.evm.hashes import header_hash, is_known_layout, receipt_bytes, tx_bytes
from icefall.wire.evm.rlp import keccak256, ordered_root
from icefall.wire.evm.types import (
    DecodedBlock,
    EvmTx,
    FullBlock,
    IncompleteBlock,
    InvalidData,
    ParentMismatch,
    Receipt,
    RootMismatch,
    Trace,
    TxDiff,
)
from icefall.wire.evm.verify import verify_block, verify_full, verify_traces


@pytest.mark.parametrize("chain", CHAINS)
def test_whole_chain_verifies(chain: str) -> None:
    parent = None
    for full in full_blocks(chain):
        assert verify_full(full, parent, roots=True) == []
        assert is_known_layout(full.block)
        parent = full.block.block_hash


@pytest.mark.parametrize("chain", CHAINS)
def test_each_hash_by_itself(chain: str) -> None:
    for full in islice(full_blocks(chain), 0, None, 5):  # the whole chain's hashes were checked together above
        block = full.block
        assert header_hash(block) == block.block_hash
        assert [keccak256(tx_bytes(tx)) for tx in block.txs] == [tx.tx_hash for tx in block.txs]
        assert ordered_root([tx_bytes(tx) for tx in block.txs]) == block.transactions_root
        assert ordered_root([receipt_bytes(one) for one in full.receipts]) == block.receipts_root


@pytest.mark.parametrize("part", REORGS)
def test_reorganised_blocks(part: str) -> None:
    parent = None
    for full in full_blocks(like("anvil"), f"{part}_"):
        assert verify_full(full, parent, roots=True) == []
        parent = full.block.block_hash


def test_reorganisation_shows_as_detached() -> None:
    """The block that follows the fork point links; from the one after that on, the other branch does not."""
    old = {full.block.number: full.block for full in full_blocks(like("anvil"), "reorg1_before_")}
    new = {full.block.number: full for full in full_blocks(like("anvil"), "reorg1_after_")}
    fork = max(number for number in old if new[number].block.block_hash == old[number].block_hash)
    after, later = new[fork + 1], new[fork + 2]
    assert verify_full(after, old[fork].block_hash, roots=True) == []
    with pytest.raises(ParentMismatch, match=f"block {fork + 2} "):
        verify_full(later, old[fork + 1].block_hash, roots=True)


def busy(chain: str) -> FullBlock:
    """A block in which much happened."""
    return max(full_blocks(chain), key=lambda full: (len(full.block.txs) > 1, sum(len(r.logs) for r in full.receipts)))


def changed(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"\1"
    return value[:-1] if value else None


HEADER = [
    name
    for name in DecodedBlock.__struct_fields__
    if name not in ("txs", "unknown_fields", "withdrawals", "ext_data", "block_hash", "size")
]


@pytest.mark.parametrize("chain", CHAINS)
def test_every_header_field_is_covered(chain: str) -> None:
    full = busy(chain)
    fields = [name for name in (*HEADER, "block_hash") if getattr(full.block, name) is not None]
    assert len(fields) >= 16
    for field in fields:
        forged = msgspec.structs.replace(full.block, **{field: changed(getattr(full.block, field))})
        with pytest.raises(InvalidData, match="hashes to"):
            verify_block(forged, full.receipts, None, roots=False)


TX_HASHED = ["tx_hash", "nonce", "gas", "value", "input", "r", "s", "v", "to"]


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("field", TX_HASHED)
def test_every_transaction_field_is_covered(chain: str, field: str) -> None:
    full = busy(chain)
    for index, tx in enumerate(full.block.txs):
        value = changed(getattr(tx, field))
        txs = [*full.block.txs]
        txs[index] = msgspec.structs.replace(tx, **{field: value if field != "to" or tx.to else bytes(20)})
        forged = msgspec.structs.replace(full.block, txs=tuple(txs))
        with pytest.raises(InvalidData):
            verify_block(forged, full.receipts, None, roots=True)


@pytest.mark.parametrize("chain", CHAINS)
def test_every_receipt_field_is_covered(chain: str) -> None:
    full = busy(chain)
    for index, receipt in enumerate(full.receipts):
        for field in Receipt.__struct_fields__:
            if field in ("gas_price", "state_root"):  # not part of what is hashed
                continue
            value = changed(getattr(receipt, field))
            if value is None:
                continue
            receipts = [*full.receipts]
            receipts[index] = msgspec.structs.replace(receipt, **{field: value})
            with pytest.raises(InvalidData):
                verify_block(full.block, receipts, None, roots=True)


def test_log_fields_are_covered() -> None:
    full = busy(like("geth"))
    at, receipt = next((at, one) for at, one in enumerate(full.receipts) if one.logs)
    log = receipt.logs[0]
    for field in log.__struct_fields__:
        forged = msgspec.structs.replace(log, **{field: changed(getattr(log, field))})
        receipts = [*full.receipts]
        receipts[at] = msgspec.structs.replace(receipt, logs=(forged, *receipt.logs[1:]))
        with pytest.raises(InvalidData):
            verify_block(full.block, receipts, None, roots=True)


# An empty, shorter or foreign list must never pass for a quiet block, not even unhashed.
PARTIAL: dict[str, Callable[[FullBlock], FullBlock]] = {
    "no receipts": lambda full: msgspec.structs.replace(full, receipts=()),
    "a receipt less": lambda full: msgspec.structs.replace(full, receipts=full.receipts[:-1]),
    "receipts in another order": lambda full: msgspec.structs.replace(full, receipts=full.receipts[::-1]),
    "no traces": lambda full: msgspec.structs.replace(full, traces=()),
    "a trace less": lambda full: msgspec.structs.replace(full, traces=(full.traces or ())[1:]),
    "traces in another order": lambda full: msgspec.structs.replace(full, traces=(full.traces or ())[::-1]),
    "no diffs": lambda full: msgspec.structs.replace(full, diffs=()),
    "a diff less": lambda full: msgspec.structs.replace(full, diffs=(full.diffs or ())[1:]),
    "diffs in another order": lambda full: msgspec.structs.replace(full, diffs=(full.diffs or ())[::-1]),
    "empty diffs": lambda full: msgspec.structs.replace(
        full, diffs=tuple([TxDiff(one.tx_hash, ()) for one in full.diffs or ()])
    ),
    "traces without hashes, in another order": lambda full: msgspec.structs.replace(
        full, traces=tuple([Trace(b"", one.frames, one.frame_count) for one in (full.traces or ())[::-1]])
    ),
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("case", PARTIAL)
def test_partial_answers_are_incomplete(chain: str, case: str) -> None:
    full = busy(chain)
    assert len(full.block.txs) > 1
    with pytest.raises(IncompleteBlock):
        verify_full(PARTIAL[case](full), None, roots=False)


@pytest.mark.parametrize("more", [1, -1])
def test_receipts_must_use_the_gas_of_the_header(more: int) -> None:
    """Receipts that agree with each other, but not with the header: neither more gas nor less is accepted."""
    full = busy(like("geth"))
    last = full.receipts[-1]
    other = msgspec.structs.replace(last, gas_used=last.gas_used + more, cumulative_gas=last.cumulative_gas + more)
    with pytest.raises(IncompleteBlock, match="its receipts used"):
        verify_block(full.block, (*full.receipts[:-1], other), None, roots=False)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_block_without_its_transactions(chain: str) -> None:
    full = busy(chain)
    with pytest.raises(InvalidData):
        verify_block(msgspec.structs.replace(full.block, txs=()), (), None, roots=False)
    with pytest.raises(InvalidData):
        verify_block(msgspec.structs.replace(full.block, txs=full.block.txs[1:]), full.receipts, None, roots=False)


def test_withdrawals_and_atomic_data() -> None:
    paid = next(full for full in full_blocks(like("geth")) if full.block.withdrawals)
    withdrawn = paid.block.withdrawals
    assert withdrawn
    more = msgspec.structs.replace(withdrawn[0], amount_gwei=withdrawn[0].amount_gwei + 1)
    for forged in ((), (more,), None):
        with pytest.raises(InvalidData, match="withdrawals"):
            verify_block(msgspec.structs.replace(paid.block, withdrawals=forged), paid.receipts, None, roots=False)
    atomic = next(full for full in full_blocks(like("cchain")) if full.block.ext_data)
    for data in (b"", (atomic.block.ext_data or b"") + b"\0", None):
        with pytest.raises(InvalidData, match="blockExtraData"):
            verify_block(msgspec.structs.replace(atomic.block, ext_data=data), atomic.receipts, None, roots=False)


def test_unknown_layouts_are_not_refused() -> None:
    """A chain with a header layout of its own: reported, but linkage, completeness and roots are still checked."""
    full = busy(like("geth"))
    other = msgspec.structs.replace(full.block, mix_hash=bytes(32), unknown_fields=True)
    assert len(verify_block(other, full.receipts, other.parent_hash, roots=True)) == 1
    subnet = msgspec.structs.replace(full.block, gas_cost=0)
    assert not is_known_layout(subnet)
    assert len(verify_block(subnet, full.receipts, None, roots=True)) == 1
    with pytest.raises(InvalidData, match="receiptsRoot"):
        verify_block(msgspec.structs.replace(other, receipts_root=bytes(32)), full.receipts, None, roots=True)
    with pytest.raises(ParentMismatch):
        verify_block(other, full.receipts, bytes(32), roots=True)


def test_unknown_transaction_types_are_not_refused() -> None:
    full = busy(like("geth"))
    tx = msgspec.structs.replace(full.block.txs[0], type_id=0x7E)
    receipt = msgspec.structs.replace(full.receipts[0], type_id=0x7E)
    receipts = (receipt, *full.receipts[1:])
    root = ordered_root([receipt_bytes(one) for one in receipts])
    block = msgspec.structs.replace(full.block, txs=(tx, *full.block.txs[1:]), receipts_root=root, unknown_fields=True)
    problems = verify_block(block, receipts, None, roots=True)
    assert problems[1:] == ["transaction type 126 has no known layout"]


def test_an_impersonated_transaction_is_covered_by_the_root_alone() -> None:
    """Test clients send it without a signature, under a hash of their own."""
    full = busy(like("anvil"))
    unsigned = msgspec.structs.replace(full.block.txs[0], r=b"", s=b"")

    def block_with(tx: EvmTx) -> DecodedBlock:
        txs = (tx, *full.block.txs[1:])
        root = ordered_root([tx_bytes(one) for one in txs])
        block = msgspec.structs.replace(full.block, txs=txs, transactions_root=root)
        return msgspec.structs.replace(block, block_hash=header_hash(block))

    good = block_with(unsigned)
    receipts = [msgspec.structs.replace(one, block_hash=good.block_hash) for one in full.receipts]
    (problem,) = verify_block(good, receipts, None, roots=True)
    assert "without a signature" in problem
    other_value = msgspec.structs.replace(unsigned, value=unsigned.value + 1)
    with pytest.raises(RootMismatch, match="do not give its transactionsRoot"):
        verify_block(msgspec.structs.replace(good, txs=(other_value, *good.txs[1:])), receipts, None, roots=True)
    signed = block_with(msgspec.structs.replace(unsigned, r=b"\1"))
    receipts = [msgspec.structs.replace(one, block_hash=signed.block_hash) for one in full.receipts]
    with pytest.raises(RootMismatch, match="is not the hash of transaction 0"):
        verify_block(signed, receipts, None, roots=True)


def test_a_receipt_type_of_more_than_a_byte_is_refused() -> None:
    """It has no encoding at all, whatever the chain."""
    full = busy(like("geth"))
    tx = msgspec.structs.replace(full.block.txs[0], type_id=256)
    receipt = msgspec.structs.replace(full.receipts[0], type_id=256)
    block = msgspec.structs.replace(full.block, txs=(tx, *full.block.txs[1:]))
    with pytest.raises(WireError, match="receipt type 256 has no known layout"):
        verify_block(block, (receipt, *full.receipts[1:]), None, roots=True)


def test_genesis_has_no_traces() -> None:
    for chain in CHAINS:
        first = full_blocks(chain)[0]
        assert first.block.number == 0
        assert not first.block.txs
        verify_traces(first.block, first.traces, first.diffs)
