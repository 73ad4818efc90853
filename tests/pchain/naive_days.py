"""What a naive P-Chain staked and paid on each day, walked second by second and counted block by block."""

from typing import Any

from tests.pchain.naive_fees import price_of
from tests.pchain.naive_history import NaiveHistory

from icefall.wire.pvm import types as t

ALL = b""
Stakes = tuple[int, int, int, int]  # validators, their weight, delegators, theirs


class NaiveDays(NaiveHistory):
    """`stakes_of` has what was staked in a subnet after the last block of a day that changed it; `paid_on` what each
    validation of an L1 paid on each day; `since` the first day on which each was active."""

    day_s = 1

    def __init__(self, rules: Any) -> None:
        super().__init__(rules)
        self.stakes_of: dict[tuple[bytes, int], Stakes] = {}
        self.paid_on: dict[tuple[bytes, int], int] = {}
        self.since: dict[bytes, int] = {}
        self.validations: dict[bytes, tuple[bytes, bytes]] = {}  # subnet and node

    @property
    def day(self) -> int:
        return self.time // self.day_s

    def begin(self, genesis: t.PlatformGenesis) -> None:
        super().begin(genesis)
        self._count()

    def accept(self, block: t.PlatformBlock) -> None:
        super().accept(block)
        self._count()

    def _count(self) -> None:
        every: dict[bytes, list[int]] = {ALL: [0, 0, 0, 0]}
        rows = [(one.subnet, one.weight, one.delegates) for one in self.current()]
        rows += [(one.subnet, one.weight, False) for one in self.l1.values()]
        for subnet, weight, delegates in rows:
            for key in (subnet, ALL):
                totals = every.setdefault(key, [0, 0, 0, 0])
                totals[2 * delegates] += 1
                totals[2 * delegates + 1] += weight
        known = {subnet for subnet, _ in self.stakes_of}
        for subnet in known | every.keys():
            validators, weight, delegators, delegated = every.get(subnet, [0, 0, 0, 0])
            self.stakes_of[subnet, self.day] = validators, weight, delegators, delegated

    # -- fees -----------------------------------------------------------------------------------------------------

    def advance(self, time: int) -> None:
        if time >= self.rules.forks.etna:
            excess, fees = self.l1_excess, self.rules.validator_fees
            active = {name: one.until for name, one in self.l1.items() if one.until}
            for second in range(self.time, time if active else self.time):
                if len(active) != fees.target:
                    excess = max(0, excess + len(active) - fees.target)
                price = price_of(fees.min_price, excess, fees.excess_conversion_constant)
                for name in active:
                    self._pay(name, second // self.day_s, price)
        before = self._left_now()
        super().advance(time)
        self._lose(before)

    def deactivate_poor(self) -> None:
        before = self._left_now()
        super().deactivate_poor()
        self._lose(before)

    def execute(self, tx: t.PlatformTx, *, committed: bool = True) -> None:
        super().execute(tx, committed=committed)
        for name, one in self.l1.items():
            self.validations[name] = one.subnet, one.node
            if one.until:
                self.since.setdefault(name, self.day)

    def _left_now(self) -> dict[bytes, int]:
        return {name: one.until for name, one in self.l1.items() if one.until}

    def _lose(self, before: dict[bytes, int]) -> None:
        """What is too little for another second is paid with the deactivation."""
        for name, until in before.items():
            if not self.l1[name].until and until != self.accrued:
                self._pay(name, self.day, until - self.accrued)

    def _pay(self, name: bytes, day: int, amount: int) -> None:
        self.paid_on[name, day] = self.paid_on.get((name, day), 0) + amount

    # -- what is asked for ----------------------------------------------------------------------------------------

    def stake_series(self, subnet: bytes, field: int) -> list[tuple[int, int]]:
        """The value at the end of each day from the first with a staker on, newest first."""
        changed = {day: values for (one, day), values in self.stakes_of.items() if one == subnet}
        found, known = [], None
        for day in range(min(changed), self.day + 1):
            known = changed.get(day, known)
            assert known is not None
            found.append((day * self.day_s, known[field]))
        return found[::-1]

    def fee_series(self, some: set[bytes], kind: str) -> list[tuple[int, int]]:
        """What some validations paid, by day, from the first on which one of them was active on, newest first. One that
        is active now pays on this day, though it may not have paid yet."""
        found, total = [], 0
        active = {name for name in some if name in self.l1 and self.l1[name].until}
        days = [self.since[name] for name in some if name in self.since]
        for day in range(min(days), self.day + 1) if days else ():
            paid = {name: amount for name in some if (amount := self.paid_on.get((name, day), 0))}
            total += sum(paid.values())
            paying = paid.keys() | (active if day == self.day else set())
            value = {"paid": sum(paid.values()), "cumulative": total, "paying": len(paying)}[kind]
            found.append((day * self.day_s, value))
        return found[::-1]
