"""Stores raw logs and calls, for chains whose settings ask for it.

They are written with their block, and for blocks that were stored before in the background, from the newest down. The
mark of a kind says from which block on all have theirs: it changes in the transaction that changes the rows, so a
reader never misses what it promises, and filling goes on where a killed process stopped.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from icefall.db.engine import Row, StatementParams, Transaction
from icefall.db.statements import load
from icefall.evm.encoding import BITS, BLOCK_MAX, above, position_of
from icefall.evm.model import RawBlock, RawKinds, RawRows
from icefall.evm.packed import PackedBlock

SQL = load("icefall.evm.storing", "raw.sql")
DROPPED_AT_ONCE = 5_000  # rows
_END = position_of(BLOCK_MAX, 0)


class Read(Protocol):
    """Of a store, or of an open transaction."""

    def __call__(self, statement: str, params: StatementParams = (), /) -> list[Row]: ...


class _Kind(NamedTuple):
    """`name`: of the field in RawKinds and RawRows."""

    name: str
    mark: str
    drop: str
    drop_some: str


KINDS = (
    _Kind("logs", "logs_from", SQL.drop_logs, SQL.drop_some_logs),
    _Kind("calls", "calls_from", SQL.drop_calls, SQL.drop_some_calls),
)


class Gap(NamedTuple):
    """Blocks from `first` up to, but not including, `end`: the newest ones without their logs or calls."""

    first: int
    end: int
    kinds: RawKinds


# -- with the block ----------------------------------------------------------------------------------------------------


def put_raw(tx: Transaction, blocks: Sequence[PackedBlock]) -> None:
    """Of consecutive blocks that were stored in this transaction. Costs nothing where nothing is to be stored."""
    for kind in KINDS:
        if not any(getattr(block.raw.wanted, kind.name) for block in blocks):
            continue
        mark = before = _mark(tx.rows, kind.mark)
        for block in blocks:
            if getattr(block.raw, kind.name) is None:
                mark = None  # a chain without a tracer: readers ask the upstream
            elif mark is None:
                mark = block.block.number
        if mark != before:
            _put_mark(tx, kind.mark, mark)
    _put_rows(tx, [(block.block.number, block.raw) for block in blocks])


def roll_back_raw(tx: Transaction, ancestor: int) -> None:
    for kind in KINDS:
        tx.run(kind.drop, {"low": above(ancestor), "high": _END})
        mark = _mark(tx.rows, kind.mark)
        if mark is not None and mark > ancestor + 1:
            _put_mark(tx, kind.mark, ancestor + 1)


# -- in the background -------------------------------------------------------------------------------------------------


def newest_gap(read: Read, kinds: RawKinds, blocks_max: int) -> Gap | None:
    """What is to be filled next; None: every block has what `kinds` asks for. Kinds that lack the same blocks are
    filled together."""
    lowest, highest = read(SQL.bounds)[0]
    if lowest is None:
        return None
    ends = {}
    for kind in KINDS:
        if getattr(kinds, kind.name):
            mark = _mark(read, kind.mark)
            ends[kind.name] = highest + 1 if mark is None else mark
    end = max(ends.values(), default=lowest)
    if end <= lowest:
        return None
    first = max(lowest, end - blocks_max, *(other for other in ends.values() if other < end))
    return Gap(first, end, RawKinds(**{name: True for name, its_end in ends.items() if its_end == end}))


def fill(tx: Transaction, gap: Gap, blocks: Sequence[RawBlock]) -> bool:
    """Whether they were stored: not if the stored blocks have changed meanwhile."""
    if newest_gap(tx.rows, gap.kinds, gap.end - gap.first) != gap:
        return False
    if tx.rows(SQL.hashes, {"first": gap.first, "end": gap.end}) != [(one.number, one.block_hash) for one in blocks]:
        return False
    for kind in KINDS:
        if getattr(gap.kinds, kind.name):  # rows may be left from a time when the setting was on before
            tx.run(kind.drop, {"low": position_of(gap.first, 0), "high": position_of(gap.end, 0)})
            _put_mark(tx, kind.mark, gap.first)
    _put_rows(tx, [(one.number, one.rows) for one in blocks])
    return True


def has_unwanted_marks(read: Read, kinds: RawKinds) -> bool:
    return any(not getattr(kinds, kind.name) and _mark(read, kind.mark) is not None for kind in KINDS)


def drop_marks(tx: Transaction, kinds: RawKinds) -> None:
    """Of what is not to be stored: from the next block on it is missing. Before any block is stored."""
    for kind in KINDS:
        if not getattr(kinds, kind.name):
            tx.run(SQL.drop_mark, {"name": kind.mark})


def drop_some(tx: Transaction, kinds: RawKinds) -> bool:
    """Deletes rows of what is not to be stored. Whether there were any."""
    unwanted = [kind for kind in KINDS if not getattr(kinds, kind.name)]
    return any(tx.run(kind.drop_some, {"limit": DROPPED_AT_ONCE}) for kind in unwanted)


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
