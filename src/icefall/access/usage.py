"""Usage of the chain data interface: what is counted of each request, and the arithmetic on the counts. Pure.

Workers count in memory and hand their counts to the owner of the budgets once a second (`usage_recorder.py`), who adds
them to the store by day (`usage_store.py`).
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import msgspec

from icefall.access.budgets import DAY_S

# Upper ends of the classes of durations, in ms: each twice the one before. Longer ones are in a class of their own.
DURATIONS_MS: tuple[float, ...] = tuple(0.25 * (1 << power) for power in range(18))


class AnsweredRequest(msgspec.Struct, frozen=True):
    """One answered request. `route` is its path in the endpoint table, `caller` the name of its key, empty without."""

    at: float
    caller: str
    route: str
    path: str
    chain: str
    status: int
    units: int
    duration_ms: float
    peer: str
    host: str
    agent: str


class UsageKey(msgspec.Struct, frozen=True):
    day: int
    caller: str
    path: str
    chain: str
    status: int


class UsageCounts(msgspec.Struct):
    calls: int = 0
    units: int = 0
    durations: list[int] = msgspec.field(default_factory=lambda: [0] * (len(DURATIONS_MS) + 1))

    def add(self, other: "UsageCounts") -> None:
        self.calls += other.calls
        self.units += other.units
        self.durations = [one + more for one, more in zip(self.durations, other.durations, strict=True)]


class UsageRow(msgspec.Struct, frozen=True):
    key: UsageKey
    counts: UsageCounts


def count(counts: dict[UsageKey, UsageCounts], request: AnsweredRequest) -> None:
    """Count a request. The chain counts only where the request succeeded: otherwise callers could invent any number of
    names."""
    chain = request.chain if request.status < 400 else ""
    key = UsageKey(int(request.at) // DAY_S, request.caller, request.route, chain, request.status)
    of_key = counts.get(key)
    if of_key is None:
        of_key = counts[key] = UsageCounts()
    of_key.calls += 1
    of_key.units += request.units
    of_key.durations[bisect_left(DURATIONS_MS, request.duration_ms)] += 1


def median_ms(durations: Sequence[int]) -> float:
    """Return the median of counts by class: the middle of the class in which it is."""
    half, seen = sum(durations) / 2, 0
    for index, number in enumerate(durations):
        seen += number
        if number and seen >= half:
            return 0.75 * DURATIONS_MS[min(index, len(DURATIONS_MS) - 1)]
    return 0.0


def total(rows: Iterable[UsageRow]) -> UsageCounts:
    counts = UsageCounts()
    for row in rows:
        counts.add(row.counts)
    return counts
