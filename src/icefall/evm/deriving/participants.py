"""Addresses in whose lists a transaction appears."""

from collections.abc import Iterable, Iterator, Sequence

from icefall.evm.deriving.transfers import Transfers
from icefall.evm.model import InternalTx, NativeTx, Participant


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
