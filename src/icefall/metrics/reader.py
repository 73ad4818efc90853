"""Reads a chain's rollups for the metrics API: a page of a series, rolling windows, the time of the last rollup."""

from functools import reduce
from typing import NamedTuple

from icefall.db.engine import Reader
from icefall.evm.standards import load_statements
from icefall.metrics.catalogue import WINDOWS_S, Metric, MetricInput, Number
from icefall.metrics.rollup import (
    DAY,
    HOUR,
    HOUR_S,
    MONTH,
    CumulativeTotals,
    Sums,
    TimedBlock,
    first_from,
    merge_sums,
    period_of,
    start_of,
    sums_of,
    with_times,
)
from icefall.metrics.rows import RollupRow, unpack_block_stats, unpack_rollup, unpack_sums

SQL = load_statements("icefall.metrics", "queries.sql")


class SeriesPoint(NamedTuple):
    """A value, at the Unix time at which its period begins."""

    timestamp: int
    value: Number


class SeriesPage(NamedTuple):
    """The points of a page, newest first. `next_before`: the `before` of the next page; None: this is the last page."""

    points: list[SeriesPoint]
    next_before: int | None


class MetricsReader:
    """A series has a point for every period from that of the first block to that of the last, including empty ones."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def last_run(self) -> int:
        """The time when the rollups were last written, in Unix seconds; 0: never."""
        rows = await self._reader.rows(SQL.last_rollup_time)
        return int(rows[0][0]) if rows else 0

    async def series(
        self, metric: Metric, span: int, start: int | None, end: int | None, before: int | None, limit: int
    ) -> SeriesPage:
        """The points with start <= timestamp < end, of periods whose number is below `before`."""
        ((oldest, newest),) = await self._reader.rows(SQL.extent, {"span": span})
        if newest is None:
            return SeriesPage([], None)
        if end is not None:
            newest = min(newest, first_from(span, end) - 1)
        if before is not None:
            newest = min(newest, before - 1)
        if start is not None:
            oldest = max(oldest, first_from(span, start))
        first = max(oldest, newest - limit + 1)
        if first > newest:
            return SeriesPage([], None)
        points = await self._points(metric, span, first, newest)
        return SeriesPage(points[::-1], first if first > oldest else None)

    async def _points(self, metric: Metric, span: int, first: int, last: int) -> list[SeriesPoint]:
        rows = await self._rollups(SQL.rollups_of_page, span=span, first=first, last=last)
        stored = {row.period: unpack_rollup(row) for row in rows}
        previous_time: int | None = None
        cumulative = CumulativeTotals()
        if rows and rows[0].period < first:
            earlier = stored[rows[0].period]
            previous_time, cumulative = earlier.sums.last_time, earlier.cumulative
        points = []
        for period in range(first, last + 1):
            found = stored.get(period)
            if found is None:
                given = MetricInput(Sums(), previous_time, cumulative=cumulative)
            else:
                cumulative = found.cumulative
                given = MetricInput(found.sums, previous_time, found.active[span], found.senders[span], cumulative)
                previous_time = found.sums.last_time
            points.append(SeriesPoint(start_of(span, period), metric.value(given)))
        return points

    async def rolling(self, metric: Metric, now: int) -> dict[str, Number]:
        """The value over the last hour, day, 30 days and 365 days up to `now` inclusive, and over the whole chain."""
        values = {}
        for name, seconds in WINDOWS_S.items():
            values[name] = metric.value(await self._window(now - seconds + 1, now + 1))
        values["all_time"] = metric.value(MetricInput(await self.whole() or Sums()))
        return values

    async def whole(self) -> Sums | None:
        """The sums over all blocks of the chain; None while there are none."""
        rows = await self._rollups(SQL.every_rollup, span=MONTH)
        return _total([unpack_sums(row) for row in rows]) if rows else None

    async def _window(self, begin: int, end: int) -> MetricInput:
        """Add up whole days inside the window, whole hours around them, and single blocks of an hour that it cuts."""
        rows = await self._rollups(SQL.rollup_before, span=HOUR, period=begin // HOUR_S)
        latest = rows[0].last_time if rows else None
        previous_time, parts = latest, []
        for span, first, last in _pieces(begin, end):
            for row in await self._rollups(SQL.rollups_between, span=span, first=first, last=last):
                sums = unpack_sums(row)
                if span == HOUR and (sums.first_time < begin or sums.last_time >= end):
                    blocks = await self._blocks(sums, latest)
                    previous_time = max((block.at for block in blocks if block.at < begin), default=previous_time)
                    inside = [block for block in blocks if begin <= block.at < end]
                    parts += [sums_of(inside)] if inside else []
                else:
                    parts.append(sums)
                latest = sums.last_time
        return MetricInput(_total(parts), previous_time)

    async def _rollups(self, statement: str, **params: int) -> list[RollupRow]:
        return [RollupRow(*row) for row in await self._reader.rows(statement, params)]

    async def _blocks(self, hour: Sums, latest: int | None) -> list[TimedBlock]:
        rows = await self._reader.rows(SQL.blocks_between, {"first": hour.first_block, "last": hour.last_block})
        return with_times(map(unpack_block_stats, rows), latest)


def _total(parts: list[Sums]) -> Sums:
    return reduce(merge_sums, parts) if parts else Sums()


def _pieces(begin: int, end: int) -> list[tuple[int, int, int]]:
    """The periods that cover [begin, end): hours to the first midnight, days, hours from the last midnight on."""
    first_hour, last_hour = period_of(HOUR, begin), period_of(HOUR, end - 1)
    first_day, last_day = first_from(DAY, begin), period_of(DAY, end) - 1
    if first_day > last_day:
        return [(HOUR, first_hour, last_hour)]
    return [
        (HOUR, first_hour, first_day * 24 - 1),
        (DAY, first_day, last_day),
        (HOUR, (last_day + 1) * 24, last_hour),
    ]
