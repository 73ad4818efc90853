"""Native transactions: their fields, what they cost, and the type of call."""

from collections.abc import Iterator, Mapping

from icefall.evm.deriving.incomplete_diffs import created_not_in_diff
from icefall.evm.model import CallType, NativeTx
from icefall.wire.evm.authorizations import signed_delegations
from icefall.wire.evm.hashes import created_address
from icefall.wire.evm.types import EvmTx, FullBlock, Receipt, TxDiff


def transactions(full: FullBlock, has_code: Mapping[bytes, bool]) -> Iterator[NativeTx]:
    """One row for each, in order. `has_code` covers the addresses of `unknown_code`."""
    coded: dict[bytes, bool] = {}  # changed by earlier transactions of the block
    for index, (tx, receipt) in enumerate(zip(full.block.txs, full.receipts, strict=True)):
        diff = full.diffs[index] if full.diffs is not None else None
        if diff is None:  # then whether an authorization applied is not known; it is signed to do so
            coded.update({one.authority: one.sets_code for one in signed_delegations(tx)})
        call_type = _call_type(tx, diff, coded, has_code)
        yield NativeTx(  # in the order of the struct, which costs less than by name
            index,
            tx.tx_hash,
            status(full, index) if receipt.status is None else receipt.status,
            tx.type_id,
            tx.sender,
            tx.to or created_at(tx, receipt),
            tx.value,
            tx.nonce,
            tx.gas,
            receipt.gas_used,
            gas_price(tx, receipt),
            tx.max_fee,
            tx.max_priority_fee,
            call_type,
            tx.input[:4] if call_type is CallType.CONTRACT_CALL else b"",
            tx.input,
        )
        if diff is not None:
            _note_code(diff, coded)
        if diff is None or diff.omits_code:
            coded.update(dict.fromkeys(created_not_in_diff(full, index), True))


def unknown_code(full: FullBlock) -> frozenset[bytes]:
    """Recipients of transactions without input that no diff shows to have code or not."""
    found = set()
    for index, tx in enumerate(full.block.txs):
        if tx.to and not tx.input and (full.diffs is None or _code_in(full.diffs[index], tx.to) is None):
            found.add(tx.to)
    return frozenset(found)


def status(full: FullBlock, index: int) -> int:
    """1 or 0. Receipts before Byzantium have no status, but traces show it."""
    stated = full.receipts[index].status
    if stated is not None:
        return stated
    return 1 if full.traces is None else int(not full.traces[index].frames[0].is_reverted)


def gas_price(tx: EvmTx, receipt: Receipt) -> int:
    """Wei paid per unit of gas; old clients report it in the transaction only."""
    return tx.gas_price if receipt.gas_price is None else receipt.gas_price


def created_at(tx: EvmTx, receipt: Receipt) -> bytes:
    """The address of a created contract, or of one that failed: some clients omit it then."""
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
    """Whether an account had code when the transaction called it; None where its diff does not show it.

    A delegation that the transaction itself sets or clears applies before the call, a self-destruct after it.
    """
    for account in diff.accounts:
        if account.address == address:
            return account.had_code if account.is_gone else account.has_code
    return None


def _note_code(diff: TxDiff, coded: dict[bytes, bool]) -> None:
    for account in diff.accounts:
        has_code = account.has_code
        if has_code != account.had_code and has_code is not None and not account.is_gone:
            coded[account.address] = has_code
