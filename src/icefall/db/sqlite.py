"""The embedded engine: SQLite in WAL mode, one writer, readers that answer without a thread hop.

Every query is read to its end (an open statement would pin its snapshot and answer stale data for ever) and stopped
at a time limit.

The statement of a list hands its rows over itself, to a function that it calls for each of them. Python's module gives
up the interpreter's lock and takes it back for each value that it fetches, but only once for such a call: eleven rows
of eight columns take two thirds of the instructions, and one row takes no more.
"""

import asyncio
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from icefall.db.changes import ChangeCount
from icefall.db.engine import Row, StatementParams, StoreBusy, StoreCorrupt, StoreError, Transaction
from icefall.db.migrate import Schema, load_schema
from icefall.db.statements import load
from icefall.db.wal import APPLICATION_ID, SETTINGS, WRITING_ID, MarkedWal, lost_its_wal, schema_in_file
from icefall.db.wal_header import WalHeader

SQL = load("icefall.db", "sqlite_lists.sql")
T = TypeVar("T")

QUERY_LIMIT_S = 5.0
PAGE_CACHE_MB = 64  # of a writer
BUSY_LIMIT_MS = 5000
_STEPS_BETWEEN_CHECKS = 20_000  # about a millisecond of work
_ROWS_TOGETHER = 64  # inserted by one statement
_GENERATIONS = count(1)
_MAPPED_MAX = 0x7FFF0000  # bytes of a file that are read from the system's cache without a call; SQLite's limit
_WRITER_MAPPED_MAX = 256 << 20
_UNMAPPED_CACHE_KB = 32 << 10  # of a reader that maps nothing
_ONE_ROW = re.compile(r"(\s*insert\s+into \w+ \([^)]*\)\s*values\s*)\(([^)]*)\)((?:\s+on conflict.*)?)", re.DOTALL)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# A list: its rows are in order before they are limited, so that a query which reads from it has them in this order too.
_LIST = re.compile(r"\s*(?:select|with)\b.*\blimit :(?!.*\border by\b).*", re.DOTALL)
_WRONG_STATEMENT = (sqlite3.IntegrityError, sqlite3.ProgrammingError)  # a bug of ours, not a failure of the store

sqlite3.register_adapter(list, lambda values: msgspec.json.encode(values).decode())  # a list is one of json_each
# These are what they are. Without an adapter, the module looks for a way to adapt each of them: a tenth of an insert.
sqlite3.register_adapter(bytes, bytes.__bytes__)
sqlite3.register_adapter(type(None), {None: None}.get)


def _connect(path: Path, *, writable: bool) -> sqlite3.Connection:
    if lost_its_wal(path):
        raise StoreCorrupt(
            f"{path} was copied while a program wrote it, without its -wal file, and is not whole: restore a copy made "
            "by `icefall backup`, or move it away to begin with an empty one"
        )
    mode = "rwc" if writable else "ro"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute(f"pragma busy_timeout = {BUSY_LIMIT_MS}")
    connection.execute(f"pragma mmap_size = {_WRITER_MAPPED_MAX if writable else _MAPPED_MAX}")
    return connection


