"""Writes rollups into a chain's store, in the transaction that writes or rolls back the blocks they are computed from.

The cost of adding blocks does not depend on what is stored: it reads the newest period of each span and the last
activity of the addresses in the blocks. The cost of a rollback is that of the removed rows, and of one hour that is
counted again.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from icefall.db.engine import Transaction
from icefall.evm.encoding import CALL_TYPES, above, pack_uint, position_of
from icefall.evm.model import ZERO_ADDRESS, CallType
from icefall.evm.packed import PackedBlock
from icefall.evm.standards import load_statements
from icefall.evm.storing.writing import BlockIds
from icefall.metrics.rollup import (
    DAY,
    HOUR,
    HOUR_S,
    MONTH,
    NEVER,
    SPANS,
    WEEK,
    BlockStats,
    CumulativeTotals,
    DistinctCounts,
    PeriodRollup,
    SecondSums,
    TimedBlock,
    count_distinct,
    merge_periods,
    period_of,
    seconds_of,
    start_of,
    sums_of,
    with_times,
)
from icefall.metrics.rows import (
    RollupRow,
    pack_changes,
    pack_rollup,
    unpack_block_stats,
    unpack_earlier,
    unpack_fresh,
    unpack_rollup,
)

SQL = load_statements("icefall.metrics", "queries.sql")

_CREATION = CallType.CONTRACT_CREATION
_UNSEEN = (NEVER, NEVER)


class _Hour(NamedTuple):
    """The blocks of one hour and the addresses seen in them, as address IDs."""

    hour: int
    blocks: list[TimedBlock]
    active: set[int]
    senders: set[int]
    creators: list[int]  # one for each contract created


class RollupWriter:
    """The writer of rollups, which the writer of blocks calls inside its open transaction."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._newest_second: tuple[int, SecondSums] | None = None  # with its last block, of the batch before

    def put_batch(self, tx: Transaction, run: Sequence[PackedBlock], ids: Sequence[BlockIds]) -> None:
        """Add consecutive blocks, after their rows were written. `ids`: those of the addresses of each block."""
        newest = _newest(tx)
        begun = self._second_of(tx, newest) if newest else None
        blocks = with_times(map(block_stats, run), begun and begun.at, begun and begun.gap)
        counted = zip(blocks, run[-len(blocks) :], ids[-len(blocks) :], strict=True) if blocks else ()  # not block 0
        hours = []
        for hour, group in groupby(counted, lambda one: one[0].at // HOUR_S):
            hours.append(_hour_of(hour, list(group)))
        with_txs = [block.stats for block in blocks if block.stats.tx_count]
        tx.run_many(
            SQL.put_block_price,
            [(block.number, pack_uint(block.price_sum), pack_uint(block.price_max)) for block in with_txs],
        )
        if hours:
            _add(tx, hours, newest, begun)
            self._newest_second = blocks[-1].stats.number, seconds_of(blocks, begun)[-1]
        self._put_time(tx)

    def _second_of(self, tx: Transaction, newest: PeriodRollup) -> SecondSums:
        """The sums of the newest stored second: blocks to come may share it. After a start or a rollback they are read
        from the blocks of its hour."""
        sums = newest.sums
        if self._newest_second is None or self._newest_second[0] != sums.last_block:
            before = _rollups(tx, SQL.rollup_before, span=HOUR, period=sums.first_time // HOUR_S)
            rows = tx.rows(SQL.blocks_between, {"first": sums.first_block, "last": sums.last_block})
            blocks = with_times(map(unpack_block_stats, rows), before[0].last_time if before else None)
            self._newest_second = sums.last_block, seconds_of(blocks)[-1]
        return self._newest_second[1]

    def roll_back_above(self, tx: Transaction, ancestor: int) -> None:
        """Drop what is of blocks above `ancestor`, after their rows were deleted."""
        self._newest_second = None
        found = _rollups(tx, SQL.hour_of_block, block=ancestor)
        newest = found[0] if found else None
        first_dropped_hour, hour_is_partial = 0, False
        if newest is not None:
            hour_is_partial = newest.last_block > ancestor
            first_dropped_hour = newest.period if hour_is_partial else newest.period + 1
        _restore_activity(tx, first_dropped_hour)
        tx.run(SQL.drop_deployers, {"hour": first_dropped_hour})
        tx.run(SQL.drop_block_prices, {"block": ancestor})
        _drop_from(tx, first_dropped_hour)
        if newest is not None and hour_is_partial:
            before = _newest(tx)
            _add(tx, [_stored_hour(tx, newest.first_block, ancestor, before)], before)
        self._put_time(tx)

    def _put_time(self, tx: Transaction) -> None:
        tx.run(SQL.put_last_rollup_time, {"at": str(int(self._clock()))})


def block_stats(rows: PackedBlock) -> BlockStats:
    block = rows.block
    return BlockStats(
        block.number, block.time, block.tx_count, block.gas_used, block.fees_spent, rows.price_sum, rows.price_max
    )


def _rollups(tx: Transaction, statement: str, **params: int) -> list[RollupRow]:
    return [RollupRow(*row) for row in tx.rows(statement, params)]


def _newest(tx: Transaction) -> PeriodRollup | None:
    rows = _rollups(tx, SQL.newest_rollup, span=HOUR)
    return unpack_rollup(rows[0]) if rows else None


# -- adding ------------------------------------------------------------------------------------------------------


def _hour_of(hour: int, run: Iterable[tuple[TimedBlock, PackedBlock, BlockIds]]) -> _Hour:
    found = _Hour(hour, [], set(), set(), [])
    for block, rows, ids in run:
        of: Callable[[int], Any] = ids.__getitem__
        found.blocks.append(block)
        found.active.update(map(of, rows.active))
        found.senders.update(map(of, rows.senders))
        found.creators.extend(map(of, rows.creators))
    return found


def _add(tx: Transaction, hours: Sequence[_Hour], newest: PeriodRollup | None, begun: SecondSums | None = None) -> None:
    """Add hours in order, none before the newest stored one; the first may continue that one, and its last second,
    `begun`."""
    seen = _put_activity(tx, hours)
    deployers = _put_deployers(tx, hours)
    last_block = hours[-1].blocks[-1].stats.number
    sums = [sums_of(hour.blocks, begun) for hour in hours]
    txs = int(tx.rows(SQL.cumulative_txs, {"number": last_block})[0][0]) - sum(one.tx_count for one in sums)
    cumulative = newest.cumulative if newest else CumulativeTotals()
    added = []
    for hour, one, (active, senders, fresh), deploying in zip(hours, sums, seen, deployers, strict=True):
        txs += one.tx_count
        cumulative = CumulativeTotals(
            txs,
            cumulative.addresses + fresh,
            cumulative.contracts + len(hour.creators),
            cumulative.deployers + deploying,
        )
        added.append(PeriodRollup(one, active, senders, cumulative))
    rows = []
    for span in SPANS:
        for index, part in enumerate(_by_period(span, added)):
            stored = _stored(tx, span, period_of(span, part.sums.first_time)) if index == 0 else None
            whole = merge_periods(stored, part) if stored else part
            rows.append(pack_rollup(span, period_of(span, whole.sums.last_time), whole))
    tx.run_many(SQL.put_rollup, rows)


def _by_period(span: int, parts: Sequence[PeriodRollup]) -> Iterable[PeriodRollup]:
    for _, group in groupby(parts, lambda part: period_of(span, part.sums.last_time)):
        whole, *rest = group
        for part in rest:
            whole = merge_periods(whole, part)
        yield whole


def _stored(tx: Transaction, span: int, period: int) -> PeriodRollup | None:
    rows = _rollups(tx, SQL.rollup_at, span=span, period=period)
    return unpack_rollup(rows[0]) if rows else None


def _put_activity(tx: Transaction, hours: Sequence[_Hour]) -> list[tuple[DistinctCounts, DistinctCounts, int]]:
    """Store who was active, and count for each hour the addresses and senders that are new in its hour, day, week and
    month, and the addresses that are new on the chain."""
    newest = int(tx.rows(SQL.newest_active)[0][0])  # later addresses cannot have been seen
    known = sorted({address for hour in hours for address in hour.active if address <= newest})
    last: dict[int, tuple[int, int]] = {}
    if known:
        last = {address: (active, sent) for address, active, sent in tx.rows(SQL.last_activity, {"addresses": known})}
    changes, counts = [], []
    changed: dict[int, tuple[int, int]] = {}
    for hour, blocks, active, senders, _ in hours:
        fresh = active.difference(last)
        now = dict.fromkeys(fresh, (hour, NEVER)) | dict.fromkeys(fresh & senders, (hour, hour))
        active_before, sent_before = [NEVER] * len(fresh), [NEVER] * len(fresh & senders)
        earlier: list[tuple[int, int, int]] = []
        for address in active - fresh:
            was_active, was_sent = was = last[address]
            is_sender = address in senders
            if was_active < hour:
                earlier.append((address, was_active, was_sent))
                active_before.append(was_active)
            if is_sender and was_sent < hour:
                sent_before.append(was_sent)
            if was != (seen := (hour, hour if is_sender else was_sent)):
                now[address] = seen
        last |= now
        changed |= now
        if fresh or earlier:
            lists = (pack_changes(sorted(fresh)), pack_changes(sorted(earlier)))
            changes.append((hour, blocks[-1].stats.number, *lists))
        counts.append((count_distinct(hour, active_before), count_distinct(hour, sent_before), len(fresh)))
    tx.run_many(SQL.put_activity, changes)
    tx.run_many(SQL.put_last_activity, [(address, *when) for address, when in sorted(changed.items())])
    return counts


def _put_deployers(tx: Transaction, hours: Sequence[_Hour]) -> list[int]:
    """Store who created contracts, and count for each hour the addresses that do so for the first time."""
    creators = {address for hour in hours for address in hour.creators}
    if not creators:
        return [0] * len(hours)
    known = {address for (address,) in tx.rows(SQL.deployers, {"addresses": sorted(creators)})}
    rows: list[tuple[int, int]] = []
    counts = []
    for hour in hours:
        fresh = set(hour.creators) - known
        known |= fresh
        rows.extend((address, hour.hour) for address in fresh)
        counts.append(len(fresh))
    tx.run_many(SQL.put_deployer, sorted(rows))
    return counts


# -- rolling back ------------------------------------------------------------------------------------------------


def _restore_activity(tx: Transaction, hour: int) -> None:
    """Restore the last activity of every address to what it was before this hour."""
    before: dict[int, tuple[int, int]] = {}
    for fresh, earlier in tx.rows(SQL.activity_from, {"hour": hour}):  # newest first: the oldest is applied last
        before |= dict.fromkeys(unpack_fresh(fresh), _UNSEEN)
        before |= {address: (active, sent) for address, active, sent in unpack_earlier(earlier)}
    tx.run_many(SQL.drop_last_activity, [(address,) for address, was in before.items() if was == _UNSEEN])
    tx.run_many(SQL.put_last_activity, [(address, *was) for address, was in sorted(before.items()) if was != _UNSEEN])
    tx.run(SQL.drop_activity, {"hour": hour})


def _drop_from(tx: Transaction, hour: int) -> None:
    """Drop the hours from this one on, and their part of longer periods.

    The day is summed again from its remaining hours, the week and the month from their remaining days.
    """
    begin = hour * HOUR_S
    tx.run(SQL.drop_rollups, {"span": HOUR, "period": hour})
    for span, part in ((DAY, HOUR), (WEEK, DAY), (MONTH, DAY)):
        period = period_of(span, begin)
        tx.run(SQL.drop_rollups, {"span": span, "period": period})
        first, last = period_of(part, max(start_of(span, period), 0)), period_of(part, begin)
        left = [unpack_rollup(row) for row in _rollups(tx, SQL.rollups_between, span=part, first=first, last=last)]
        tx.run_many(SQL.put_rollup, [pack_rollup(span, period, whole) for whole in _by_period(span, left)])


def _stored_hour(tx: Transaction, first_block: int, last_block: int, before: PeriodRollup | None) -> _Hour:
    """Read an hour, or the first part of it, from the rows of the chain."""
    stats = map(unpack_block_stats, tx.rows(SQL.blocks_between, {"first": first_block, "last": last_block}))
    blocks = with_times(stats, before.sums.last_time if before else None)
    between = {"first": position_of(first_block, 0), "end": above(last_block)}
    calls = {**between, "creation": CALL_TYPES.index(_CREATION)}
    senders = {address for (address,) in tx.rows(SQL.senders_of_txs, between)}
    recipients = {address for (address,) in tx.rows(SQL.recipients_of_txs, calls)}
    for statement in SQL.each("senders_of_{standard}"):
        senders |= {address for (address,) in tx.rows(statement, between)}
    for statement in SQL.each("recipients_of_{standard}"):
        recipients |= {address for (address,) in tx.rows(statement, between)}
    zero_address = {address for (address,) in tx.rows(SQL.address_id, {"address": ZERO_ADDRESS})}
    return _Hour(
        blocks[0].at // HOUR_S,
        blocks,
        (senders | recipients) - zero_address,
        senders,  # only those that are active count
        [address for (address,) in tx.rows(SQL.creators_between, between)],
    )
