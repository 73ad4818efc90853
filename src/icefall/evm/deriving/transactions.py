"""Native transactions: what was sent, what it cost, and what kind of call it was."""

from collections.abc import Iterator, Mapping

from icefall.evm.deriving.untold import made_untold
from icefall.evm.model import CallType, NativeTx
from icefall.wire.evm.hashes import created_address
from icefall.wire.evm.types import EvmTx, FullBlock, Receipt, TxDiff


def transactions(full: FullBlock, has_code: Mapping[bytes, bool]) -> Iterator[NativeTx]:
    """One row for each, in order. `has_code` holds the answers for what `undecided` names."""
    coded: dict[bytes, bool] = {}  # what earlier transactions of the block did to code
    for index, (tx, receipt) in enumerate(zip(full.block.txs, full.receipts, strict=True)):
        diff = full.diffs[index] if full.diffs is not None else None
        call_type = _call_type(tx, diff, coded, has_code)
        yield NativeTx(
            tx_index=index,
            tx_hash=tx.tx_hash,
            status=status(full, index),
            type_id=tx.type_id,
            sender=tx.sender,
            to=tx.to or made_at(tx, receipt),
            value=tx.value,
            nonce=tx.nonce,
            gas_limit=tx.gas,
            gas_used=receipt.gas_used,
            gas_price=gas_price(tx, receipt),
            max_fee=tx.max_fee,
            max_priority_fee=tx.max_priority_fee,
            call_type=call_type,
            selector=tx.input[:4] if call_type is CallType.CONTRACT_CALL else b"",
            input=tx.input,
        )
        _note_code(full, index, coded)


def undecided(full: FullBlock) -> frozenset[bytes]:
    """Recipients of transactions without input of which no diff tells whether there is code."""
    found = set()
    for index, tx in enumerate(full.block.txs):
        if tx.to and not tx.input and (full.diffs is None or _code_in(full.diffs[index], tx.to) is None):
            found.add(tx.to)
    return frozenset(found)


def status(full: FullBlock, index: int) -> int:
    """1 or 0. Before Byzantium receipts did not say, but traces do."""
    told = full.receipts[index].status
    if told is not None:
        return told
    return 1 if full.traces is None else int(not full.traces[index].frames[0].is_reverted)


def gas_price(tx: EvmTx, receipt: Receipt) -> int:
    """What a unit of gas cost; old clients only say it in the transaction."""
    return tx.gas_price if receipt.gas_price is None else receipt.gas_price


def made_at(tx: EvmTx, receipt: Receipt) -> bytes:
    """Where a creation put its contract, or would have; some clients keep that to themselves when it failed."""
    return receipt.contract or created_address(tx.sender, tx.nonce)


def _call_type(tx: EvmTx, diff: TxDiff | None, coded: Mapping[bytes, bool], has_code: Mapping[bytes, bool]) -> CallType:
    if not tx.to:
        return CallType.CONTRACT_CREATION
    if tx.input:
        return CallType.CONTRACT_CALL
    runs = None if diff is None else _code_in(diff, tx.to)
    if runs is None:
        runs = coded[tx.to] if tx.to in coded else has_code[tx.to]
    return CallType.CONTRACT_CALL if runs else CallType.NATIVE_TRANSFER


def _code_in(diff: TxDiff, address: bytes) -> bool | None:
    """Whether an account had code when the transaction called it; None where its diff does not tell.

    A delegation that the transaction itself sets or clears applies before the call, a self-destruct after it.
    """
    for account in diff.accounts:
        if account.address == address:
            return account.had_code if account.is_gone else account.has_code
    return None


def _note_code(full: FullBlock, index: int, coded: dict[bytes, bool]) -> None:
    if full.diffs is not None:
        for account in full.diffs[index].accounts:
            if account.has_code is not None and account.has_code != account.had_code and not account.is_gone:
                coded[account.address] = account.has_code
    coded.update(dict.fromkeys(made_untold(full, index), True))