class SqliteReader:
    """Answers on the calling thread: a seek costs less than a thread hop would. `mapped`: the file is mapped into the
    memory of the process, which costs no room of its own but counts as such. What reads a whole store does without."""

    is_embedded = True
    joins_are_slow = False

    def __init__(self, path: Path, query_limit_s: float = QUERY_LIMIT_S, *, mapped: bool = True) -> None:
        try:
            self._connection = _connect(path, writable=False)
            self._connection.execute("pragma query_only = on")
            if not mapped:
                self._connection.execute("pragma mmap_size = 0")
                self._connection.execute(f"pragma cache_size = -{_UNMAPPED_CACHE_KB}")
        except sqlite3.Error as error:
            raise _unusable(error, path, "opened") from error
        self.generation = next(_GENERATIONS)
        self._first_version = self.generation << 40  # the pragma counts from 1 for each connection
        self._path = path
        self._header: WalHeader | None = None
        self._seen: bytes | None = None  # the header from before the last query for the version
        self._version = 0
        self._limit_s = query_limit_s
        self._deadline = 0.0
        self._connection.set_progress_handler(self._late, _STEPS_BETWEEN_CHECKS)
        self._forms: dict[str, str] = {}  # of statements, as they are executed
        self._handed = handed = list[Row]()
        self._connection.create_function("hand_over", -1, lambda *row: handed.append(row))

    def _late(self) -> bool:
        return time.monotonic() > self._deadline

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        return self.read(statement, params)

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        return [row for key in keys for row in self.read(statement, key)]

    def version(self) -> int | None:
        header = self._header.read() if self._header is not None else None
        if header is None or header != self._seen:
            self._version, self._seen = self._ask_version(), header
        return self._version

    def _ask_version(self) -> int:
        self._deadline = time.monotonic() + self._limit_s  # steps of many statements are counted together
        try:
            seen: int = self._connection.execute("pragma data_version").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise _translated(error, self._path) from error
        if self._header is None:
            self._header = WalHeader(self._path)
        return self._first_version + seen

    async def current_version(self) -> int | None:
        return self.version()

    async def schema_number(self) -> int:
        return int(self.read("pragma user_version")[0][0])

    def read(self, statement: str, params: StatementParams = ()) -> list[Row]:
        self._deadline = time.monotonic() + self._limit_s
        try:
            form = self._forms.get(statement) or self._form(statement, params)
            rows: list[Row] = self._connection.execute(form, params).fetchall()
            return rows if form == statement else self._handed.copy()
        except _WRONG_STATEMENT:
            raise
        except sqlite3.DatabaseError as error:
            raise _translated(error, self._path) from error
        finally:
            self._handed.clear()

    def _form(self, statement: str, params: StatementParams) -> str:
        """Return a list in the form in which it hands its rows over, and any other statement as it is."""
        form = statement
        if _LIST.fullmatch(statement):
            columns = self._connection.execute(SQL.no_rows.format(list=statement), params).description
            names = ", ".join(f"c{number}" for number in range(len(columns)))
            form = SQL.handing.format(list=statement, names=names)
        self._forms[statement] = form
        return form

    def read_each(self, statement: str, params: Sequence[Mapping[str, Any]]) -> list[list[Row]]:
        return [self.read(statement, one) for one in params]

    def close(self) -> None:
        if self._header is not None:
            self._header.close()
        self._connection.close()


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        return self._connection.execute(statement, params).fetchall()

    def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        execute = self._connection.cursor().execute  # one cursor: making one costs as much as a seek
        return [row for key in keys for row in execute(statement, key)]

    def run(self, statement: str, params: StatementParams = ()) -> int:
        return self._connection.execute(statement, params).rowcount

    def run_many(self, statement: str, params: Sequence[StatementParams]) -> None:
        together = _insert_of_many(statement) if len(params) >= _ROWS_TOGETHER else None
        whole = 0
        if together is not None:  # a third less per row: each run of a statement has its own cost
            whole = len(params) - len(params) % _ROWS_TOGETHER
            values = chain.from_iterable(islice(params, whole))
            step = _ROWS_TOGETHER * len(params[0])
            self._connection.executemany(together, iter(lambda: tuple(islice(values, step)), ()))
        self._connection.executemany(statement, params[whole:] if whole else params)


@lru_cache(maxsize=256)
def _insert_of_many(statement: str) -> str | None:
    """An insert of one row, for so many at once; None for any other statement. Where keys of rows conflict, SQLite does
    the same as one by one: it inserts them in turn."""
    found = _ONE_ROW.fullmatch(statement)
    if found is None or {value.strip() for value in found[2].split(",")} != {"?"}:
        return None
    return found[1] + ", ".join([f"({found[2]})"] * _ROWS_TOGETHER) + found[3]


