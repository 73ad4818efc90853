"""Everything that a verified block becomes: all its rows, and the raw logs and calls that are stored as they are.

Pure: the same block and contract info give the same rows.
"""

from collections.abc import Iterator

from icefall.evm.deriving.balances import balances
from icefall.evm.deriving.code import code_changed, code_changes
from icefall.evm.deriving.messages import messages, messenger_events
from icefall.evm.deriving.nft_ranges import nft_ranges
from icefall.evm.deriving.tokens import (
    ambiguous_contracts,
    approvals,
    changed_storage,
    holdings,
    metadata_changes,
    parse_logs,
    storage_changed_unlogged,
    transfers,
)
from icefall.evm.deriving.transactions import deployments, internals, participants, totals, transactions, unknown_code
from icefall.evm.encoding import pack_calls, pack_data
from icefall.evm.model import BlockRows, ContractInfo, ContractLookups, MatchedLogs, RawRows, StoredRaw
from icefall.evm.packed import pack_columns
from icefall.wire.evm.decode import trace_format
from icefall.wire.evm.types import FullBlock

RawLog = tuple[int, int, bytes, bytes, bytes, bytes]


def contract_lookups(full: FullBlock) -> ContractLookups:
    """The contract properties that `derive` needs. Read from state only what the store does not have yet."""
    return ContractLookups(code=unknown_code(full), probes=ambiguous_contracts(full.receipts))


def derive(full: FullBlock, info: ContractInfo) -> BlockRows:
    """Derive all rows of a block. KeyError where `info` lacks one of the `contract_lookups`."""
    txs = tuple(transactions(full, info.has_code))
    events, skipped = parse_logs(full.receipts, info.probed)
    moves = transfers(events)
    calls = tuple(internals(full.traces, txs))
    made = tuple(deployments(full.traces, txs))
    native = balances(full, txs, info.native_asset_id)
    code = tuple(code_changes(full, made))
    return BlockRows(
        block=totals(full.block, txs),
        txs=txs,
        **moves._asdict(),
        internals=calls,
        deployments=made,
        participants=tuple(participants(txs, *moves, calls)),
        native_before=native.before,
        native_after=native.after,
        native_deltas=native.deltas,
        unknown_native=native.unknown,
        **holdings(moves, events)._asdict(),
        storage_changed_unlogged=tuple(storage_changed_unlogged(full.diffs, events)),
        code_changed=tuple(code_changed(full.diffs, events, code)),
        code_changes=code,
        metadata_changes=tuple(metadata_changes(events)),
        messages=tuple(messages(events, info.messengers)),
        skipped_logs=skipped,
        storage=changed_storage(full.diffs),
        approvals=tuple(approvals(events)),
        nft_ranges=tuple(nft_ranges(moves.erc721_transfers)),
        messenger_events=tuple(messenger_events(full.receipts, info.messengers)),
    )


def raw_rows(full: FullBlock, calls: bytes | None, calls_format: str, kinds: StoredRaw) -> RawRows:
    """The raw logs and calls of a verified block: its traces are known to be one for each transaction, in order.
    `calls` and `calls_format` are as they were fetched. WireError where the calls cannot be read."""
    return RawRows(
        wanted=kinds,
        logs=tuple(_logs(full)) if kinds.logs else None,
        calls=tuple(map(pack_calls, trace_format(calls_format).decode_call_trees(calls)))
        if kinds.calls and calls is not None
        else None,
        matched=_matched_logs(full) if kinds.matched else None,
    )


def _matched_logs(full: FullBlock) -> MatchedLogs:
    logs = [log for one in full.receipts for log in one.logs]
    addresses = [log.address for log in logs]
    indexes = [log.index for log in logs], [one.index for one in full.receipts for _ in one.logs]
    columns = (*indexes, addresses, [log.topics for log in logs], [log.data for log in logs])
    cumulative = tuple([one.cumulative_gas for one in full.receipts])
    packed = pack_columns(columns) if logs else b""
    return MatchedLogs(full.block.receipts_root, cumulative, tuple(dict.fromkeys(addresses)), packed)


def _logs(full: FullBlock) -> Iterator[RawLog]:
    for receipt in full.receipts:
        for log in receipt.logs:
            first, rest = (log.topics[0], b"".join(log.topics[1:])) if log.topics else (b"", b"")
            yield log.index, receipt.index, log.address, first, rest, pack_data(log.data)
