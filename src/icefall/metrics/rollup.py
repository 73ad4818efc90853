"""The arithmetic of metrics: from blocks to the figures of a period, from two periods to a longer one. Nothing else.

Block 0 is left out: its time may be 0 or years old, so it is neither a point nor a reference. A block that claims to be
older than the one before counts at that one's time.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from icefall.metrics.periods import HOUR_S, SPANS, period_of, start_of

NEVER = -1  # an hour


class BlockFacts(NamedTuple):
    number: int
    time: int
    tx_count: int
    gas_used: int
    fees: int  # wei
    price_sum: int  # wei per gas, over the transactions
    price_max: int


class TimedBlock(NamedTuple):
    """A block, when it counts, and the seconds since the one before: None if there is none, at least 1 otherwise."""

    at: int
    gap: int | None
    facts: BlockFacts


class Sums(msgspec.Struct, frozen=True, gc=False):
    """What a row of consecutive blocks comes to."""

    first_block: int = 0
    last_block: int = 0
    first_time: int = 0
    last_time: int = 0
    tx_count: int = 0
    gas_used: int = 0
    fees: int = 0
    price_sum: int = 0
    price_max: int = 0
    tps_max: float = 0.0  # transactions of a block per second since the block before it
    gps_max: float = 0.0


class Totals(msgspec.Struct, frozen=True, gc=False):
    """Since the chain's beginning."""

    txs: int = 0
    addresses: int = 0
    contracts: int = 0
    deployers: int = 0


Distinct = tuple[int, ...]  # by span: how many were not seen before in the same hour, day, week, month
NOBODY: Distinct = (0, 0, 0, 0)


class PeriodRow(msgspec.Struct, frozen=True, gc=False):
    """Everything of a period, as a row of the store holds it."""

    sums: Sums
    active: Distinct
    senders: Distinct
    totals: Totals  # at the end of the period


def timed(blocks: Iterable[BlockFacts], latest: int | None) -> list[TimedBlock]:
    """`latest`: when the block before them counts; None: they are the first."""
    found = []
    for block in blocks:
        if block.number == 0:
            continue
        at = block.time if latest is None or block.time > latest else latest
        found.append(TimedBlock(at, None if latest is None else max(at - latest, 1), block))
        latest = at
    return found


def sums_of(blocks: Sequence[TimedBlock]) -> Sums:
    """Of at least one block."""
    facts = [block.facts for block in blocks]
    return Sums(
        first_block=facts[0].number,
        last_block=facts[-1].number,
        first_time=blocks[0].at,
        last_time=blocks[-1].at,
        tx_count=sum(block.tx_count for block in facts),
        gas_used=sum(block.gas_used for block in facts),
        fees=sum(block.fees for block in facts),
        price_sum=sum(block.price_sum for block in facts),
        price_max=max(block.price_max for block in facts),
        tps_max=max((block.facts.tx_count / block.gap for block in blocks if block.gap), default=0.0),
        gps_max=max((block.facts.gas_used / block.gap for block in blocks if block.gap), default=0.0),
    )


def joined(early: Sums, late: Sums) -> Sums:
    """`late` follows `early`."""
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


def merged(early: PeriodRow, late: PeriodRow) -> PeriodRow:
    """Two parts of one period become the whole; `late` follows `early`."""
    return PeriodRow(
        joined(early.sums, late.sums),
        tuple(a + b for a, b in zip(early.active, late.active, strict=True)),
        tuple(a + b for a, b in zip(early.senders, late.senders, strict=True)),
        late.totals,
    )


def distinct(hour: int, seen_before: Collection[int]) -> Distinct:
    """Of addresses seen in an hour, each with the hour in which it was last seen before (NEVER): how many are new in
    the hour, the day, the week, the month."""
    if not seen_before:
        return NOBODY
    time = hour * HOUR_S
    ordered = sorted(seen_before)
    starts = [start_of(span, period_of(span, time)) // HOUR_S for span in SPANS]
    return tuple(bisect_left(ordered, max(start, 0)) for start in starts)


def rate(amount: int, sums: Sums, time_before: int | None) -> float:
    """Per second, from the last block before the period (the first of it, where there is none) to its last. No time, no
    rate: 0."""
    seconds = sums.last_time - (sums.first_time if time_before is None else time_before)
    return amount / seconds if seconds > 0 else 0.0


def mean_price(sums: Sums) -> float:
    """Over transactions, each counting once."""
    return sums.price_sum / sums.tx_count if sums.tx_count else 0.0
