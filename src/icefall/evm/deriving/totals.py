"""The row of the block itself, with totals over its transactions."""

from collections.abc import Sequence

from icefall.evm.model import BlockRow, NativeTx
from icefall.wire.evm.types import DecodedBlock


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
