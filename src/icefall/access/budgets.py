"""Budgets: how many compute units a caller may spend per minute and per day, by tier. Pure: time is a parameter.

Windows are fixed: the minutes and days of UTC. One process owns the counters (`budget_server.py`); workers lease slices
of a minute's budget from it and spend them without further calls (`budget_leases.py`).
"""

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

MINUTE_S, DAY_S = 60, 24 * 3600
CALLERS_MAX = 100_000  # counters kept at a time, some 30 MB
_SLICES = 100  # a slice is 1 % of the minute's budget, and not more than that of the day's


class Tier(NamedTuple):
    name: str
    per_minute: int
    per_day: int

    @property
    def slice(self) -> int:
        return max(1, min(self.per_minute, self.per_day) // _SLICES)

    @property
    def policy(self) -> str:
        """The value of a `ratelimit-policy` header."""
        return f"{self.per_minute};w={MINUTE_S}, {self.per_day};w={DAY_S}"

    def share(self, workers: int) -> "Tier":
        """Return the units that one of several workers may grant without the owner."""
        return Tier(self.name, max(1, self.per_minute // workers), max(1, self.per_day // workers))


UNAUTHENTICATED, METRICS, LOWEST_TIER = "unauthenticated", "metrics", "free"
TIERS = (
    Tier(UNAUTHENTICATED, 6_000, 1_200_000),
    Tier("free", 8_000, 2_000_000),
    Tier("base", 10_000, 3_750_000),
    Tier("growth", 14_000, 11_200_000),
    Tier("pro", 20_000, 25_000_000),
    Tier(METRICS, 8_000, 1_200_000),
)


def tiers_with(changed: Iterable[Tier]) -> dict[str, Tier]:
    """All tiers by name: the built-in ones, replaced and extended by those of the configuration."""
    return {tier.name: tier for tier in (*TIERS, *changed)}


def key_tiers(tiers: Iterable[str]) -> list[str]:
    """The tiers a key can have."""
    return [name for name in tiers if name not in (UNAUTHENTICATED, METRICS)]


def limits_are_on(mode: str, host: str) -> bool:
    """Tell whether budgets are enforced. `auto`: unless the listener is on loopback, whose callers are not limited."""
    if mode != "auto":
        return mode == "on"
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() != "localhost"


class Grant(NamedTuple):
    """Units leased, and what is then left for the caller in this minute and day."""

    units: int
    minute_left: int
    day_left: int


class Spent(NamedTuple):
    """The units of one caller, as they are stored."""

    caller: str
    minute: int
    minute_units: int
    day: int
    day_units: int


class _Spent:
    __slots__ = ("day", "day_units", "minute", "minute_units")

    def __init__(self, minute: int, day: int) -> None:
        self.minute, self.day = minute, day
        self.minute_units = self.day_units = 0


class Budgets:
    """The units that each caller has spent. With more callers than `callers_max`, the least recent are dropped."""

    def __init__(self, callers_max: int = CALLERS_MAX) -> None:
        self._spent: dict[str, _Spent] = {}
        self._changed: set[str] = set()
        self._callers_max = callers_max

    def load(self, stored: Iterable[Spent]) -> None:
        """Take over what was spent before a restart."""
        for one in stored:
            spent = self._spent[one.caller] = _Spent(one.minute, one.day)
            spent.minute_units, spent.day_units = one.minute_units, one.day_units

    def changes(self) -> list[Spent]:
        """Return the state of the callers whose budgets have changed since the last call."""
        changed, self._changed = self._changed, set()
        found = ((caller, self._spent[caller]) for caller in changed if caller in self._spent)
        return [Spent(caller, it.minute, it.minute_units, it.day, it.day_units) for caller, it in found]

    def lease(self, caller: str, tier: Tier, need: int, now: int) -> Grant:
        """Grant a slice of the budget, or `need` where that is more; nothing where less than `need` is left."""
        spent = self._of(caller, now)
        minute_left, day_left = tier.per_minute - spent.minute_units, tier.per_day - spent.day_units
        left = min(minute_left, day_left)
        units = min(max(need, tier.slice), left) if left >= need else 0
        spent.minute_units += units
        spent.day_units += units
        self._changed.add(caller)
        return Grant(units, max(0, minute_left - units), max(0, day_left - units))

    def keep_changes(self, spent: Iterable[Spent]) -> None:
        """Put changes that could not be stored among the next ones."""
        self._changed.update(one.caller for one in spent)

    def give_back(self, caller: str, units: int, minute: int) -> None:
        """Return units to the day's budget that were leased in an ended minute and not spent."""
        spent = self._spent.get(caller)
        if spent is not None and spent.day == minute * MINUTE_S // DAY_S:
            spent.day_units = max(0, spent.day_units - units)
            self._changed.add(caller)

    def _of(self, caller: str, now: int) -> _Spent:
        minute = now // MINUTE_S
        spent = self._spent.get(caller)
        if spent is not None and spent.minute == minute + 1:  # the clock of another machine is ahead
            minute = spent.minute
        day = minute * MINUTE_S // DAY_S
        if spent is None:
            if len(self._spent) >= self._callers_max:
                self._drop_callers(day)
            spent = self._spent[caller] = _Spent(minute, day)
        if spent.day != day:  # also when the clock was set back
            spent.day, spent.day_units = day, 0
        if spent.minute != minute:
            spent.minute, spent.minute_units = minute, 0
            self._spent[caller] = self._spent.pop(caller)  # least recent callers first
        return spent

    def _drop_callers(self, day: int) -> None:
        self._spent = {caller: spent for caller, spent in self._spent.items() if spent.day == day}
        for caller in list(self._spent)[: max(0, len(self._spent) - self._callers_max * 9 // 10)]:
            del self._spent[caller]
