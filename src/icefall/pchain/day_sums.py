"""Series by day of the P-Chain: what is staked, and what L1 validators pay. A series has a value for every day from
its first row to the day of the last block, and a page reads no more than its days."""

from typing import Any, NamedTuple

from icefall.db.engine import Reader, Row
from icefall.db.statements import load
from icefall.errors import Unavailable
from icefall.pchain.l1_fees import FeeKey
from icefall.pchain.model import FeeSum, StakerState
from icefall.pchain.store import fee_sum_of_row, unpacked_owner, unsigned
from icefall.pchain.sums import DAY_S

SQL = load("icefall.pchain", "day_sums.sql")


class Days(NamedTuple):
    """The days of a page, oldest first; `more`: there are earlier ones."""

    first: int
    last: int
    more: bool


class StakeDay(NamedTuple):
    """What was staked at the end of a day."""

    day: int
    validators: int
    validator_weight: int
    delegators: int
    delegator_weight: int


class FeeDay(NamedTuple):
    """What was paid on a day, what was paid until its end, and how many validators paid on it."""

    day: int
    paid: int
    cumulative: int
    paying: int


class StakedBy(NamedTuple):
    """Who gets the reward of a validation, and when its transaction was accepted."""

    seq: int
    addresses: tuple[bytes, ...]
    time: int


class DaySums:
    """Reads the series. If there is no `reader` the chain is not executed here, and every read is refused."""

    def __init__(self, reader: Reader | None) -> None:
        self._reader = reader
        self._has_fees = False

    @property
    def _store(self) -> Reader:
        if self._reader is None:
            raise Unavailable("the P-Chain of this network is not executed here, because its genesis is not known")
        return self._reader

    async def has_fees(self) -> bool:
        """Tell whether the sums of fees are those of the whole history. Once they are, they stay so."""
        self._has_fees = self._has_fees or not await self._store.rows(SQL.fees_missing)
        return self._has_fees

    async def stake(self, subnet_id: bytes, frame: "Frame", limit: int) -> tuple[list[StakeDay], int | None]:
        """A page of what was staked, newest first, and the day below which the next page begins."""
        days = _page(await self._store.rows(SQL.stake_extent, {"subnet_id": subnet_id}), frame, limit)
        if days is None:
            return [], None
        key = {"subnet_id": subnet_id, "first": days.first, "last": days.last}
        changed = {row[0]: row for row in await self._store.rows(SQL.stake_days, key)}
        known = min(changed)
        found = []
        for day in range(days.first, days.last + 1):
            known = day if day in changed else known
            found.append(StakeDay(day, *map(int, changed[known][1:])))
        return found[::-1], days.first if days.more else None

    async def fees(self, key: FeeKey, frame: "Frame", limit: int) -> list[FeeDay]:
        """The newest days of what L1 validators paid, newest first."""
        which: dict[str, Any] = {"scope": int(key[0]), "key": key[1]}
        days = _page(await self._store.rows(SQL.fee_extent, which), frame, limit)
        if days is None:
            return []
        rows = await self._store.rows(SQL.fee_days, which | {"first": days.first - 1, "last": days.last})
        ends = await self._store.rows(SQL.accrued_days, {"first": days.first - 1, "last": days.last})
        accrued = {day: unsigned(value) for day, value in ends}
        sums = {row[0]: fee_sum_of_row(tuple(row[:5])) for row in rows}
        return _fee_days(days, sums, accrued, unsigned(rows[0][5]))[::-1]

    async def staked_by(self, subnet_id: bytes, low: int, below: int, limit: int) -> list[StakedBy]:
        """Validators of a subnet whose transactions have numbers in a range, newest first."""
        found: list[Row] = []
        for state in StakerState:
            key = {"subnet_id": subnet_id, "state": int(state), "low": low, "below": below, "limit": limit}
            found += await self._store.rows(SQL.staking, key)
        return [_staked_by(row) for row in sorted(found, reverse=True)[:limit]]


class Frame(NamedTuple):
    """A time frame: from a time to before another one, of days below another. None: there is no such end."""

    start: int | None = None
    end: int | None = None
    before: int | None = None


def _page(extent: Any, frame: Frame, limit: int) -> Days | None:
    """The newest days of a series in a time frame; a day is in it if it begins in it."""
    if not extent or extent[0][0] is None:
        return None
    oldest, time = extent[0]
    newest = time // DAY_S
    if frame.end is not None:
        newest = min(newest, -(-frame.end // DAY_S) - 1)
    if frame.before is not None:
        newest = min(newest, frame.before - 1)
    if frame.start is not None:
        oldest = max(oldest, -(-frame.start // DAY_S))
    first = max(oldest, newest - limit + 1)
    return Days(first, newest, first > oldest) if first <= newest else None


def _fee_days(days: Days, sums: dict[int, FeeSum], accrued: dict[int, int], accrued_now: int) -> list[FeeDay]:
    """What was paid on each day. A day that has not ended yet ends with the last block."""
    oldest = min(sums)
    known, before, found = sums[oldest] if oldest < days.first else FeeSum(), 0, []
    for day in range(days.first - 1, days.last + 1):
        known = sums.get(day, known)
        total = known.at(accrued.get(day, accrued_now)) if known.active else known.paid
        if day >= days.first:
            paying = known.paying if known.day == day else known.active
            found.append(FeeDay(day, total - before, total, paying))
        before = total
    return found


def _staked_by(row: Row) -> StakedBy:
    seq, owner, time = row
    owners = unpacked_owner(owner)
    return StakedBy(seq, owners.addresses if owners is not None else (), time)
