"""The arithmetic of metrics: numbers of periods of UTC, from blocks to the sums of a period, from two periods to a
longer one. Pure.

Block 0 is left out: its time may be 0 or years old, so it is neither a point nor a reference. A block with an earlier
time than its parent counts at its parent's time.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, get_args

import msgspec

HOUR, DAY, WEEK, MONTH = SPANS = range(4)
SpanName = Literal["hour", "day", "week", "month"]
SPAN_NAMES: tuple[SpanName, ...] = get_args(SpanName)

HOUR_S, DAY_S = 3600, 86400
_THURSDAY = 3  # 1 January 1970 was three days after a Monday
_ERA_DAYS = 146_097  # of 400 years
_EPOCH_SHIFT = 719_468  # from 1 March of the year 0 to 1970


def period_of(span: int, time: int) -> int:
    """The number of the period that contains this Unix time."""
    if span == HOUR:
        return time // HOUR_S
    day = time // DAY_S
    if span == DAY:
        return day
    if span == WEEK:
        return (day + _THURSDAY) // 7
    return _month_of(day)


def start_of(span: int, period: int) -> int:
    """The first second of a period. Week 0 begins in 1969."""
    if span == HOUR:
        return period * HOUR_S
    if span == DAY:
        return period * DAY_S
    if span == WEEK:
        return (period * 7 - _THURSDAY) * DAY_S
    return _first_day_of(period) * DAY_S


def first_from(span: int, time: int) -> int:
    """The first period that begins at this Unix time or later."""
    period = period_of(span, time)
    return period if start_of(span, period) == time else period + 1


def _month_of(day: int) -> int:
    """The month of a day, counted from 1970. Years are counted from 1 March, so that the leap day is the last day of a
    year."""
    era, day_of_era = divmod(day + _EPOCH_SHIFT, _ERA_DAYS)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    from_march = (5 * day_of_year + 2) // 153
    return (era * 400 + year - 1970) * 12 + from_march + 2


def _first_day_of(month: int) -> int:
    year, from_march = divmod(month - 2, 12)
    era, year_of_era = divmod(year + 1970, 400)
    day_of_year = (153 * from_march + 2) // 5
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _ERA_DAYS + day_of_era - _EPOCH_SHIFT


NEVER = -1  # instead of an hour: not seen before


class BlockStats(NamedTuple):
    """The figures of one block."""

    number: int
    time: int
    tx_count: int
    gas_used: int
    fees: int  # wei
    price_sum: int  # wei per gas, over the transactions
    price_max: int


class TimedBlock(NamedTuple):
    """A block, the time at which it counts, and the seconds since blocks of an earlier second; None in the first one.
    Blocks that share a second have the same gap."""

    at: int
    gap: int | None
    stats: BlockStats


class SecondSums(NamedTuple):
    """The sums over the blocks that share one second."""

    at: int
    gap: int | None  # as in TimedBlock
    tx_count: int
    gas_used: int


class Sums(msgspec.Struct, frozen=True, gc=False):
    """The sums and maxima over consecutive blocks."""

    first_block: int = 0
    last_block: int = 0
    first_time: int = 0
    last_time: int = 0
    tx_count: int = 0
    gas_used: int = 0
    fees: int = 0
    price_sum: int = 0
    price_max: int = 0
    tps_max: float = 0.0  # transactions of all blocks of a second, per second since the one with blocks before it
    gps_max: float = 0.0


class CumulativeTotals(msgspec.Struct, frozen=True, gc=False):
    """The totals counted from the first block of the chain."""

    txs: int = 0
    addresses: int = 0
    contracts: int = 0
    deployers: int = 0


DistinctCounts = tuple[int, ...]  # by span: addresses not seen before in the same hour, day, week, month
NO_ADDRESSES: DistinctCounts = (0, 0, 0, 0)


class PeriodRollup(msgspec.Struct, frozen=True, gc=False):
    """The values of a period, as a row of table `rollup` stores them."""

    sums: Sums
    active: DistinctCounts
    senders: DistinctCounts
    cumulative: CumulativeTotals  # at the end of the period


def with_times(blocks: Iterable[BlockStats], latest: int | None, gap: int | None = None) -> list[TimedBlock]:
    """The blocks with the times at which they count. `latest`: that of the block before them; None: there is none.
    `gap`: that of the block before them."""
    found = []
    for block in blocks:
        if block.number == 0:
            continue
        if latest is None:
            latest = block.time
        elif block.time > latest:
            latest, gap = block.time, block.time - latest
        found.append(TimedBlock(latest, gap, block))
    return found


def seconds_of(blocks: Iterable[TimedBlock], begun: SecondSums | None = None) -> list[SecondSums]:
    """The sums of each second. `begun`: of blocks before these, which may share the first one."""
    found: list[SecondSums] = []
    for at, group in groupby(blocks, lambda block: block.at):
        of_second = list(group)
        txs = sum(block.stats.tx_count for block in of_second)
        gas = sum(block.stats.gas_used for block in of_second)
        if not found and begun is not None and begun.at == at:
            txs, gas = txs + begun.tx_count, gas + begun.gas_used
        found.append(SecondSums(at, of_second[0].gap, txs, gas))
    return found


def sums_of(blocks: Sequence[TimedBlock], begun: SecondSums | None = None) -> Sums:
    """The sums of at least one block. `begun`: as in `seconds_of`."""
    stats = [block.stats for block in blocks]
    seconds = seconds_of(blocks, begun)
    return Sums(
        first_block=stats[0].number,
        last_block=stats[-1].number,
        first_time=blocks[0].at,
        last_time=blocks[-1].at,
        tx_count=sum(block.tx_count for block in stats),
        gas_used=sum(block.gas_used for block in stats),
        fees=sum(block.fees for block in stats),
        price_sum=sum(block.price_sum for block in stats),
        price_max=max(block.price_max for block in stats),
        tps_max=max((second.tx_count / second.gap for second in seconds if second.gap), default=0.0),
        gps_max=max((second.gas_used / second.gap for second in seconds if second.gap), default=0.0),
    )


def merge_sums(early: Sums, late: Sums) -> Sums:
    """The sums of both; `late` follows `early`."""
    return Sums(
        first_block=early.first_block,
        last_block=late.last_block,
        first_time=early.first_time,
        last_time=late.last_time,
        tx_count=early.tx_count + late.tx_count,
        gas_used=early.gas_used + late.gas_used,
        fees=early.fees + late.fees,
        price_sum=early.price_sum + late.price_sum,
        price_max=max(early.price_max, late.price_max),
        tps_max=max(early.tps_max, late.tps_max),
        gps_max=max(early.gps_max, late.gps_max),
    )


def merge_periods(early: PeriodRollup, late: PeriodRollup) -> PeriodRollup:
    """Make one period from two parts of it; `late` follows `early`."""
    return PeriodRollup(
        merge_sums(early.sums, late.sums),
        tuple(a + b for a, b in zip(early.active, late.active, strict=True)),
        tuple(a + b for a, b in zip(early.senders, late.senders, strict=True)),
        late.cumulative,
    )


def count_distinct(hour: int, seen_before: Collection[int]) -> DistinctCounts:
    """Count which of an hour's addresses are new in the hour, the day, the week, the month.

    `seen_before`: per address, the hour in which it was last seen before, or NEVER.
    """
    if not seen_before:
        return NO_ADDRESSES
    time = hour * HOUR_S
    ordered = sorted(seen_before)
    starts = [start_of(span, period_of(span, time)) // HOUR_S for span in SPANS]
    return tuple(bisect_left(ordered, max(start, 0)) for start in starts)


def rate(amount: int, sums: Sums, previous_time: int | None) -> float:
    """The rate per second from the last block before the period (or its first block, without one) to its last block.

    0 where that is no time at all.
    """
    seconds = sums.last_time - (sums.first_time if previous_time is None else previous_time)
    return amount / seconds if seconds > 0 else 0.0


def highest_rate(highest: float, amount: int, sums: Sums, previous_time: int | None) -> float:
    """The rate of the highest second, which is not below that of all: the first second of a chain has no duration, and
    counts in that of all alone."""
    return max(highest, rate(amount, sums, previous_time))


def mean_price(sums: Sums) -> float:
    """The mean over transactions, all with the same weight."""
    return sums.price_sum / sums.tx_count if sums.tx_count else 0.0
