"""`icefall copy SOURCE TARGET`: every store of an installation, from files to a server or back.

Each store is copied beside its place, compared row by row through digests, and then takes its place: readers never see
half of one. What was copied before an interruption is not copied again.
"""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from icefall.compose.stores import StoreName, Stores
from icefall.config.settings import Config
from icefall.db.copying import RowsDiffer, compare_table, copy_table, tables_of, tables_on_server
from icefall.db.engine import StoreError
from icefall.errors import StartRefused

_SHOWN_EVERY = 100_000  # rows

WriteLine = Callable[[str], object]


def run_copy(config: Config, source: str, target: str, write_line: WriteLine) -> int:
    """Both are data directories or URLs of PostgreSQL; there, schemas begin with --store-prefix."""
    with ExitStack() as opened:
        ends = []
        for text in (source, target):
            is_url = text.startswith(("postgresql://", "postgres://"))
            stores = Stores(Path() if is_url else Path(text), text if is_url else "", config.store_prefix)
            opened.callback(stores.close)
            ends.append(stores)
        try:
            return _copy_all(ends[0], ends[1], write_line)
        except (StoreError, RowsDiffer) as error:
            raise StartRefused(str(error)) from error


def _copy_all(source: Stores, target: Stores, write_line: WriteLine) -> int:
    names = source.names()
    if not names:
        raise StartRefused("there is nothing to copy: the source holds no store")
    there = target.names()
    for name in names:
        with closing(source.open(name)) as original:
            copy = closing(target.open(name) if name in there else target.open_unfinished(name))
            with copy as store:
                rows = 0
                if name not in there:
                    for table in (tables_of if store.is_embedded else tables_on_server)(name.package):
                        copy_table(original, store, table, _Progress(name, write_line))
                for table in tables_of(name.package):
                    rows += compare_table(original, store, table)
        if name not in there:
            target.finish(name)
        write_line(f"{name.shown}: {rows} rows, the same in both{' already' if name in there else ''}")
    return 0


class _Progress:
    """Shows every so many rows of a table."""

    def __init__(self, name: StoreName, write_line: WriteLine) -> None:
        self._name = name
        self._write_line = write_line
        self._shown: dict[str, int] = {}

    def __call__(self, table: str, rows: int) -> None:
        if rows // _SHOWN_EVERY != self._shown.get(table, 0):
            self._shown[table] = rows // _SHOWN_EVERY
            self._write_line(f"{self._name.shown}: {rows} rows of {table}")


def run_migrate(config: Config, stores: Stores, write_line: WriteLine) -> int:
    """`icefall migrate`: creates what is missing and brings everything to the schema of this program."""
    try:
        stores.access_writer().ensure()
        names = {StoreName("node"), *(StoreName("chain", chain.id) for chain in config.chain)}
        for name in sorted(names | {name for name in stores.names() if name.role != "access"}):
            stores.open(name).close()
            write_line(f"{name.shown}: migrated")
    except StoreError as error:
        raise StartRefused(str(error)) from error
    return 0
