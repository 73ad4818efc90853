"""Tables that can be exported, and the chain that they are of.

Hashes, addresses of EVM chains and data are 0x and lower-case hex. Amounts are decimal text: they exceed every number
type of CSV readers, and DuckDB and others cast them where a question needs it. Times are Unix seconds here; a format
writes them.
"""

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from icefall.db.engine import Row

ROWS_WANTED = 10_000  # of a piece that is read at once
_STEP_MAX = 100_000  # keys of a piece


class Kept(enum.Enum):
    """The order in which the store holds a table: it decides how the table is divided into files."""

    BY_BLOCK = "in the order of the chain: a file for each range of blocks"
    WHOLE = "in another order: one file, written anew by each export"


class ExportColumn(NamedTuple):
    """A column of a file. `type`: uint32, uint64, uint256 (decimal text), time, hex, text or bool."""

    name: str
    type: str


class Table(NamedTuple):
    """A table that can be exported. `values` makes the columns of a row that its statement has read."""

    name: str
    summary: str
    columns: tuple[ExportColumn, ...]
    statement: str
    values: Callable[[Row], tuple[Any, ...]]
    kept: Kept = Kept.BY_BLOCK
    needs: str = ""  # the meta value with the block from which on rows are stored; empty: from the first one
    missing_below: str = ""  # the meta value with the block below which rows are still filled in, while they are


class ExportedChain(Protocol):
    """A chain whose tables are exported. `name` is that of its folder, and begins the names of files."""

    @property
    def name(self) -> str: ...

    @property
    def tables(self) -> Sequence[Table]: ...

    def span(self) -> tuple[int, int] | None:
        """The first and the last block that are stored; None if there is no block yet."""
        ...

    def stored_from(self, table: Table) -> int | None:
        """The first block that has rows of a table; None if the table is not stored."""
        ...

    def block_hash(self, number: int) -> str:
        """The hash or ID of a block as text; empty if there is no such block."""
        ...

    def block_time(self, number: int) -> int: ...

    def first_block_since(self, after: int, last: int, time: int) -> int | None:
        """The first block behind `after`, up to `last`, that is not earlier than `time`."""
        ...

    def history(self) -> str:
        """A text that is another one after stored blocks were replaced."""
        ...

    def pieces(self, table: Table, first: int, last: int) -> Iterator[list[Row]]:
        """The rows of a table in these blocks, or as they were after the last of them, a piece at a time."""
        ...


def columns(text: str) -> tuple[ExportColumn, ...]:
    """Columns that are written as name:type, with spaces between them."""
    return tuple(ExportColumn(*one.split(":")) for one in text.split())


def hex_text(value: bytes | None) -> str | None:
    return None if value is None else f"0x{value.hex()}"


def by_steps(read: Callable[[int, int], list[Row]], first: int, end: int) -> Iterator[list[Row]]:
    """Read the keys from `first` up to, but not including, `end` in pieces of about `ROWS_WANTED` rows: the step
    follows from how many there were."""
    at, step = first, 100
    while at < end:
        to = min(at + step, end)
        rows = read(at, to)
        yield rows
        at = to
        if len(rows) * 2 < ROWS_WANTED:
            step = min(step * 2, _STEP_MAX)
        elif len(rows) > ROWS_WANTED:
            step = max(step // 2, 1)
