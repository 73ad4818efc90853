"""What goes wrong and when: phases of every upstream and our own crashes, all drawn from one seeded generator."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

HONEST = ""
_SHARES = (1.0, 1.0, 0.5, 0.15)


class Phase(NamedTuple):
    """From `start_s` on, this share of the requests meets the fault."""

    start_s: float
    fault: str
    share: float


class Schedule:
    """The phases of one upstream. The last has no end."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self.phases = tuple(phases)
        self._starts = [phase.start_s for phase in self.phases]

    def at(self, now: float) -> Phase:
        return self.phases[bisect_right(self._starts, now) - 1]

    def __str__(self) -> str:
        return ", ".join(f"{it.start_s:.0f} s {it.fault or 'honest'} ({it.share:g})" for it in self.phases)


def draw_schedule(source: random.Random, faults: Sequence[str], trouble_s: float, last: str = HONEST) -> Schedule:
    """Faults with honest phases between them until `trouble_s`, then `last` for ever."""
    phases, now = [], 0.0
    while now < trouble_s:
        fault = HONEST if source.random() < 0.3 else source.choice(faults)
        phases.append(Phase(now, fault, source.choice(_SHARES)))
        now += source.choice((2.0, 6.0, 20.0, 50.0)) * (0.5 + source.random())
    phases.append(Phase(trouble_s, last, 1.0))
    return Schedule(phases)


class Crash(NamedTuple):
    """Kills the program after a time, or at its n-th statement of a transaction if that comes first."""

    after_s: float
    at_statement: int


def draw_crashes(source: random.Random, trouble_s: float) -> list[Crash]:
    """One per start of the program; after them it is not killed again."""
    return [
        Crash(source.uniform(0.0, trouble_s), source.choice((10**9, source.randint(1, 40), source.randint(1, 600))))
        for _ in range(source.choice((0, 1, 2, 4)))
    ]
