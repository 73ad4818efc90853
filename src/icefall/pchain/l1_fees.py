"""Sums of the continuous fees of L1 validators, kept while blocks are executed: of each validation, of each node, of
each subnet, and of all. An active validator pays what the fees accrued by the chain grow by, so a sum needs a row only
for days on which a validator begins or ceases to pay; the accrued fees at the end of each day give the days between.
"""

from collections.abc import Iterator
from enum import IntEnum

from icefall.pchain.model import FeeSum, L1Validator
from icefall.pchain.sums import DAY_S


class FeeScope(IntEnum):
    """Whose fees a sum is of. The key is empty for all, else the ID of the subnet, node or validation."""

    ALL = 0
    SUBNET = 1
    NODE = 2
    VALIDATION = 3


FeeKey = tuple[int, bytes]  # the scope and its key


def scopes_of(validator: L1Validator) -> tuple[FeeKey, ...]:
    return (
        (FeeScope.ALL, b""),
        (FeeScope.SUBNET, validator.subnet_id),
        (FeeScope.NODE, validator.node_id),
        (FeeScope.VALIDATION, validator.validation_id),
    )


def changed_sum(before: FeeSum | None, time: int, accrued: int, *, begins: bool, again: bool, lost: int) -> FeeSum:
    """The sum after a validator began or ceased to pay. `again`: it has paid on this day already. `lost`: what was too
    little for another second, which it paid at once. One that ceases with the day before has not paid on this one."""
    known, day = before or FeeSum(), time // DAY_S
    paying = known.paying if known.day == day else known.active
    if not begins and time % DAY_S == 0 and not lost:
        paying -= 1
    return FeeSum(
        day,
        known.active + (1 if begins else -1),
        paying + (1 if begins and not again else 0),
        known.at(accrued) + lost,
        accrued,
    )


def ended_days(since: int, until: int) -> Iterator[tuple[int, int]]:
    """The days that end after `since` and not after `until`, each with the time of its end."""
    for day in range(since // DAY_S, until // DAY_S):
        yield day, (day + 1) * DAY_S