class SqliteStore(SqliteReader):
    """The store of the process that writes: migrated when opened, one transaction at a time."""

    is_only_writer = False  # others may write the same store

    def __init__(
        self,
        path: Path,
        package: str,
        query_limit_s: float = QUERY_LIMIT_S,
        changes: Path | None = None,
        page_cache_mb: int = PAGE_CACHE_MB,
    ) -> None:
        """`changes`: the page that tells readers of commits."""
        self._changes: ChangeCount | None = None
        schema = load_schema(package, "sqlite")
        schema.pending(schema_in_file(path), str(path))  # a store that is refused is not even opened to write
        try:
            self._writer = _connect(path, writable=True)
        except sqlite3.Error as error:
            raise _unusable(error, path, "opened") from error
        self._wal = MarkedWal(path, self._writer)
        try:
            self._writer.execute(f"pragma cache_size = {-1024 * page_cache_mb}")
            self._prepare(path, schema)
            super().__init__(path, query_limit_s)
            self._changes = ChangeCount(changes) if changes else None
        except sqlite3.Error as error:
            self._wal.close_writer(is_only_writer=False)
            raise _unusable(error, path, "used") from error
        except BaseException:
            self._wal.close_writer(is_only_writer=False)
            raise
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")
        self._one_at_a_time = threading.Lock()
        self._one_in_steps = asyncio.Lock()

    def _prepare(self, path: Path, schema: Schema) -> None:
        at = int(self._writer.execute("pragma user_version").fetchone()[0])
        owner = int(self._writer.execute("pragma application_id").fetchone()[0])
        is_new = self._writer.execute("pragma schema_version").fetchone()[0] == 0  # nothing was ever created here
        if owner not in (APPLICATION_ID, WRITING_ID) and (owner or not is_new):
            raise StoreError(f"{path} is not an Icefall store: use another --data-dir")
        missing = schema.pending(at, str(path))
        if is_new:
            self._writer.execute("pragma page_size = 8192")
        mode = self._writer.execute("pragma journal_mode = wal").fetchone()[0]
        if mode != "wal":
            raise StoreError(f"{path} is on a file system without shared memory: use a --data-dir on a local disk")
        # NORMAL in WAL mode survives kill -9; only a power cut may lose the last commits, never consistency.
        self._writer.execute("pragma synchronous = normal")
        self._writer.execute("pragma secure_delete = off")  # on in some builds; nothing here is secret
        self._writer.execute("pragma foreign_keys = on")
        for setting in SETTINGS:
            self._writer.execute(setting)
        for migration in missing:
            with self._transaction() as tx:
                for statement in migration.statements():  # `executescript` would commit the open transaction
                    tx.run(statement)
                tx.run(f"pragma user_version = {migration.number}")
                tx.run(f"pragma application_id = {APPLICATION_ID}")
            self._wal.merge_if_long()

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        self._writer.execute("begin immediate")
        try:
            yield _SqliteTransaction(self._writer)
            self._commit()
        except BaseException:
            if self._writer.in_transaction:  # a full disk ends it, or fails the commit and leaves it open
                self._writer.execute("rollback")
            raise

    def _commit(self) -> None:
        if self._changes is None:
            self._writer.execute("commit")
            return
        self._changes.begin()
        try:
            self._writer.execute("commit")
        finally:
            self._changes.end()

    async def write(self, change: Callable[[Transaction], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.write_here, change)

    async def write_in_steps(self, change: Callable[[Transaction], Iterator[None]]) -> None:
        """Write on the thread of the event loop: SQLite releases the interpreter at every statement, and another thread
        would wait for it each time."""
        async with self._one_in_steps:  # a task that waited for the other lock would hold up the one that has it
            with self._committed() as tx:
                for _ in change(tx):
                    await asyncio.sleep(0)

    def write_here(self, change: Callable[[Transaction], T]) -> T:
        with self._committed() as tx:
            return change(tx)

    @contextmanager
    def _committed(self) -> Iterator[Transaction]:
        try:
            with self._one_at_a_time:
                with self._transaction() as tx:
                    yield tx
                self._wal.after_commit()
        except _WRONG_STATEMENT:
            raise
        except sqlite3.DatabaseError as error:
            raise _translated(error, self._path) from error

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        super().close()
        self._wal.close_writer(is_only_writer=self.is_only_writer)


def file_size(path: Path) -> int:
    """Return the size, with what is committed and not in the file itself yet."""
    return sum(one.stat().st_size for one in (path, Path(f"{path}-wal")) if one.exists())


def copy_store(source: Path, target: Path, change: str = "", params: StatementParams = ()) -> int:
    """Copy a store as it is at one moment, also while another process writes it, and return the size of the copy.
    `change`: a statement that is run in the copy. StoreError where that fails."""
    try:
        with (
            closing(_connect(source, writable=False)) as store,
            closing(sqlite3.connect(target, isolation_level=None)) as copy,
        ):
            store.backup(copy)  # all pages in one step: readers see one moment, and do not hold up the writer
            copy.execute(f"pragma application_id = {APPLICATION_ID}")  # whole, whatever the page said at that moment
            if change:
                copy.execute(change, params)
            copy.execute("pragma wal_checkpoint(truncate)").fetchone()
        return target.stat().st_size
    except sqlite3.Error as error:
        raise _unusable(error, source, "copied") from error


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _unusable(error: sqlite3.Error, path: Path, how: str) -> StoreError:
    """`how`: what cannot be done with it. For a damaged file the text says what to do."""
    if _code(error) not in _DAMAGED:
        return StoreError(f"{path} cannot be {how}: {error}")
    return StoreCorrupt(
        f"{path} cannot be {how}: {error}; restore a copy of it, or move it away (with its -wal and -shm files) to "
        "begin with an empty one"
    )


def _translated(error: sqlite3.DatabaseError, path: Path) -> StoreError:
    code = _code(error)
    if code in _DAMAGED:
        return _unusable(error, path, "used")
    if code == sqlite3.SQLITE_INTERRUPT:
        return StoreBusy("a query was stopped at its time limit")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy("the store was locked for too long")
    return StoreError(f"the store failed: {error}")
