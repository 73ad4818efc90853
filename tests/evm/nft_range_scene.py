"""Blocks with ranges of NFTs (ERC-2309), from logs as a contract writes them, and what a plain model of them owns."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace
from tests.metrics.synthetic import address, assembled, native

from icefall.evm.deriving.nft_ranges import nft_ranges
from icefall.evm.deriving.packing import packed
from icefall.evm.deriving.tokens import nft_owners, parse_logs, transfers
from icefall.evm.model import ZERO_ADDRESS, BlockRows
from icefall.evm.packed import ResolvedBlock
from icefall.wire.evm.events import CONSECUTIVE_TRANSFER, TRANSFER
from icefall.wire.evm.types import EventLog, Receipt

TOKEN, MINTER, ANN, BEN = (address(number) for number in range(900, 904))


class Move(NamedTuple):
    """A range of IDs, or one of them where `last` is None."""

    sender: bytes
    to: bytes
    first: int
    last: int | None = None
    token: bytes = TOKEN

    @property
    def ids(self) -> range:
        return range(self.first, (self.first if self.last is None else self.last) + 1)

    def log(self, index: int) -> EventLog:
        sender, to = (party.rjust(32, b"\0") for party in (self.sender, self.to))
        first = self.first.to_bytes(32, "big")
        if self.last is None:
            return EventLog(self.token, (TRANSFER, sender, to, first), b"", index)
        return EventLog(self.token, (CONSECUTIVE_TRANSFER, first, sender, to), self.last.to_bytes(32, "big"), index)


def minted(first: int, last: int, to: bytes = MINTER, token: bytes = TOKEN) -> Move:
    return Move(ZERO_ADDRESS, to, first, last, token)


def rows_of(number: int, moves: Sequence[Move], branch: int = 0, parent: int = 0) -> BlockRows:
    """The rows of a block with one transaction, which logs the moves."""
    txs = (native(number, 0, MINTER, TOKEN, 1, branch),)
    head = assembled(number, 1_700_000_000 + number, txs, branch=branch, parent_branch=parent)
    logs = tuple(move.log(index) for index, move in enumerate(moves))
    receipt = Receipt(
        txs[0].tx_hash, head.block.block_hash, 0, 2, 1, b"", 21_000, 21_000, 1, MINTER, b"", bytes(256), logs
    )
    events, skipped = parse_logs([receipt], {})
    assert not skipped
    found = transfers(events).erc721_transfers
    return replace(
        head, erc721_transfers=found, nft_owners=tuple(nft_owners(found)), nft_ranges=tuple(nft_ranges(found))
    )


def block_of(number: int, moves: Sequence[Move], branch: int = 0, parent: int = 0) -> ResolvedBlock:
    return ResolvedBlock(packed(rows_of(number, moves, branch, parent)), (), ())
