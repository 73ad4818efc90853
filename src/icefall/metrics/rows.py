"""Figures as rows of the store, and back."""

from typing import Any

from icefall.db.engine import Row
from icefall.evm.amounts import pack_uint, unpack_uint
from icefall.metrics.rollup import BlockFacts, PeriodRow, Sums, Totals


def row_of(span: int, period: int, figures: PeriodRow) -> tuple[Any, ...]:
    sums, totals = figures.sums, figures.totals
    return (
        span,
        period,
        sums.first_block,
        sums.last_block,
        sums.first_time,
        sums.last_time,
        sums.tx_count,
        pack_uint(sums.gas_used),
        pack_uint(sums.fees),
        pack_uint(sums.price_sum),
        pack_uint(sums.price_max),
        sums.tps_max,
        sums.gps_max,
        *figures.active,
        *figures.senders,
        totals.txs,
        totals.addresses,
        totals.contracts,
        totals.deployers,
    )


def figures_of(row: Row) -> PeriodRow:
    return PeriodRow(sums_of_row(row), tuple(row[13:17]), tuple(row[17:21]), Totals(*row[21:25]))


def sums_of_row(row: Row) -> Sums:
    amounts = map(unpack_uint, row[7:11])
    return Sums(*row[2:7], *amounts, *row[11:13])


def facts_of_row(row: Row) -> BlockFacts:
    """Of `blocks_between`; no prices: a block without transactions."""
    number, time, tx_count, gas_used, fees, price_sum, price_max = row
    prices = (0, 0) if price_sum is None else (unpack_uint(price_sum), unpack_uint(price_max))
    return BlockFacts(number, time, tx_count, unpack_uint(gas_used), unpack_uint(fees), *prices)
