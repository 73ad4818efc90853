"""Counts the messages between chains with the blocks that sent or received them, and fills in those of older blocks.

Rows of events are written with their block like those of any table (writing.py). A message counts once, at the first
event that sends it, and at the first that receives it: a message may be sent again.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from icefall.db.engine import Row, Transaction
from icefall.db.statements import load
from icefall.evm.encoding import BITS, above, block_of, position_of
from icefall.evm.packed import PackedBlock, columns_of
from icefall.evm.storing.writing import INSERTS
from icefall.wire.evm.messages import RECEIVED, SENT

SQL = load("icefall.evm.storing", "messages.sql")
TABLE = "messenger_event"
ALL_TIME, HOUR_S, DAY_S = 0, 3600, 86400  # the lengths of periods that are counted
_COUNTED = (SENT, RECEIVED)


class CountedEvent(NamedTuple):
    """The part of an event of which its counts are made."""

    log_at: int
    tx_index: int
    kind: int
    message_id: bytes
    peer: bytes
    time: int


class _First(NamedTuple):
    """The first event of a kind and a message."""

    log_at: int
    peer: bytes
    time: int


class _Changes:
    """The changes of counts, gathered and then written."""

    def __init__(self) -> None:
        self._by_period: dict[tuple[int, int, int, bytes], list[int]] = {}

    def add(self, kind: int, peer: bytes, time: int, messages: int, txs: int) -> None:
        for size in (ALL_TIME, HOUR_S, DAY_S):
            start = time - time % size if size else 0
            count = self._by_period.setdefault((size, start, kind, peer), [0, 0])
            count[0] += messages
            count[1] += txs

    def write(self, tx: Transaction) -> None:
        changed = [(key, count) for key, count in sorted(self._by_period.items()) if any(count)]
        tx.run_many(SQL.put_count, [(*key, *count) for key, count in changed])
        tx.run_many(SQL.drop_empty_count, [key for key, count in changed if min(count) < 0])


# -- with the blocks ---------------------------------------------------------------------------------------------------


def count_batch(tx: Transaction, blocks: Sequence[PackedBlock]) -> None:
    """Count the messages of consecutive blocks, whose rows are written. Costs nothing where there are none."""
    events = [event for block in blocks if TABLE in block.tables for event in _events(block)]
    if not events:
        return
    firsts, changes = _firsts(tx, events), _Changes()
    for event in events:
        if firsts[event.kind, event.message_id].log_at == event.log_at:
            changes.add(event.kind, event.peer, event.time, 1, 0)
    _add_txs(changes, events, 1)
    changes.write(tx)


def roll_back_counts(tx: Transaction, ancestor: int) -> None:
    """Take back the counts of blocks above `ancestor`, before their rows are deleted."""
    events = [CountedEvent(*row) for row in tx.rows(SQL.events_above, {"from_log": above(ancestor)})]
    firsts, changes = _firsts(tx, events), _Changes()
    for event in events:
        if firsts[event.kind, event.message_id].log_at == event.log_at:
            changes.add(event.kind, event.peer, event.time, -1, 0)
    _add_txs(changes, events, -1)
    changes.write(tx)
    missing = missing_below(tx)
    if missing is not None and missing > ancestor + 1:
        tx.run(SQL.put_missing_below, {"value": str(ancestor + 1)})


def _events(block: PackedBlock) -> Iterable[CountedEvent]:
    log_at, tx_index, kind, message_id, _, peer, *_ = columns_of(block.tables[TABLE])
    for row in zip(log_at, tx_index, kind, message_id, peer, strict=True):
        if row[2] in _COUNTED:
            yield CountedEvent(*row, block.block.time)


def _firsts(tx: Transaction, events: Iterable[CountedEvent]) -> dict[tuple[int, bytes], _First]:
    keys = dict.fromkeys((event.kind, event.message_id) for event in events)
    rows = tx.rows_of_each(SQL.first_of, list(keys))
    return {(kind, message_id): _First(*first) for kind, message_id, *first in rows}


def _add_txs(changes: _Changes, events: Iterable[CountedEvent], by: int) -> None:
    """Count transactions, each once for a kind. All events of a block come together."""
    seen: set[tuple[int, int, int]] = set()
    for event in events:
        place = block_of(event.log_at), event.tx_index, event.kind
        if place not in seen:
            seen.add(place)
            changes.add(event.kind, event.peer, event.time, 0, by)


# -- of older blocks ---------------------------------------------------------------------------------------------------


def missing_below(tx: Transaction) -> int | None:
    """The block below which events are missing; None: nowhere."""
    rows = tx.rows(SQL.missing_below)
    return int(rows[0][0]) if rows else None


def prepare_messages(tx: Transaction, messengers: Sequence[bytes]) -> None:
    """Note the messengers of a chain before its next block is stored. If they are others than before, or none were
    known, what is stored is deleted, and that of the stored blocks is to be filled in."""
    named = ",".join(sorted(one.hex() for one in messengers))
    rows = tx.rows(SQL.messengers)
    if rows and rows[0][0] == named:
        return
    for statement in (SQL.drop_events, SQL.drop_counts, SQL.drop_messages, SQL.drop_missing_below):
        tx.run(statement)
    tip = tx.rows(SQL.bounds)[0][1]
    if tip is not None and messengers:
        tx.run(SQL.put_missing_below, {"value": str(tip + 1)})
    tx.run(SQL.put_messengers, {"value": named})


def fill_messages(tx: Transaction, first: int, end: int, rows: Sequence[Row]) -> bool:
    """Store the events of the blocks from `first` to before `end`, rows as in the table in their order. Return
    whether they were: not if the stored blocks have changed meanwhile."""
    if missing_below(tx) != end:
        return False
    numbers = sorted({row[0] >> BITS for row in rows})
    times: dict[int, int] = dict(tx.rows_of_each(SQL.block_times, [(number,) for number in numbers]))
    events = [CountedEvent(row[0], row[1], row[2], row[3], row[5], times[row[0] >> BITS]) for row in rows]
    counted = [event for event in events if event.kind in _COUNTED]
    before, changes = _firsts(tx, counted), _Changes()
    tx.run_many(INSERTS[TABLE], rows)
    for event in counted:
        key = event.kind, event.message_id
        known = before.get(key)
        if known is not None and known.log_at < event.log_at:
            continue
        if known is not None:  # it was sent again later
            changes.add(event.kind, known.peer, known.time, -1, 0)
        changes.add(event.kind, event.peer, event.time, 1, 0)
        before[key] = _First(event.log_at, event.peer, event.time)
    _add_txs(changes, counted, 1)
    changes.write(tx)
    tx.run_many(SQL.put_message, [_message_row(event) for event in counted])
    lowest = tx.rows(SQL.bounds)[0][0]
    if first <= lowest:
        tx.run(SQL.drop_missing_below)
    else:
        tx.run(SQL.put_missing_below, {"value": str(first)})
    return True


def _message_row(event: CountedEvent) -> tuple[Any, ...]:
    at = position_of(block_of(event.log_at), event.tx_index)
    return at, event.message_id, event.peer, int(event.kind == SENT)
