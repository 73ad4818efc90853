"""METRICS: every series we can compute. Both interfaces, their documents and their tests read these rows."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from icefall.metrics.periods import DAY, SPANS
from icefall.metrics.rollup import Sums, Totals, mean_price, rate

Number = int | float
EVERY_SPAN = tuple(SPANS)
DAILY = (DAY,)
WINDOWS_S = {"last_hour": 3600, "last_day": 86400, "last_month": 30 * 86400, "last_year": 365 * 86400}


class MetricInput(NamedTuple):
    """What a value is made of: the blocks of a point or of a window, and what came before. All zero: no blocks."""

    sums: Sums
    time_before: int | None = None  # of the last block before
    active: int = 0
    senders: int = 0
    totals: Totals = Totals()


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is the name of version 1; `rolls`: also offered over rolling windows."""

    name: str
    unit: str
    says: str
    value: Callable[[MetricInput], Number]
    spans: tuple[int, ...] = DAILY
    rolls: bool = False

    @property
    def camel_name(self) -> str:
        """The name of version 2."""
        first, *rest = self.name.split("_")
        return first + "".join(word.capitalize() for word in rest)


# fmt: off
METRICS: tuple[Metric, ...] = (
    Metric(name="avg_tps", unit="transactions/s", rolls=True,
           value=lambda s: rate(s.sums.tx_count, s.sums, s.time_before),
           says="Transactions per second, from the last block before the period to its last block."),
    Metric(name="max_tps", unit="transactions/s", rolls=True, value=lambda s: s.sums.tps_max,
           says="The most transactions of a block per second since the block before it."),
    Metric(name="avg_gps", unit="gas/s", rolls=True, value=lambda s: rate(s.sums.gas_used, s.sums, s.time_before),
           says="Gas used per second, from the last block before the period to its last block."),
    Metric(name="max_gps", unit="gas/s", rolls=True, value=lambda s: s.sums.gps_max,
           says="The most gas used by a block per second since the block before it."),
    Metric(name="tx_count", unit="transactions", rolls=True, spans=EVERY_SPAN, value=lambda s: s.sums.tx_count,
           says="Transactions."),
    Metric(name="gas_used", unit="gas", rolls=True, spans=EVERY_SPAN, value=lambda s: s.sums.gas_used,
           says="Gas used."),
    Metric(name="avg_gas_price", unit="wei", rolls=True, value=lambda s: mean_price(s.sums),
           says="Mean over transactions of the price paid for gas."),
    Metric(name="max_gas_price", unit="wei", rolls=True, value=lambda s: s.sums.price_max,
           says="Highest price a transaction paid for gas."),
    Metric(name="fees_paid", unit="wei", rolls=True, value=lambda s: s.sums.fees,
           says="Gas used times price paid, over all transactions."),
    Metric(name="active_addresses", unit="addresses", spans=EVERY_SPAN, value=lambda s: s.active,
           says="Distinct senders and recipients of transactions and of token transfers."),
    Metric(name="active_senders", unit="addresses", spans=EVERY_SPAN, value=lambda s: s.senders,
           says="Distinct senders of transactions and of token transfers."),
    Metric(name="cumulative_tx_count", unit="transactions", value=lambda s: s.totals.txs,
           says="Transactions since the chain's beginning, to the end of the day."),
    Metric(name="cumulative_addresses", unit="addresses", value=lambda s: s.totals.addresses,
           says="Addresses ever active, to the end of the day."),
    Metric(name="cumulative_contracts", unit="contracts", value=lambda s: s.totals.contracts,
           says="Contracts ever created, to the end of the day."),
    Metric(name="cumulative_deployers", unit="addresses", value=lambda s: s.totals.deployers,
           says="Addresses that ever created a contract, to the end of the day."),
)
# fmt: on

BY_NAME = {metric.name: metric for metric in METRICS}
BY_CAMEL_NAME = {metric.camel_name: metric for metric in METRICS}
