"""What a worker may ask of a chain's rollups: a page of a series, rolling windows, when they were last brought up."""

from functools import reduce
from typing import NamedTuple

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.metrics.catalogue import WINDOWS_S, Metric, MetricInput, Number
from icefall.metrics.periods import DAY, HOUR, HOUR_S, MONTH, first_from, period_of, start_of
from icefall.metrics.rollup import Sums, TimedBlock, Totals, joined, sums_of, timed
from icefall.metrics.rows import facts_of_row, figures_of, sums_of_row

SQL = load("icefall.metrics", "queries.sql")


class SeriesPoint(NamedTuple):
    timestamp: int
    value: Number


class SeriesPage(NamedTuple):
    """Newest first. `next_before`: where the next page goes on; None: there is none."""

    points: list[SeriesPoint]
    next_before: int | None


class MetricsReader:
    """A series has a point for every period from the first block's to the last's, also for those without blocks."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def last_run(self) -> int:
        """When the rollups were last written, in Unix seconds; 0: never."""
        rows = await self._reader.rows(SQL.ran)
        return int(rows[0][0]) if rows else 0

    async def series(
        self, metric: Metric, span: int, start: int | None, end: int | None, before: int | None, limit: int
    ) -> SeriesPage:
        """Points with start <= timestamp < end, of periods whose number is below `before`."""
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
        rows = await self._reader.rows(SQL.rollups_of_page, {"span": span, "first": first, "last": last})
        stored = {row[1]: figures_of(row) for row in rows}
        time_before: int | None = None
        totals = Totals()
        if rows and rows[0][1] < first:
            earlier = stored[rows[0][1]]
            time_before, totals = earlier.sums.last_time, earlier.totals
        points = []
        for period in range(first, last + 1):
            found = stored.get(period)
            if found is None:
                stretch = MetricInput(Sums(), time_before, totals=totals)
            else:
                totals = found.totals
                stretch = MetricInput(found.sums, time_before, found.active[span], found.senders[span], totals)
                time_before = found.sums.last_time
            points.append(SeriesPoint(start_of(span, period), metric.value(stretch)))
        return points

    async def rolling(self, metric: Metric, now: int) -> dict[str, Number]:
        """The last hour, day, 30 days and 365 days up to and with this second, and all there is."""
        values = {}
        for name, seconds in WINDOWS_S.items():
            values[name] = metric.value(await self._window(now - seconds + 1, now + 1))
        rows = await self._reader.rows(SQL.every_rollup, {"span": MONTH})
        values["all_time"] = metric.value(MetricInput(_whole([sums_of_row(row) for row in rows])))
        return values

    async def _window(self, begin: int, end: int) -> MetricInput:
        """Whole days where they lie inside, whole hours around them, single blocks of an hour that is cut."""
        rows = await self._reader.rows(SQL.rollup_before, {"span": HOUR, "period": begin // HOUR_S})
        latest = sums_of_row(rows[0]).last_time if rows else None
        time_before, parts = latest, []
        for span, first, last in _pieces(begin, end):
            for row in await self._reader.rows(SQL.rollups_between, {"span": span, "first": first, "last": last}):
                sums = sums_of_row(row)
                if span == HOUR and (sums.first_time < begin or sums.last_time >= end):
                    blocks = await self._blocks(sums, latest)
                    time_before = max((one.at for one in blocks if one.at < begin), default=time_before)
                    inside = [one for one in blocks if begin <= one.at < end]
                    parts += [sums_of(inside)] if inside else []
                else:
                    parts.append(sums)
                latest = sums.last_time
        return MetricInput(_whole(parts), time_before)

    async def _blocks(self, hour: Sums, latest: int | None) -> list[TimedBlock]:
        rows = await self._reader.rows(SQL.blocks_between, {"first": hour.first_block, "last": hour.last_block})
        return timed(map(facts_of_row, rows), latest)


def _whole(parts: list[Sums]) -> Sums:
    return reduce(joined, parts) if parts else Sums()


def _pieces(begin: int, end: int) -> list[tuple[int, int, int]]:
    """Periods that cover [begin, end): hours to the first midnight, days, hours from the last midnight on."""
    first_hour, last_hour = period_of(HOUR, begin), period_of(HOUR, end - 1)
    first_day, last_day = first_from(DAY, begin), period_of(DAY, end) - 1
    if first_day > last_day:
        return [(HOUR, first_hour, last_hour)]
    return [
        (HOUR, first_hour, first_day * 24 - 1),
        (DAY, first_day, last_day),
        (HOUR, (last_day + 1) * 24, last_hour),
    ]
