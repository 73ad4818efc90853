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


def changed_sum(before: FeeSum | None, time: int, accrued: int, *, begins: bool, paying: int, lost: int) -> FeeSum:
    """The sum after a validator began or ceased to pay, by which the number of those that paid on this day changes by
    `paying`. `lost`: what was too little for another second, which it paid at once."""
    known, day = before or FeeSum(), time // DAY_S
    counted = known.paying if known.day == day else known.active
    return FeeSum(day, known.active + (1 if begins else -1), counted + paying, known.at(accrued) + lost, accrued)


def change_of_paying(validator: L1Validator, own: FeeSum | None, time: int, accrued: int, lost: int) -> int:
    """Return what to add to the number of those that paid on this day when a validator begins or ceases to pay.

    One that ceases was counted until now, and has not paid on this day if it ceases at the day's beginning or in the
    second in which it began. `own` is the sum of the validation before.
    """
    if validator.inactive_since // DAY_S == time // DAY_S:  # it has paid on this day before
        return 0
    if validator.is_active:
        return 1
    return 0 if has_paid(own, accrued, lost) and (lost or time % DAY_S) else -1


def has_paid(own: FeeSum | None, accrued: int, lost: int) -> bool:
    """Whether a validation that ceases to pay has paid anything since it began to."""
    return bool(lost) or own is None or own.since != accrued


def ended_days(since: int, until: int) -> Iterator[tuple[int, int]]:
    """The days that end after `since` and not after `until`, each with the time of its end."""
    for day in range(since // DAY_S, until // DAY_S):
        yield day, (day + 1) * DAY_S
