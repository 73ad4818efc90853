"""The pure part: calendar periods, sums independent of how a chain is cut, distinct counts, edge cases of rates."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics import naive

from icefall.metrics.catalogue import METRIC_BY_CAMEL_NAME, METRICS, MetricInput
from icefall.metrics.rollup import (
    DAY,
    HOUR_S,
    MONTH,
    NEVER,
    SPAN_NAMES,
    SPANS,
    WEEK,
    BlockStats,
    CumulativeTotals,
    PeriodRollup,
    Sums,
    count_distinct,
    first_from,
    highest_rate,
    mean_price,
    merge_periods,
    merge_sums,
    period_of,
    rate,
    seconds_of,
    start_of,
    sums_of,
    with_times,
)

TIMES = st.integers(0, 250_000_000_000)  # to the year 9892
AMOUNTS = st.integers(0, 2**256 - 1)


@given(TIMES, st.sampled_from(SPANS))
def test_periods_are_those_of_the_calendar(time: int, span: int) -> None:
    begin = naive.begin_of(SPAN_NAMES[span], time)
    period = period_of(span, time)
    assert start_of(span, period) == begin.timestamp()
    assert start_of(span, period + 1) == naive.after(SPAN_NAMES[span], begin).timestamp()
    assert start_of(span, period) <= time < start_of(span, period + 1)


@given(TIMES, st.sampled_from(SPANS))
def test_the_first_period_from_a_time_on(time: int, span: int) -> None:
    first = first_from(span, time)
    assert start_of(span, first - 1) < time <= start_of(span, first)


def test_known_starts_of_periods() -> None:
    def begins(span: int, *day: int) -> bool:
        time = int(datetime(*day, tzinfo=UTC).timestamp())  # type: ignore[misc,arg-type]
        return start_of(span, period_of(span, time)) == time and period_of(span, time - 1) == period_of(span, time) - 1

    assert begins(WEEK, 2024, 2, 12)  # a Monday
    assert not begins(WEEK, 2024, 2, 11)
    assert begins(MONTH, 2024, 3, 1)
    assert begins(MONTH, 2100, 3, 1)
    assert begins(DAY, 2024, 2, 29)
    assert start_of(MONTH, 0) == 0
    assert start_of(MONTH, period_of(MONTH, 10**17)) <= 10**17  # far beyond the range of datetime


@st.composite
def chains(draw: st.DrawFn) -> list[BlockStats]:
    """Consecutive blocks; times mostly rise, sometimes stay, sometimes fall."""
    time, blocks = draw(st.integers(10**6, 10**10)), []
    for number in range(draw(st.integers(0, 2)), draw(st.integers(3, 14))):
        time = max(0, time + draw(st.sampled_from((0, 0, 1, 2, 12, 3600, 86_400, 10**7, -1, -5000))))
        count = draw(st.integers(0, 500))
        price = draw(AMOUNTS)
        blocks.append(BlockStats(number, time, count, draw(AMOUNTS), draw(AMOUNTS), price * count, price))
    return blocks


@given(chains(), st.integers(0, 14))
def test_sums_are_independent_of_where_a_chain_is_cut(blocks: list[BlockStats], cut: int) -> None:
    whole = with_times(blocks, None)
    early = with_times(blocks[:cut], None)
    begun = seconds_of(early)[-1] if early else None
    late = with_times(blocks[cut:], begun and begun.at, begun and begun.gap)
    assert early + late == whole
    if early and late:
        assert merge_sums(sums_of(early), sums_of(late, begun)) == sums_of(whole)


@given(chains())
def test_block_times_never_decrease_and_blocks_of_one_second_share_a_gap(blocks: list[BlockStats]) -> None:
    timed = with_times(blocks, None)
    assert all(one.stats.number > 0 for one in timed)
    assert timed[0].gap is None
    for one, other in pairwise(timed):
        assert one.at <= other.at
        assert other.gap == (other.at - one.at or one.gap)
    sums = sums_of(timed)
    counts: dict[int, int] = {}
    for one in timed:
        counts[one.at] = counts.get(one.at, 0) + one.stats.tx_count
    expected = [counts[late] / (late - early) for early, late in pairwise(counts)]
    assert sums.tps_max == max(expected, default=0)
    average = rate(sums.tx_count, sums, None)
    assert highest_rate(sums.tps_max, sums.tx_count, sums, None) >= average
    assert average * (timed[-1].at - timed[0].at) == pytest.approx(sums.tx_count if len(counts) > 1 else 0)
    assert sums.gas_used == sum(one.gas_used for one in blocks if one.number)
    assert sums.price_max == max(one.price_max for one in blocks if one.number)


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 9)), min_size=1))
def test_distinct_counts_add_up_to_sets(seen: list[tuple[int, int]]) -> None:
    """Addresses in hours, in order: the counts of the hours of a period sum to the size of its set."""
    hours: dict[int, set[int]] = {}
    for hour, who in seen:
        hours.setdefault(hour, set()).add(who)
    last: dict[int, int] = {}
    sums: dict[tuple[int, int], int] = {}
    sets: dict[tuple[int, int], set[int]] = {}
    for hour in sorted(hours):
        counts = count_distinct(hour, [last.get(who, NEVER) for who in hours[hour]])
        last |= dict.fromkeys(hours[hour], hour)
        for span in SPANS:
            key = (span, period_of(span, hour * HOUR_S))
            sums[key] = sums.get(key, 0) + counts[span]
            sets.setdefault(key, set()).update(hours[hour])
    assert sums == {key: len(found) for key, found in sets.items()}


def test_merging_adds_and_keeps_the_later_totals() -> None:
    one = PeriodRollup(
        Sums(1, 2, 10, 20, 3, 4, 5, 6, 7, 8.0, 9.0), (1, 2, 3, 4), (5, 6, 7, 8), CumulativeTotals(1, 2, 3, 4)
    )
    two = PeriodRollup(
        Sums(3, 4, 30, 40, 1, 1, 1, 1, 9, 1.0, 99.0), (1, 1, 1, 1), (2, 2, 2, 2), CumulativeTotals(5, 6, 7, 8)
    )
    both = merge_periods(one, two)
    assert both == PeriodRollup(
        Sums(1, 4, 10, 40, 4, 5, 6, 7, 9, 8.0, 99.0), (2, 3, 4, 5), (7, 8, 9, 10), CumulativeTotals(5, 6, 7, 8)
    )


@pytest.mark.parametrize(
    ("first", "last", "before", "expected"),
    [
        (100, 150, 50, 0.1),  # from the last block before
        (100, 150, None, 0.2),  # the first day: from its first block
        (100, 100, None, 0.0),  # one block and no reference: no time
        (100, 100, 100, 0.0),  # equal times
    ],
)
def test_edges_of_a_rate(first: int, last: int, before: int | None, expected: float) -> None:
    assert rate(10, Sums(1, 2, first, last, tx_count=10), before) == expected


def test_a_period_without_blocks_is_zero_but_for_totals() -> None:
    totals = CumulativeTotals(7, 6, 5, 4)
    for metric in METRICS:
        value = metric.value(MetricInput(Sums(), 1_700_000_000, cumulative=totals))
        assert value == (metric.name.startswith("cumulative") and value)
    assert [
        metric.value(MetricInput(Sums(), 1, cumulative=totals)) for metric in METRICS if "cumul" in metric.name
    ] == [
        7,
        6,
        5,
        4,
    ]


def test_averages_keep_every_digit_of_large_amounts() -> None:
    price = 2**255 + 1
    assert mean_price(Sums(tx_count=3, price_sum=3 * price)) == float(price)
    assert mean_price(Sums()) == 0


def test_the_table_holds_the_metrics_of_the_official_client() -> None:
    every = (
        "activeAddresses activeSenders cumulativeTxCount cumulativeAddresses cumulativeContracts cumulativeDeployers"
    )
    rolling = "gasUsed txCount avgGps maxGps avgTps maxTps avgGasPrice maxGasPrice feesPaid"
    assert set(METRIC_BY_CAMEL_NAME) == set(f"{every} {rolling}".split())
    assert {metric.camel_name for metric in METRICS if metric.has_rolling} == set(rolling.split())
    for metric in METRICS:
        daily = metric.name.startswith(("cumulative", "avg", "max")) or metric.name == "fees_paid"
        assert metric.spans == ((DAY,) if daily else tuple(SPANS))
    assert len(METRICS) == 15
