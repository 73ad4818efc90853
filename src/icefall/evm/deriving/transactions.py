"""The transactions of a block and what they contain: internal transactions, deployments, participants. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icefall.evm.deriving.code import created_not_in_diff
from icefall.evm.model import BlockRow, CallType, Deployment, InternalTx, NativeTx, Participant, TransferRow
from icefall.wire.evm.authorizations import signed_delegations
from icefall.wire.evm.hashes import created_address, is_avalanche_layout
from icefall.wire.evm.types import CREATIONS, CallFrame, DecodedBlock, EvmTx, FullBlock, Receipt, Trace, TxDiff

_LISTED_WITH_VALUE = ("CALL", "CALLCODE")
BLACKHOLE = bytes.fromhex("01" + 19 * "00")  # the fee recipient of coreth and subnet-evm where fees are to be burned


def transactions(full: FullBlock, has_code: Mapping[bytes, bool]) -> Iterator[NativeTx]:
    """The row of each transaction, in order. `has_code` covers the addresses of `unknown_code`."""
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
    """The recipients of transactions without input that no diff shows to have code or not."""
    found = set()
    for index, tx in enumerate(full.block.txs):
        if tx.to and not tx.input and (full.diffs is None or _code_in(full.diffs[index], tx.to) is None):
            found.add(tx.to)
    return frozenset(found)


def status(full: FullBlock, index: int) -> int:
    """The status, 1 or 0. Receipts before Byzantium have none, but traces show it."""
    stated = full.receipts[index].status
    if stated is not None:
        return stated
    return 1 if full.traces is None else int(not full.traces[index].frames[0].is_reverted)


def gas_price(tx: EvmTx, receipt: Receipt) -> int:
    """The wei paid per unit of gas; old clients report it in the transaction only."""
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
    """Tell whether an account had code when the transaction called it; None where its diff does not show it.

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


def deployments(traces: Sequence[Trace] | None, txs: Sequence[NativeTx]) -> Iterator[Deployment]:
    """The creations that succeeded and are not inside anything that failed; without traces, those of transactions."""
    for tx in txs:
        if tx.status == 0:
            continue
        if tx.call_type is CallType.CONTRACT_CREATION:
            yield Deployment(tx.to, tx.tx_index, 0, tx.sender)
        if traces is not None:
            for frame in traces[tx.tx_index].frames[1:]:
                if frame.opcode in CREATIONS and not frame.is_reverted:
                    yield Deployment(frame.to, tx.tx_index, frame.number, frame.sender)


def internals(traces: Sequence[Trace] | None, txs: Sequence[NativeTx]) -> Iterator[InternalTx]:
    """The listed frames below the root, in pre-order. DELEGATECALL repeats its parent's value and moves nothing: not
    listed."""
    for tx, trace in zip(txs, traces or (), strict=traces is not None):
        if trace.frame_count == 1:
            continue
        proxies = {frame.to for frame in trace.frames if frame.is_create3_proxy and frame.to}
        for frame in trace.frames[1:]:
            if frame.opcode in CREATIONS or (frame.value and frame.opcode in _LISTED_WITH_VALUE):
                yield InternalTx(
                    tx_index=tx.tx_index,
                    frame=frame.number,
                    kind=_kind(frame, proxies),
                    sender=frame.sender,
                    to=frame.to,
                    value=frame.value,
                    gas_limit=frame.gas,
                    gas_used=frame.gas_used,
                    is_reverted=frame.is_reverted or tx.status == 0,
                )


def _kind(frame: CallFrame, proxies: set[bytes]) -> str:
    """The kind of a frame. CREATE3 is no instruction: it is a CREATE by a proxy that the same transaction made with
    CREATE2."""
    return "CREATE3" if frame.opcode == "CREATE" and frame.sender in proxies else frame.opcode


def participants(
    txs: Sequence[NativeTx], *contained: Iterable[TransferRow] | Iterable[InternalTx]
) -> Iterator[Participant]:
    """The parties of each transaction, and of the transfers and internals in it; not miners or log emitters."""
    parties: list[dict[bytes, None]] = [{tx.sender: None, tx.to: None} for tx in txs]
    for rows in contained:
        for row in rows:
            own = parties[row.tx_index]
            own[row.sender] = own[row.to] = None
    for tx_index, addresses in enumerate(parties):
        for address in addresses:
            if address:  # a failed creation has no address
                yield Participant(address, tx_index)


def totals(block: DecodedBlock, txs: Sequence[NativeTx]) -> BlockRow:
    """The row of the block itself."""
    spent = sum([tx.gas_used * tx.gas_price for tx in txs])
    return BlockRow(
        number=block.number,
        block_hash=block.block_hash,
        parent_hash=block.parent_hash,
        time=block.time,
        tx_count=len(txs),
        base_fee=block.base_fee or 0,
        gas_used=block.gas_used,
        gas_limit=block.gas_limit,
        gas_cost=block.gas_cost or 0,
        fees_spent=spent,
        fee_recipient=block.miner,
        size=block.size,
        fees_burned=_burned(block, spent),
    )


def _burned(block: DecodedBlock, spent: int) -> int | None:
    """Return the part of the fees that no one gets. Coreth and subnet-evm pay whole fees to the recipient, which is an
    address without a key where all are to be burned; elsewhere the base fee vanishes. None: a header that is neither's.
    """
    if block.miner == BLACKHOLE:
        return spent
    if is_avalanche_layout(block):
        return 0
    return None if block.unknown_fields else (block.base_fee or 0) * block.gas_used
