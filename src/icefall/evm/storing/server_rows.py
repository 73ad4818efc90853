"""The rows that a server stores in another form than an embedded store: what belongs together is one row there.

A row costs 28 bytes in PostgreSQL besides its values, and its key is stored a second time in an index. So the balances
after a block are values of the transfers that led to them, and a holding has the block that named its holder first. The
tables `erc20_balance` and `erc20_holder` are views there (schema.postgres.sql).
"""

from collections.abc import Iterable, Sequence

from icefall.db.engine import StoreError
from icefall.evm.deriving.packing import Row
from icefall.evm.encoding import BITS


def transfers_with_balances(transfers: Sequence[Row], balances: Iterable[Row]) -> list[Row]:
    """Add the balances of sender and recipient to ERC-20 transfers, which are in the order of the chain. The balance
    after a block is in the last transfer of the block that names the holder, and None in the others."""
    left = {(holder, token, block): balance for holder, token, block, balance in balances}
    take = left.pop
    rows = []
    for row in reversed(transfers):
        block, token, sender, recipient = row[0] >> BITS, row[2], row[3], row[4]
        rows.append((*row, take((sender, token, block), None), take((recipient, token, block), None)))
    if left:
        holder, token, block = next(iter(left))
        raise StoreError(f"block {block}: holder {holder} has another balance of token {token}, but no transfer")
    rows.reverse()
    return rows


def holdings_with_blocks(holdings: Iterable[Row], holders: Iterable[Row]) -> list[Row]:
    """Add the block that named the holder first, from the rows of `erc20_holder`, which are in the same order."""
    return [(*holding, since) for holding, (_, since, _) in zip(holdings, holders, strict=True)]
