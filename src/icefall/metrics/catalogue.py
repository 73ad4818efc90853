"""The table of metrics: one row for each, with the function that computes its value from stored rollups.

Both versions of the metrics API, their documentation and their tests read these rows.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from icefall.metrics.rollup import DAY, SPANS, CumulativeTotals, Sums, highest_rate, mean_price, rate

Number = int | float
EVERY_SPAN = tuple(SPANS)
DAILY = (DAY,)
WINDOWS_S = {"last_hour": 3600, "last_day": 86400, "last_month": 30 * 86400, "last_year": 365 * 86400}


class MetricInput(NamedTuple):
    """The input of one value: the rollup of a period or a window. All zero for a period without blocks."""

    sums: Sums
    previous_time: int | None = None  # of the last block before the period
    active_addresses: int = 0
    active_senders: int = 0
    cumulative: CumulativeTotals = CumulativeTotals()


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric. `name`: as in version 1 of the API. `value`: computes it. `has_rolling`: also offered over rolling
    windows."""

    name: str
    unit: str
    summary: str
    value: Callable[[MetricInput], Number]
    spans: tuple[int, ...] = DAILY
    has_rolling: bool = False

    @property
    def camel_name(self) -> str:
        """The name in version 2 of the API."""
        first, *rest = self.name.split("_")
        return first + "".join(word.capitalize() for word in rest)


# fmt: off
METRICS: tuple[Metric, ...] = (
    Metric(name="avg_tps", unit="transactions/s", has_rolling=True,
           value=lambda given: rate(given.sums.tx_count, given.sums, given.previous_time),
           summary="Transactions per second, from the last block before the period to its last block."),
    Metric(name="max_tps", unit="transactions/s", has_rolling=True,
           value=lambda given: highest_rate(given.sums.tps_max, given.sums.tx_count, given.sums, given.previous_time),
           summary="The most transactions of the blocks of one second, per second since the blocks before them."),
    Metric(name="avg_gps", unit="gas/s", has_rolling=True,
           value=lambda given: rate(given.sums.gas_used, given.sums, given.previous_time),
           summary="Gas used per second, from the last block before the period to its last block."),
    Metric(name="max_gps", unit="gas/s", has_rolling=True,
           value=lambda given: highest_rate(given.sums.gps_max, given.sums.gas_used, given.sums, given.previous_time),
           summary="The most gas used by the blocks of one second, per second since the blocks before them."),
    Metric(name="tx_count", unit="transactions", has_rolling=True, spans=EVERY_SPAN,
           value=lambda given: given.sums.tx_count,
           summary="Transactions."),
    Metric(name="gas_used", unit="gas", has_rolling=True, spans=EVERY_SPAN, value=lambda given: given.sums.gas_used,
           summary="Gas used."),
    Metric(name="avg_gas_price", unit="wei", has_rolling=True, value=lambda given: mean_price(given.sums),
           summary="Mean over transactions of the price paid for gas."),
    Metric(name="max_gas_price", unit="wei", has_rolling=True, value=lambda given: given.sums.price_max,
           summary="Highest price a transaction paid for gas."),
    Metric(name="fees_paid", unit="wei", has_rolling=True, value=lambda given: given.sums.fees,
           summary="Gas used times price paid, over all transactions."),
    Metric(name="active_addresses", unit="addresses", spans=EVERY_SPAN, value=lambda given: given.active_addresses,
           summary="Distinct senders and recipients of transactions and of token transfers."),
    Metric(name="active_senders", unit="addresses", spans=EVERY_SPAN, value=lambda given: given.active_senders,
           summary="Distinct senders of transactions and of token transfers."),
    Metric(name="cumulative_tx_count", unit="transactions", value=lambda given: given.cumulative.txs,
           summary="Transactions since the chain's beginning, to the end of the day."),
    Metric(name="cumulative_addresses", unit="addresses", value=lambda given: given.cumulative.addresses,
           summary="Addresses ever active, to the end of the day."),
    Metric(name="cumulative_contracts", unit="contracts", value=lambda given: given.cumulative.contracts,
           summary="Contracts ever created, to the end of the day; of an index without call traces only those that"
                   " transactions created."),
    Metric(name="cumulative_deployers", unit="addresses", value=lambda given: given.cumulative.deployers,
           summary="Addresses that ever created a contract, to the end of the day; of an index without call traces only"
                   " senders of transactions."),
)
# fmt: on

METRIC_BY_CAMEL_NAME = {metric.camel_name: metric for metric in METRICS}
