"""A second, naive reading of the series by day: every second of a recorded P-Chain is walked, and every block counted.

Days are as short as the test says, because the recordings last minutes.
"""

from typing import Any

from tests.api.staking_naive import NaiveNetwork
from tests.pchain.recorded import Playback

ALL = b""


class NaiveDays(NaiveNetwork):
    """`stakes_of` has, by subnet and day, validators, their weight, delegators and theirs after the day's last block;
    `fees_of` what each validation paid in each of the days."""

    def __init__(self, playback: Playback, day_s: int) -> None:
        self.day_s = day_s
        self.stakes_of: dict[tuple[bytes, int], tuple[int, int, int, int]] = {}
        self.fees_of: dict[tuple[bytes, int], int] = {}
        self.first_day: int | None = None
        super().__init__(playback)

    def _stake(self, tx: Any, start: int | None) -> None:
        super()._stake(tx, start)
        self._count()

    def _standard(self, block: Any) -> None:
        super()._standard(block)
        self._count()

    def _decide(self, block: Any, *, committed: bool) -> None:
        super()._decide(block, committed=committed)
        self._count()

    def _advance(self, new: int) -> None:
        for second in range(self.time, new):
            for key, one in self.l1.items():
                if one.status == "active" and new >= self.forks.etna:
                    at = key, second // self.day_s
                    self.fees_of[at] = self.fees_of.get(at, 0) + 1
        super()._advance(new)

    def _count(self) -> None:
        day = self.time // self.day_s
        subnets = {one.subnet for one in self.stakes} | {one.subnet for one in self.l1.values()}
        for subnet in (*subnets, ALL):
            stakers = [one for one in self.stakes if one.status == "active" and subnet in (one.subnet, ALL)]
            plain = [one.weight for one in stakers if not one.is_delegator]
            plain += [one.weight for one in self.l1.values() if one.status != "removed" and subnet in (one.subnet, ALL)]
            delegated = [one.weight for one in stakers if one.is_delegator]
            self.stakes_of[subnet, day] = len(plain), sum(plain), len(delegated), sum(delegated)

    def stake_series(self, subnet: bytes, field: int) -> list[tuple[int, int]]:
        """The values of the last 2,160 days, and of earlier ones with a change, newest first."""
        found: list[tuple[int, int]] = []
        known = None
        changed = {day: values for (one, day), values in self.stakes_of.items() if one == subnet}
        last = self.time // self.day_s
        for day in (*sorted(day for day in changed if day < last - 2160), *range(last - 2160, last + 1)):
            values = changed.get(day)
            known = values if values is not None and (known is not None or any(values)) else known
            if known is not None:
                found.append((day * self.day_s, known[field]))
        return found[::-1]

    def fee_series(self, some: set[bytes], kind: str) -> list[tuple[int, int]]:
        """What some validations paid, by day, from the first of them that ever began to pay."""
        days = [day for key, day in self.fees_of if key in some]
        found, total = [], 0
        for day in range(min(days), self.time // self.day_s + 1) if days else ():
            paid = {key: self.fees_of.get((key, day), 0) for key in some}
            total += sum(paid.values())
            value = {"paid": sum(paid.values()), "cumulative": total, "paying": sum(map(bool, paid.values()))}[kind]
            found.append((day * self.day_s, value))
        return found[::-1]
