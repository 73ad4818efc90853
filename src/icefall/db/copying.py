"""Copies the rows of a store into an empty one, on any engine, and compares the two by digests.

Rows go in the order of their keys, a page per transaction. So a copy that was interrupted goes on behind the last row
that its target has. Where a server has fewer tables than a file, and views for the others, `copied.sql` of the package
says how the rows of those that have more columns there, or are only there, are put together, and in which order such a
view is read: that of the key, with a column in it that the server has an index of.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.resources import files
from typing import NamedTuple

from icefall.db.engine import BlockingReader, Row, Store
from icefall.db.migrate import load_schema
from icefall.db.schema_file import Declared, declarations
from icefall.db.statements import load

SQL = load("icefall.db", "sqlite.sql")
TEXTS = load("icefall.db", "copying.sql")
PAGE_ROWS = 5_000
Progress = Callable[[str, int], None]  # table, and how many of its rows were copied


class StoredTable(NamedTuple):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    source: str = ""  # a query for its rows, where they are not those of a table with the same name
    walked: tuple[
        str, ...
    ] = ()  # the columns that give a server the order of the key, where it has the table as a view

    def filled(self, text: str) -> str:
        """A statement for any table, with the names of this one in its braces."""
        return text.format(
            table=self.name,
            source=self.source or self.name,
            columns=", ".join(self.columns),
            marks=", ".join("?" for _ in self.columns),
            key=", ".join(self.key),
            key_marks=", ".join("?" for _ in self.key),
            order=", ".join(self.walked or self.key),
            key_descending=", ".join(f"{column} desc" for column in self.key),
            page=PAGE_ROWS,
        )

    def read_by(self, *, is_embedded: bool) -> "StoredTable":
        """Return the table as a store reads it: a server with the columns of its order, behind the others."""
        if is_embedded:
            return self._replace(walked=())
        return self._replace(columns=tuple(dict.fromkeys((*self.columns, *self.walked))))


class RowsDiffer(Exception):
    """The copy of a table is not what it was made from."""


def tables_of(package: str) -> list[StoredTable]:
    """The tables of a package's stores: the same on every engine, so those that SQLite creates in memory."""
    walked = _walked(package)
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(load_schema(package, "sqlite").creation.script)
        tables = [_table(made, name) for (name,) in made.execute(SQL.tables).fetchall()]
    return [table._replace(walked=walked.get(table.name, ())) for table in tables]


def _walked(package: str) -> dict[str, tuple[str, ...]]:
    """The order in which a server reads the rows of a view, by the view's name."""
    if not files(package).joinpath("copied.sql").is_file():
        return {}
    texts = load(package, "copied.sql")
    prefix = "walk_of_"
    orders = {name.removeprefix(prefix): texts.named(name) for name in texts.names() if name.startswith(prefix)}
    return {name: tuple(text.rpartition(" order by ")[2].split(", ")) for name, text in orders.items()}


def tables_on_server(package: str) -> list[StoredTable]:
    """The tables of a package's stores on a server, without those that are views there."""
    on_file = {table.name: table for table in tables_of(package)}
    script = files(package).joinpath("schema.postgres.sql").read_text("utf-8")
    return [_on_server(package, one, on_file.get(one.name)) for one in declarations(script) if one.kind == "table"]


def _on_server(package: str, declared: Declared, on_file: StoredTable | None) -> StoredTable:
    columns = tuple(column.name for column in declared.columns())
    if on_file is not None and columns == on_file.columns:
        return on_file
    rows, _, key = load(package, "copied.sql").named(declared.name).rpartition(" order by ")
    return StoredTable(declared.name, columns, tuple(key.split(", ")), f"({rows}) as {declared.name}_rows")


def _table(made: sqlite3.Connection, name: str) -> StoredTable:
    columns = made.execute(SQL.columns, (name,)).fetchall()
    key = [column for column, place in sorted(columns, key=lambda row: int(row[1])) if place]
    key = key or [column for (column,) in made.execute(SQL.unique_columns, (name,))]
    return StoredTable(name, tuple(column for column, _ in columns), tuple(key))


def copy_table(source: BlockingReader, target: Store, table: StoredTable, progress: Progress) -> None:
    """Copy a table of the target. What it is called in the source, its `source` says."""
    last = target.read(table.filled(TEXTS.last_key))
    done = int(target.read(table.filled(TEXTS.count))[0][0])
    put = table.filled(TEXTS.put)
    for page in _pages(source, table, last[0] if last else None):
        target.write_here(lambda tx, rows=page: tx.run_many(put, rows))  # type: ignore[misc]
        done += len(page)
        progress(table.name, done)


def compare_table(source: BlockingReader, target: BlockingReader, table: StoredTable) -> int:
    """The number of rows, if all of them are the same. RowsDiffer if not."""
    (count, expected), (copied, found) = table_digest(source, table), table_digest(target, table)
    if (count, expected) != (copied, found):
        raise RowsDiffer(f"{table.name}: {count} rows with digest {expected}, and in the copy {copied} with {found}")
    return count


def table_digest(store: BlockingReader, table: StoredTable) -> tuple[int, str]:
    """How many rows there are, and a digest of them that does not depend on the engine."""
    total, count = hashlib.sha256(), 0
    for page in _pages(store, table, None):
        count += len(page)
        for row in page:
            total.update(repr(row).encode())
    return count, total.hexdigest()[:16]


def _pages(store: BlockingReader, table: StoredTable, after: Row | None) -> Iterator[list[Row]]:
    """All rows behind a key, in the order of the keys."""
    behind = table.read_by(is_embedded=store.is_embedded)
    order = behind.walked or behind.key
    at, count = [behind.columns.index(column) for column in order], len(table.columns)
    while True:
        page = store.read(behind.filled(TEXTS.first_rows if after is None else TEXTS.rows_behind), after or ())
        if page:
            yield [row[:count] for row in page] if len(behind.columns) > count else page
        if len(page) < PAGE_ROWS:
            return
        after, behind = tuple(page[-1][index] for index in at), behind._replace(key=order)
