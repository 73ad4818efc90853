"""The numbering of hours, days, weeks and months of UTC as consecutive numbers, for any time >= 0."""

from typing import Literal, get_args

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
