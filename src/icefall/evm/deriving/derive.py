"""From a verified block to all its rows. Pure: the same block and contract info give the same rows."""

from icefall.evm.deriving.balances import balances
from icefall.evm.deriving.logs import ambiguous_contracts, parse_logs
from icefall.evm.deriving.rows import code_changes, deployments, internals, messages, participants, totals
from icefall.evm.deriving.transactions import transactions, unknown_code
from icefall.evm.deriving.transfers import (
    erc20_deltas,
    erc1155_deltas,
    metadata_changes,
    nft_owners,
    recoded_contracts,
    silent_contracts,
    transfers,
)
from icefall.evm.model import BlockRows, ContractInfo, ContractLookups
from icefall.wire.evm.types import FullBlock


def contract_lookups(full: FullBlock) -> ContractLookups:
    """The contract properties that `derive` needs. Read from state only what the store does not have yet."""
    return ContractLookups(code=unknown_code(full), kinds=ambiguous_contracts(full.receipts))


def derive(full: FullBlock, info: ContractInfo) -> BlockRows:
    """All rows of a block. KeyError where `info` lacks one of the `contract_lookups`."""
    txs = tuple(transactions(full, info.has_code))
    events, skipped = parse_logs(full.receipts, info.kinds)
    moves = transfers(events)
    calls = tuple(internals(full.traces, txs))
    made = tuple(deployments(full.traces, txs))
    native = balances(full, txs, info.native_asset_id)
    recoded = tuple(code_changes(full, made))
    return BlockRows(
        block=totals(full.block, txs),
        txs=txs,
        erc20_transfers=moves.erc20,
        erc721_transfers=moves.erc721,
        erc1155_transfers=moves.erc1155,
        internals=calls,
        deployments=made,
        participants=tuple(participants(txs, moves, calls)),
        native_before=native.before,
        native_after=native.after,
        native_deltas=native.deltas,
        unknown_native=native.unknown,
        erc20_deltas=tuple(erc20_deltas(moves.erc20, events)),
        erc1155_deltas=tuple(erc1155_deltas(moves.erc1155)),
        nft_owners=tuple(nft_owners(moves.erc721)),
        silent_contracts=tuple(silent_contracts(full.diffs, events)),
        recoded_contracts=tuple(recoded_contracts(full.diffs, events, recoded)),
        code_changes=recoded,
        metadata_changes=tuple(metadata_changes(events)),
        messages=tuple(messages(events, info.messenger)),
        skipped_logs=skipped,
    )
