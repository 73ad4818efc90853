"""Stores raw logs and calls, for chains whose settings ask for it.

They are written with their block, and for blocks that were stored before in the background, from the newest down. The
mark of a table says from which block on all have theirs: it changes in the transaction that changes the rows, so a
reader never misses what it promises, and filling goes on where a killed process stopped.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from icefall.db.engine import Row, StatementParams, Transaction
from icefall.db.statements import load
from icefall.evm.encoding import BITS, BLOCK_MAX, above, position_of
from icefall.evm.model import RawBlock, RawRows, StoredRaw
from icefall.evm.packed import PackedBlock

SQL = load("icefall.evm.storing", "raw.sql")
DROPPED_AT_ONCE = 5_000  # rows
_END = position_of(BLOCK_MAX, 0)


class Read(Protocol):
    """The reading function of a store, or of an open transaction."""

    def __call__(self, statement: str, params: StatementParams = (), /) -> list[Row]: ...


class _RawTable(NamedTuple):
    """A table of raw data, and the mark of how far it goes."""

    name: str  # of the field in StoredRaw and RawRows
    mark: str
    drop: str
    drop_some: str


TABLES = (
    _RawTable("logs", "logs_from", SQL.drop_logs, SQL.drop_some_logs),
    _RawTable("calls", "calls_from", SQL.drop_calls, SQL.drop_some_calls),
)


class Gap(NamedTuple):
    """The newest blocks without their logs or calls: from `first` up to, but not including, `end`."""

    first: int
    end: int
    kinds: StoredRaw


# -- with the block ----------------------------------------------------------------------------------------------------


def put_raw(tx: Transaction, blocks: Sequence[PackedBlock]) -> None:
    """Store the raw data of consecutive blocks, in the transaction that stores these. Costs nothing where there is
    none."""
    for table in TABLES:
        if not any(getattr(block.raw.wanted, table.name) for block in blocks):
            continue
        mark = before = _mark(tx.rows, table.mark)
        for block in blocks:
            if getattr(block.raw, table.name) is None:
                mark = None  # a chain without a tracer: readers ask the upstream
            elif mark is None:
                mark = block.block.number
        if mark != before:
            _put_mark(tx, table.mark, mark)
    _put_rows(tx, [(block.block.number, block.raw) for block in blocks])


def roll_back_raw(tx: Transaction, ancestor: int) -> None:
    for table in TABLES:
        tx.run(table.drop, {"low": above(ancestor), "high": _END})
        mark = _mark(tx.rows, table.mark)
        if mark is not None and mark > ancestor + 1:
            _put_mark(tx, table.mark, ancestor + 1)


# -- in the background -------------------------------------------------------------------------------------------------


def newest_gap(read: Read, kinds: StoredRaw, blocks_max: int) -> Gap | None:
    """The blocks to be filled next; None: every block has what `kinds` asks for. Logs and calls that the same blocks
    lack are filled together."""
    lowest, highest = read(SQL.bounds)[0]
    if lowest is None:
        return None
    ends = {}
    for table in TABLES:
        if getattr(kinds, table.name):
            mark = _mark(read, table.mark)
            ends[table.name] = highest + 1 if mark is None else mark
    end = max(ends.values(), default=lowest)
    if end <= lowest:
        return None
    first = max(lowest, end - blocks_max, *(other for other in ends.values() if other < end))
    return Gap(first, end, StoredRaw(**{name: True for name, its_end in ends.items() if its_end == end}))


def fill(tx: Transaction, gap: Gap, blocks: Sequence[RawBlock]) -> bool:
    """Store what was fetched for a gap. Return whether it was: not if the stored blocks have changed meanwhile."""
    if newest_gap(tx.rows, gap.kinds, gap.end - gap.first) != gap:
        return False
    if tx.rows(SQL.hashes, {"first": gap.first, "end": gap.end}) != [(one.number, one.block_hash) for one in blocks]:
        return False
    for table in TABLES:
        if getattr(gap.kinds, table.name):  # rows may be left from a time when the setting was on before
            tx.run(table.drop, {"low": position_of(gap.first, 0), "high": position_of(gap.end, 0)})
            _put_mark(tx, table.mark, gap.first)
    _put_rows(tx, [(one.number, one.rows) for one in blocks])
    return True


def has_unwanted_marks(read: Read, kinds: StoredRaw) -> bool:
    return any(not getattr(kinds, table.name) and _mark(read, table.mark) is not None for table in TABLES)


def drop_marks(tx: Transaction, kinds: StoredRaw) -> None:
    """Drop the marks of what is not to be stored, before any block is: from the next block on it is missing."""
    for table in TABLES:
        if not getattr(kinds, table.name):
            tx.run(SQL.drop_mark, {"name": table.mark})


def drop_some(tx: Transaction, kinds: StoredRaw) -> bool:
    """Delete some rows of what is not to be stored. Return whether there were any."""
    unwanted = [table for table in TABLES if not getattr(kinds, table.name)]
    return any(tx.run(table.drop_some, {"limit": DROPPED_AT_ONCE}) for table in unwanted)


def _put_rows(tx: Transaction, blocks: Sequence[tuple[int, RawRows]]) -> None:
    logs = [(number << BITS | index, *row) for number, rows in blocks for index, *row in rows.logs or ()]
    calls = [(number << BITS | at, packed) for number, rows in blocks for at, packed in enumerate(rows.calls or ())]
    if logs:
        tx.run_many(SQL.put_log, logs)
    if calls:
        tx.run_many(SQL.put_calls, calls)


def _mark(read: Read, name: str) -> int | None:
    rows = read(SQL.mark, {"name": name})
    return int(rows[0][0]) if rows else None


def _put_mark(tx: Transaction, name: str, block: int | None) -> None:
    if block is None:
        tx.run(SQL.drop_mark, {"name": name})
    else:
        tx.run(SQL.put_mark, {"name": name, "value": str(block)})
