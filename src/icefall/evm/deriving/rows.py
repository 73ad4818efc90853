"""Addresses whose code was set or removed."""

from collections.abc import Iterable, Iterator, Sequence

from icefall.evm.call_trees import pack_calls
from icefall.evm.deriving.incomplete_diffs import code_not_in_diff
from icefall.evm.deriving.logs import ParsedLog
from icefall.evm.deriving.transfers import Transfers
from icefall.evm.encoding import pack_data
from icefall.evm.model import (
    BlockRow,
    CallType,
    CodeChange,
    Deployment,
    InternalTx,
    NativeTx,
    Participant,
    RawKinds,
    RawRows,
    TeleporterMessage,
)
from icefall.wire.evm.authorizations import signed_delegations
from icefall.wire.evm.decode import trace_format
from icefall.wire.evm.events import CrossChainMessage
from icefall.wire.evm.types import CREATIONS, CallFrame, DecodedBlock, FullBlock, Trace


def code_changes(full: FullBlock, made: Iterable[Deployment]) -> Iterator[CodeChange]:
    """The state after the block, one row per address; None where the client's diff is not reliable."""
    found: dict[bytes, bool | None] = {}
    if full.diffs is not None:
        for index, diff in enumerate(full.diffs):
            for account in diff.accounts:
                has_code, had_code = account.has_code, account.had_code
                if has_code is None or (has_code == had_code and not found and not account.is_gone):
                    continue
                if account.is_gone and had_code:
                    found[account.address] = None  # gone on geth and anvil, still there on coreth
                elif has_code != had_code or account.address in found:
                    found[account.address] = has_code
            if diff.omits_code:
                found.update(dict.fromkeys(code_not_in_diff(full, index)))
    else:
        # A creation may leave no code, and an authorization (EIP-7702) applies only if its nonce is right.
        found.update(dict.fromkeys([one.address for one in made]))
        for tx in full.block.txs:
            found.update(dict.fromkeys([one.authority for one in signed_delegations(tx)]))
        for trace in full.traces or ():
            found.update(
                {one.sender: None for one in trace.frames if one.opcode == "SELFDESTRUCT" and not one.is_reverted}
            )
    for address, has_code in found.items():
        yield CodeChange(address, has_code)


def deployments(traces: Sequence[Trace] | None, txs: Sequence[NativeTx]) -> Iterator[Deployment]:
    """Creations that succeeded and are not inside anything that failed; without traces, those of transactions."""
    for tx in txs:
        if tx.status == 0:
            continue
        if tx.call_type is CallType.CONTRACT_CREATION:
            yield Deployment(tx.to, tx.tx_index, 0, tx.sender)
        if traces is not None:
            for frame in traces[tx.tx_index].frames[1:]:
                if frame.opcode in CREATIONS and not frame.is_reverted:
                    yield Deployment(frame.to, tx.tx_index, frame.number, frame.sender)


_LISTED_WITH_VALUE = ("CALL", "CALLCODE")


def internals(traces: Sequence[Trace] | None, txs: Sequence[NativeTx]) -> Iterator[InternalTx]:
    """Frames below the root, in pre-order. DELEGATECALL repeats its parent's value and moves nothing: not listed."""
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
    """CREATE3 is no instruction: it is a CREATE by a proxy that the same transaction made with CREATE2."""
    return "CREATE3" if frame.opcode == "CREATE" and frame.sender in proxies else frame.opcode


def participants(txs: Sequence[NativeTx], moves: Transfers, calls: Iterable[InternalTx]) -> Iterator[Participant]:
    """Parties of the transaction, its transfers and its listed internals; not miners, authorities or log emitters."""
    parties: list[dict[bytes, None]] = [{tx.sender: None, tx.to: None} for tx in txs]
    for rows in (moves.erc20, moves.erc721, moves.erc1155, calls):
        for row in rows:
            own = parties[row.tx_index]
            own[row.sender] = own[row.to] = None
    for tx_index, addresses in enumerate(parties):
        for address in addresses:
            if address:  # a failed creation has no address
                yield Participant(address, tx_index)


RawLog = tuple[int, int, bytes, bytes, bytes, bytes]


def raw_rows(full: FullBlock, calls: bytes | None, calls_format: str, kinds: RawKinds) -> RawRows:
    """Of a verified block: its traces are known to be one for each transaction, in order. WireError where the calls
    cannot be read. `calls`, `calls_format`: as they were fetched."""
    return RawRows(
        wanted=kinds,
        logs=tuple(_logs(full)) if kinds.logs else None,
        calls=tuple(map(pack_calls, trace_format(calls_format).decode_call_trees(calls)))
        if kinds.calls and calls is not None
        else None,
    )


def _logs(full: FullBlock) -> Iterator[RawLog]:
    for receipt in full.receipts:
        for log in receipt.logs:
            first, rest = (log.topics[0], b"".join(log.topics[1:])) if log.topics else (b"", b"")
            yield log.index, receipt.index, log.address, first, rest, pack_data(log.data)


def messages(events: Iterable[ParsedLog], messenger: bytes) -> Iterator[TeleporterMessage]:
    """The first of each transaction that the chain's messenger logged; other contracts can log the same event."""
    last = -1
    for one in events:
        event = one.event
        if isinstance(event, CrossChainMessage) and one.address == messenger and one.tx_index != last:
            last = one.tx_index
            yield TeleporterMessage(one.tx_index, event.message_id, event.peer_blockchain_id, event.is_sent)


def totals(block: DecodedBlock, txs: Sequence[NativeTx]) -> BlockRow:
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
        fees_spent=sum([tx.gas_used * tx.gas_price for tx in txs]),
    )
