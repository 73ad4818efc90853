"""Verifies that the parts of a block sent by a node are consistent with each other and with the hashes in the header.

A node that answers too early, or for another block of the same height, sends lists that are shorter, empty or of other
transactions. Such an answer must not be accepted as a block with few transactions.
"""

from collections.abc import Sequence

from icefall.wire.errors import WireError
from icefall.wire.evm import rlp
from icefall.wire.evm.hashes import (
    created_address,
    ext_data_hash,
    header_hash,
    is_known_layout,
    receipt_bytes,
    tx_bytes,
    withdrawals_root,
)
from icefall.wire.evm.rlp import keccak256
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

_ZERO = bytes(32)
_LAST_TYPE = 4
_UNSIGNED = "transactions without a signature, as a test client impersonates accounts: their hashes are not recomputed"


def verify_full(full: FullBlock, parent_hash: bytes | None, *, roots: bool) -> list[str]:
    """Run `verify_block` and `verify_traces`."""
    problems = verify_block(full.block, full.receipts, parent_hash, roots=roots)
    verify_traces(full.block, full.traces, full.diffs)
    return problems


def verify_block(
    block: DecodedBlock, receipts: Sequence[Receipt], parent_hash: bytes | None, *, roots: bool
) -> list[str]:
    """Descriptions of what could not be verified. Raises InvalidData, or the subclass that says more, if it is wrong.

    `roots`: also every transaction's hash and the roots over transactions and receipts, which is most of the cost.
    `parent_hash`: of the block before it; None for the first.
    """
    problems = _check_header(block)
    if parent_hash is not None and block.parent_hash != parent_hash:
        raise ParentMismatch(f"{_name(block)}: its parent is {_hex(block.parent_hash)}, expected {_hex(parent_hash)}")
    _check_lists(block)
    problems += _check_atomic(block)
    _check_receipts(block, receipts)
    if roots:
        problems += _check_roots(block, receipts)
    return problems


def verify_traces(block: DecodedBlock, traces: Sequence[Trace] | None, diffs: Sequence[TxDiff] | None) -> None:
    """Check that there is one trace and one diff for each transaction, of that transaction."""
    if traces is not None:
        _check_count(block, len(traces), "traces")
        for tx, trace in zip(block.txs, traces, strict=True):
            root = trace.frames[0]
            if trace.tx_hash != tx.tx_hash:
                _check_hash(block, tx.tx_hash, trace.tx_hash, "trace")
            if root.sender != tx.sender or (tx.to and root.to != tx.to) or root.value != tx.value:
                raise IncompleteBlock(f"{_name(block)}: the trace of {_hex(tx.tx_hash)} is of another transaction")
    if diffs is not None:
        _check_count(block, len(diffs), "diffs")
        for tx, diff in zip(block.txs, diffs, strict=True):
            if diff.tx_hash != tx.tx_hash:
                _check_hash(block, tx.tx_hash, diff.tx_hash, "diff")
            if tx.type_id <= _LAST_TYPE and tx.sender not in [account.address for account in diff.accounts]:
                raise IncompleteBlock(f"{_name(block)}: the diff of {_hex(tx.tx_hash)} leaves out its sender")


def _check_header(block: DecodedBlock) -> list[str]:
    computed = header_hash(block)
    if computed == block.block_hash:
        return []
    if is_known_layout(block):
        raise InvalidData(f"{_name(block)}: its header hashes to {_hex(computed)}, not {_hex(block.block_hash)}")
    return ["headers of this chain have an unknown layout: block hashes are not recomputed"]


def _check_lists(block: DecodedBlock) -> None:
    """Check that empty lists have the empty root in the header, which is cheap."""
    if (not block.txs) != (block.transactions_root == rlp.EMPTY_ROOT):
        raise InvalidData(f"{_name(block)}: {len(block.txs)} transactions under root {_hex(block.transactions_root)}")
    if block.withdrawals_root is None:
        if block.withdrawals:
            raise InvalidData(f"{_name(block)}: withdrawals without a withdrawalsRoot in its header")
        return
    if block.withdrawals is None:
        raise IncompleteBlock(f"{_name(block)}: no withdrawals where its header has a root of them")
    if withdrawals_root(block.withdrawals) != block.withdrawals_root:
        raise InvalidData(f"{_name(block)}: its withdrawals do not give its withdrawalsRoot")


