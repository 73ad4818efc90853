"""From a verified block to all its rows. Pure: same block and facts, same rows."""

from icefall.evm.deriving.balances import balances
from icefall.evm.deriving.code import code_changes
from icefall.evm.deriving.deployments import deployments
from icefall.evm.deriving.internals import internals
from icefall.evm.deriving.logs import told, unsure
from icefall.evm.deriving.participants import participants
from icefall.evm.deriving.teleporter import messages
from icefall.evm.deriving.totals import totals
from icefall.evm.deriving.transactions import transactions, undecided
from icefall.evm.deriving.transfers import (
    erc20_deltas,
    erc1155_deltas,
    metadata_changes,
    nft_owners,
    silent_contracts,
    transfers,
)
from icefall.evm.model import BlockRows, ContractFacts, ContractQuestions
from icefall.wire.evm.types import FullBlock


def questions(full: FullBlock) -> ContractQuestions:
    """What `derive` will want to know of contracts. Ask only what the store does not know yet."""
    return ContractQuestions(code=undecided(full), kinds=unsure(full.receipts))


def derive(full: FullBlock, facts: ContractFacts) -> BlockRows:
    """All rows of a block. KeyError where `facts` leaves one of the `questions` open."""
    txs = tuple(transactions(full, facts.has_code))
    events, skipped = told(full.receipts, facts.kinds)
    moves = transfers(events)
    calls = tuple(internals(full.traces, txs))
    made = tuple(deployments(full.traces, txs))
    native = balances(full, txs, facts.native_asset_id)
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
        ask_native=native.ask,
        erc20_deltas=tuple(erc20_deltas(moves.erc20, events)),
        erc1155_deltas=tuple(erc1155_deltas(moves.erc1155)),
        nft_owners=tuple(nft_owners(moves.erc721)),
        silent_contracts=tuple(silent_contracts(full.diffs, events, recoded)),
        code_changes=recoded,
        metadata_changes=tuple(metadata_changes(events)),
        messages=tuple(messages(events, facts.messenger)),
        skipped_logs=skipped,
    )
