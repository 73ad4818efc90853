"""Rollups in a chain's own file: written in the transaction of the blocks they are of, and taken back with them.

What a run costs does not depend on what is stored: it reads the newest period of each span and the last activity of the
addresses it names. Taking back costs what is taken back, and one hour of rows that is counted anew.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from icefall.db.engine import Transaction
from icefall.db.statements import load
from icefall.evm.amounts import pack_uint
from icefall.evm.model import ZERO_ADDRESS, BlockRows, CallType
from icefall.evm.positions import above, place
from icefall.evm.storing.writing import CALL_TYPES
from icefall.metrics.periods import DAY, HOUR, HOUR_S, MONTH, SPANS, WEEK, period_of, start_of
from icefall.metrics.rollup import (
    NEVER,
    BlockFacts,
    Distinct,
    PeriodRow,
    TimedBlock,
    Totals,
    distinct,
    merged,
    sums_of,
    timed,
)
from icefall.metrics.rows import facts_of_row, figures_of, row_of

SQL = load("icefall.metrics", "queries.sql")
Ids = Callable[[bytes], int]

_CREATION = CallType.CONTRACT_CREATION
_UNSEEN = (NEVER, NEVER)
_pack = msgspec.msgpack.encode
_fresh = msgspec.msgpack.Decoder(list[int])
_earlier = msgspec.msgpack.Decoder(list[tuple[int, int, int]])


class _Hour(NamedTuple):
    """Blocks of one hour and who was seen in them, as interned addresses."""

    hour: int
    blocks: list[TimedBlock]
    active: set[int]
    senders: set[int]
    creators: list[int]  # one for each contract created


class RollupWriter:
    """The engine's: called by the writer of blocks inside its open transaction."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def put_run(self, tx: Transaction, run: Sequence[BlockRows], ids: Ids) -> None:
        """After the rows of a run of consecutive blocks were written. `ids` knows every address in them."""
        newest = _newest(tx)
        blocks = timed(map(facts_of, run), newest.sums.last_time if newest else None)
        rows = run[len(run) - len(blocks) :]  # without block 0
        hours = []
        for hour, group in groupby(zip(blocks, rows, strict=True), lambda pair: pair[0].at // HOUR_S):
            pairs = list(group)
            hours.append(_hour_of(hour, [block for block, _ in pairs], [one for _, one in pairs], ids))
        prices = [block.facts for block in blocks if block.facts.tx_count]
        tx.run_many(
            SQL.put_block_price, [(one.number, pack_uint(one.price_sum), pack_uint(one.price_max)) for one in prices]
        )
        if hours:
            _add(tx, hours, newest)
        self._ran(tx)

    def undo_above(self, tx: Transaction, ancestor: int) -> None:
        """After the rows of all blocks above `ancestor` were deleted."""
        found = tx.rows(SQL.hour_of_block, {"block": ancestor})
        newest = found[0] if found else None
        cut_hour, is_cut = 0, False
        if newest is not None:
            figures = figures_of(newest)
            is_cut = figures.sums.last_block > ancestor
            cut_hour = newest[1] if is_cut else newest[1] + 1
        _restore_activity(tx, cut_hour)
        tx.run(SQL.drop_deployers, {"hour": cut_hour})
        tx.run(SQL.drop_block_prices, {"block": ancestor})
        _drop_from(tx, cut_hour)
        if is_cut:
            before = _newest(tx)
            _add(tx, [_stored_hour(tx, figures.sums.first_block, ancestor, before)], before)
        self._ran(tx)

    def _ran(self, tx: Transaction) -> None:
        tx.run(SQL.put_ran, {"at": str(int(self._clock()))})


def facts_of(rows: BlockRows) -> BlockFacts:
    block = rows.block
    prices = [tx.gas_price for tx in rows.txs]
    return BlockFacts(
        block.number, block.time, block.tx_count, block.gas_used, block.fees_spent, sum(prices), max(prices, default=0)
    )


def _newest(tx: Transaction) -> PeriodRow | None:
    rows = tx.rows(SQL.newest_rollup, {"span": HOUR})
    return figures_of(rows[0]) if rows else None


# -- adding ------------------------------------------------------------------------------------------------------


def _hour_of(hour: int, blocks: list[TimedBlock], run: Iterable[BlockRows], ids: Ids) -> _Hour:
    senders: set[bytes] = set()
    active: set[bytes] = set()
    creators: list[bytes] = []
    for rows in run:
        senders.update([tx.sender for tx in rows.txs])
        active.update([tx.to for tx in rows.txs if tx.call_type is not _CREATION])
        for moves in (rows.erc20_transfers, rows.erc721_transfers, rows.erc1155_transfers):
            if moves:
                senders.update([move.sender for move in moves])
                active.update([move.to for move in moves])
        creators.extend([made.creator for made in rows.deployments])
    active |= senders
    active.discard(ZERO_ADDRESS)
    senders.discard(ZERO_ADDRESS)
    return _Hour(hour, blocks, set(map(ids, active)), set(map(ids, senders)), list(map(ids, creators)))


def _add(tx: Transaction, hours: Sequence[_Hour], newest: PeriodRow | None) -> None:
    """Hours in order, none before the newest stored; the first may be its continuation."""
    seen = _put_activity(tx, hours)
    deployers = _put_deployers(tx, hours)
    last_block = hours[-1].blocks[-1].facts.number
    sums = [sums_of(hour.blocks) for hour in hours]
    txs = int(tx.rows(SQL.cumulative_txs, {"number": last_block})[0][0]) - sum(one.tx_count for one in sums)
    totals = newest.totals if newest else Totals()
    added = []
    for hour, one, (active, senders, fresh), deploying in zip(hours, sums, seen, deployers, strict=True):
        txs += one.tx_count
        totals = Totals(
            txs, totals.addresses + fresh, totals.contracts + len(hour.creators), totals.deployers + deploying
        )
        added.append(PeriodRow(one, active, senders, totals))
    rows = []
    for span in SPANS:
        for number, period in enumerate(_by_period(span, added)):
            figures = period
            if number == 0:
                stored = _stored(tx, span, period_of(span, period.sums.first_time))
                figures = merged(stored, period) if stored else period
            rows.append(row_of(span, period_of(span, figures.sums.last_time), figures))
    tx.run_many(SQL.put_rollup, rows)


def _by_period(span: int, parts: Sequence[PeriodRow]) -> Iterable[PeriodRow]:
    for _, group in groupby(parts, lambda part: period_of(span, part.sums.last_time)):
        whole, *rest = group
        for part in rest:
            whole = merged(whole, part)
        yield whole


def _stored(tx: Transaction, span: int, period: int) -> PeriodRow | None:
    rows = tx.rows(SQL.rollup_at, {"span": span, "period": period})
    return figures_of(rows[0]) if rows else None


def _put_activity(tx: Transaction, hours: Sequence[_Hour]) -> list[tuple[Distinct, Distinct, int]]:
    """Of each hour: how many addresses and senders are new in its hour, day, week and month, and how many at all."""
    newest = int(tx.rows(SQL.newest_active)[0][0])  # later addresses cannot have been seen
    known = sorted({address for hour in hours for address in hour.active if address <= newest})
    last: dict[int, tuple[int, int]] = {}
    if known:
        asked = {"addresses": msgspec.json.encode(known).decode()}
        last = {address: (active, sent) for address, active, sent in tx.rows(SQL.last_activity, asked)}
    notes, counts = [], []
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
            if was != (told := (hour, hour if is_sender else was_sent)):
                now[address] = told
        last |= now
        changed |= now
        if fresh or earlier:
            lists = (_pack(sorted(fresh)), _pack(sorted(earlier)))
            notes.append((hour, blocks[-1].facts.number, *lists))
        counts.append((distinct(hour, active_before), distinct(hour, sent_before), len(fresh)))
    tx.run_many(SQL.put_activity, notes)
    tx.run_many(SQL.put_last_activity, [(address, *when) for address, when in sorted(changed.items())])
    return counts


def _put_deployers(tx: Transaction, hours: Sequence[_Hour]) -> list[int]:
    """Of each hour: how many create a contract for the first time."""
    creators = {address for hour in hours for address in hour.creators}
    if not creators:
        return [0] * len(hours)
    asked = {"addresses": msgspec.json.encode(sorted(creators)).decode()}
    known = {address for (address,) in tx.rows(SQL.deployers, asked)}
    rows: list[tuple[int, int]] = []
    counts = []
    for hour in hours:
        fresh = set(hour.creators) - known
        known |= fresh
        rows.extend((address, hour.hour) for address in fresh)
        counts.append(len(fresh))
    tx.run_many(SQL.put_deployer, sorted(rows))
    return counts


# -- taking back -------------------------------------------------------------------------------------------------


def _restore_activity(tx: Transaction, hour: int) -> None:
    """As it was before this hour."""
    before: dict[int, tuple[int, int]] = {}
    for fresh, earlier in tx.rows(SQL.activity_from, {"hour": hour}):  # newest first: the oldest has the last word
        before |= dict.fromkeys(_fresh.decode(fresh), _UNSEEN)
        before |= {address: (active, sent) for address, active, sent in _earlier.decode(earlier)}
    tx.run_many(SQL.drop_last_activity, [(address,) for address, was in before.items() if was == _UNSEEN])
    tx.run_many(SQL.put_last_activity, [(address, *was) for address, was in sorted(before.items()) if was != _UNSEEN])
    tx.run(SQL.drop_activity, {"hour": hour})


def _drop_from(tx: Transaction, hour: int) -> None:
    """The hours from this one on, and of longer periods the part they make up: a day is counted again from the hours
    that are left of it, a week and a month from its days."""
    begin = hour * HOUR_S
    tx.run(SQL.drop_rollups, {"span": HOUR, "period": hour})
    for span, part in ((DAY, HOUR), (WEEK, DAY), (MONTH, DAY)):
        period = period_of(span, begin)
        tx.run(SQL.drop_rollups, {"span": span, "period": period})
        reach = {"span": part, "first": period_of(part, max(start_of(span, period), 0)), "last": period_of(part, begin)}
        left = [figures_of(row) for row in tx.rows(SQL.rollups_between, reach)]
        tx.run_many(SQL.put_rollup, [row_of(span, period, whole) for whole in _by_period(span, left)])


def _stored_hour(tx: Transaction, first_block: int, last_block: int, before: PeriodRow | None) -> _Hour:
    """An hour, or its beginning, from the rows of the chain."""
    facts = map(facts_of_row, tx.rows(SQL.blocks_between, {"first": first_block, "last": last_block}))
    blocks = timed(facts, before.sums.last_time if before else None)
    reach = {"first": place(first_block, 0), "end": above(last_block)}
    senders = {address for (address,) in tx.rows(SQL.senders_between, reach)}
    recipients = tx.rows(SQL.recipients_between, {**reach, "creation": CALL_TYPES.index(_CREATION)})
    nobody = {address for (address,) in tx.rows(SQL.address_id, {"address": ZERO_ADDRESS})}
    return _Hour(
        blocks[0].at // HOUR_S,
        blocks,
        (senders | {address for (address,) in recipients}) - nobody,
        senders - nobody,
        [address for (address,) in tx.rows(SQL.creators_between, reach)],
    )