def _check_atomic(block: DecodedBlock) -> list[str]:
    if block.ext_data_hash is None:
        return []
    if block.ext_data is None:
        raise IncompleteBlock(f"{_name(block)}: extDataHash without blockExtraData")
    if block.ext_data_hash == _ZERO:  # genesis, and the first months of the C-Chain
        return ["atomic transactions that its header does not cover"] if block.ext_data else []
    if ext_data_hash(block.ext_data) != block.ext_data_hash:
        raise InvalidData(f"{_name(block)}: blockExtraData does not give extDataHash")
    return []


def _check_receipts(block: DecodedBlock, receipts: Sequence[Receipt]) -> None:
    _check_count(block, len(receipts), "receipts")
    is_plain = is_known_layout(block)  # other chains may have other rules for prices
    gas = log_index = 0
    for index, (tx, receipt) in enumerate(zip(block.txs, receipts, strict=True)):
        if receipt.block_hash != block.block_hash:
            raise IncompleteBlock(f"{_name(block)}: a receipt of block {_hex(receipt.block_hash)}")
        if receipt.tx_hash != tx.tx_hash or receipt.index != index or receipt.sender != tx.sender:
            raise IncompleteBlock(
                f"{_name(block)}: receipt {index} is of {_hex(receipt.tx_hash)}, not {_hex(tx.tx_hash)}"
            )
        gas += receipt.gas_used
        if receipt.cumulative_gas != gas:
            raise InvalidData(f"{_name(block)}: gas adds up to {gas} at receipt {index}, not {receipt.cumulative_gas}")
        if receipt.type_id != tx.type_id or (receipt.status is not None and receipt.status > 1):
            raise InvalidData(f"{_name(block)}: receipt {index} has type {receipt.type_id} and status {receipt.status}")
        for log in receipt.logs:
            if log.index != log_index:
                raise IncompleteBlock(f"{_name(block)}: log {log.index} where {log_index} is next")
            log_index += 1
        if is_plain and receipt.gas_price not in (None, _price(tx, block.base_fee or 0)):
            raise InvalidData(f"{_name(block)}: receipt {index} has a gas price that its transaction does not allow")
        if receipt.contract and (tx.to or receipt.contract != created_address(tx.sender, tx.nonce)):
            raise InvalidData(f"{_name(block)}: receipt {index} names a contract its transaction cannot have made")
    if gas != block.gas_used:
        raise IncompleteBlock(f"{_name(block)}: its receipts used {gas} gas, its header has {block.gas_used}")


def _check_roots(block: DecodedBlock, receipts: Sequence[Receipt]) -> list[str]:
    if rlp.ordered_root([receipt_bytes(one) for one in receipts]) != block.receipts_root:
        raise RootMismatch(f"{_name(block)}: its receipts do not give its receiptsRoot")
    encoded: list[bytes] = []
    unsigned = False
    for tx in block.txs:
        try:
            raw = tx_bytes(tx)
        except WireError as error:
            return [str(error)]  # other chains add types, whose hash cannot be recomputed
        if keccak256(raw) != tx.tx_hash:
            if tx.r or tx.s:
                raise RootMismatch(
                    f"{_name(block)}: its transactions do not give its transactionsRoot: {_hex(tx.tx_hash)} is not the"
                    f" hash of transaction {len(encoded)}"
                )
            unsigned = True  # the root below covers it, but anvil computes its hash in a way of its own
        encoded.append(raw)
    if rlp.ordered_root(encoded) != block.transactions_root:
        raise RootMismatch(f"{_name(block)}: its transactions do not give its transactionsRoot")
    return [_UNSIGNED] if unsigned else []


def _price(tx: EvmTx, base_fee: int) -> int:
    """Return what a unit of gas cost: since EIP-1559 the base fee and a tip, within what the sender allowed."""
    if tx.max_fee is None:
        return tx.gas_price
    return min(tx.max_fee, base_fee + (tx.max_priority_fee or 0))


def _check_count(block: DecodedBlock, count: int, what: str) -> None:
    if count != len(block.txs):
        raise IncompleteBlock(f"{_name(block)}: {count} {what} of {len(block.txs)} transactions")


def _check_hash(block: DecodedBlock, expected: bytes, got: bytes, what: str) -> None:
    if got and got != expected:
        raise IncompleteBlock(f"{_name(block)}: a {what} of {_hex(got)} where {_hex(expected)} is next")


def _name(block: DecodedBlock) -> str:
    return f"block {block.number} ({_hex(block.block_hash)})"


def _hex(raw: bytes) -> str:
    return "0x" + raw.hex()
