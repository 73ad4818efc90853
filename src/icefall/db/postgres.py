"""The client/server engine: PostgreSQL 14 or newer, one schema per store.

The writer has one session of its own, which holds the store's lock and commits everything: if the session is lost, so
is the lock, and nothing can be committed with it any more. The store must then be opened again.
"""

import asyncio
import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar, cast

import psycopg
from psycopg import Copy, errors

from icefall.db.engine import (
    Row,
    StatementParams,
    StoreBusy,
    StoreDenied,
    StoreError,
    StoreInUse,
    StoreLost,
    StoreReplaying,
    Transaction,
    urgent_queries,
)
from icefall.db.migrate import load_schema
from icefall.db.postgres_pool import BROKEN, ServerPool
from icefall.db.postgres_session import (
    QUERY_LIMIT_S,
    SQL,
    Connection,
    SessionSettings,
    connect,
    params_of_each,
    shown_url,
    unreachable,
)
from icefall.db.postgres_writer import LOST, WriterSessions
from icefall.db.replicas import ServerPosition
from icefall.db.statements import PLAIN_INSERT, Statement, for_postgres

T = TypeVar("T")

_POSITION_LIMIT_S = 1.0
_NAMED = re.compile(r"%\((\w+)\)s")
_COPY_MIN = 16  # rows; fewer are inserted one by one
_READ_ONLY = "the server only reads, as a standby does: name the primary, or all with ?target_session_attrs=read-write"
_WRONG_STATEMENT = (psycopg.IntegrityError,)  # a bug of ours, not a failure of the store


class PostgresReader:
    is_embedded = False

    def __init__(self, pool: ServerPool, schema: str, query_limit_s: float = QUERY_LIMIT_S) -> None:
        self._pool = pool
        self._schema = schema
        self._kind = SessionSettings(schema, query_limit_s)

    @property
    def joins_are_slow(self) -> bool:
        return self._pool.of_loops.is_citus

    @property
    def generation(self) -> int:
        return self._pool.generation

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        try:
            return await self._pool.sessions.query(self._kind, statement, params)
        except psycopg.Error as error:
            raise translated_error(error) from error

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        return await self.rows(statement, params_of_each(keys)) if keys else []

    def version(self) -> int | None:
        return None

    async def current_version(self) -> int | None:
        return await self._pool.versions.version(self._schema)

    async def schema_number(self) -> int:
        """Ask by the whole name of the table: in a schema without rights, a short name would only be unknown."""
        text = SQL.schema_version.replace("schema_version", f"{self._schema}.schema_version")
        try:
            return int((await self._pool.sessions.query(self._kind, text, ()))[0][0])
        except errors.UndefinedTable:
            return 0
        except psycopg.Error as error:
            raise translated_error(error) from error

    def read(self, statement: str, params: StatementParams = ()) -> list[Row]:
        try:
            return self._pool.blocking.query(self._kind, statement, params)
        except psycopg.Error as error:
            raise translated_error(error) from error

    def read_each(self, statement: str, params: Sequence[Mapping[str, Any]]) -> list[list[Row]]:
        found: list[list[Row]] = [[] for _ in params]
        if params:
            text, names = _of_each(for_postgres(statement))
            for number, *row in self.read(text, {name: [one[name] for one in params] for name in names}):
                found[number - 1].append(tuple(row))
        return found

    def close(self) -> None:
        """Close nothing: the connections belong to the pool."""


class _PostgresTransaction:
    """One transaction of the writer. Rows of a plain insert are copied to the server, which takes them in while the
    caller makes those of the next table: a COPY is ended by the next statement that is another one."""

    def __init__(self, connection: Connection, known_kinds: dict[str, Sequence[int]]) -> None:
        self._connection = connection
        self._known_kinds = known_kinds  # types of columns, by the query for them
        self._copied = ""  # by the COPY that is open
        self._copy: Copy | None = None
        self._open = ExitStack()

    def end_copy(self) -> None:
        """End the COPY that is open, and raise the error with which the server refuses its rows."""
        self._copied, self._copy = "", None
        self._open.close()

    def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        self.end_copy()
        return self._connection.execute(for_postgres(statement), params, binary=True).fetchall()

    def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        return self.rows(statement, params_of_each(keys)) if keys else []

    def run(self, statement: str, params: StatementParams = ()) -> int:
        text = for_postgres(statement)
        if not text:
            return 0
        self.end_copy()
        return self._connection.execute(text, params).rowcount

    def run_many(self, statement: str, params: Sequence[StatementParams]) -> None:
        text = for_postgres(statement)
        if not params or not text:
            return
        if "from unnest(" in text:
            self.run(statement, params_of_each(params))
            return
        target = _copy_target(text) if len(params) >= _COPY_MIN or text == self._copied else None
        if target is None:
            self.end_copy()
            with self._connection.cursor() as cursor:
                cursor.executemany(text, params)
            return
        if self._copy is None or text != self._copied:
            self.end_copy()
            kinds = self._kinds(target)
            cursor = self._open.enter_context(self._connection.cursor())
            self._copied, self._copy = text, self._open.enter_context(cursor.copy(SQL.copy.format_map(target)))
            self._copy.set_types(kinds)
        for row in cast("Sequence[Sequence[Any]]", params):  # its values have no names
            self._copy.write_row(row)

    def _kinds(self, target: Mapping[str, str]) -> Sequence[int]:
        """Return the types of the columns: a COPY in binary form must send each as it is."""
        text = SQL.columns_copied.format_map(target)
        if text not in self._known_kinds:
            described = self._connection.execute(text).description or ()
            self._known_kinds[text] = [column.type_code for column in described]
        return self._known_kinds[text]


@lru_cache(maxsize=256)
def _copy_target(text: str) -> Mapping[str, str] | None:
    """The table and columns of a COPY that does the same as a plain insert whose values have no names; None for any
    other statement."""
    found = PLAIN_INSERT.fullmatch(text)
    if found is None or {value.strip() for value in found[3].split(",")} != {"%s"}:
        return None
    return {"table": found[1], "columns": found[2]}


@lru_cache(maxsize=64)
def _of_each(text: str) -> tuple[Statement, list[str]]:
    """Return the query for many params at once, each of which is an array, and the names of the params."""
    names = list(dict.fromkeys(_NAMED.findall(text)))
    whole = SQL.of_each.replace("/* arrays */", ", ".join(f"%({name})s" for name in names))
    whole = whole.replace("/* names */", ", ".join(names)).replace("/* query */", _NAMED.sub(r"k.\1", text))
    each = Statement(whole)
    each.postgres = whole
    return each, names


class PostgresStore(PostgresReader):
    """A store of the process that writes: it is migrated when opened, and runs one transaction at a time.

    `exclusive`: the process is the only writer; StoreInUse is raised while there is another.
    """

    def __init__(
        self,
        pool: ServerPool,
        schema: str,
        package: str,
        query_limit_s: float = QUERY_LIMIT_S,
        *,
        exclusive: bool = True,
    ) -> None:
        super().__init__(pool, schema, query_limit_s)
        self._is_exclusive = exclusive
        self._known_kinds: dict[str, Sequence[int]] = {}
        self._sessions = WriterSessions(pool.url, schema)
        self._locking = self._sessions.locking
        try:
            if exclusive:
                self._lock()
            self._prepare(package)
            if exclusive:
                self._sessions.begin(is_citus=self._on_citus())
        except psycopg.Error as error:
            self._sessions.close()
            raise translated_error(error) from error
        except BaseException:
            self._sessions.close()
            raise
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")
        self._one_at_a_time = threading.Lock()

    def _lock(self) -> None:
        key = {"key": _lock_key(self._schema)}
        if self._on_citus() and not self._one(SQL.citus_is_coordinator):
            raise StoreError("a writer must be connected to the coordinator of Citus: this server is a worker")
        if not self._one(SQL.try_lock, key):
            held = self._locking.execute(SQL.holder.postgres, key).fetchall()
            owner = f" by {held[0][1]} at {held[0][0]}" if held else ""
            raise StoreInUse(f"{self._where()} is in use{owner}: it has one writer at a time", can_wait=True)

    def _where(self) -> str:
        return f"schema {self._schema} of {shown_url(self._pool.url)}"

    def _one(self, statement: str, params: StatementParams = ()) -> Any:
        return self._locking.execute(for_postgres(statement), params).fetchall()[0][0]

    def _on_citus(self) -> bool:
        return bool(self._one(SQL.citus))

    def _prepare(self, package: str) -> None:
        """Migrate the schema. Each step is a transaction, so an interrupted migration goes on where it was; several
        processes may do this at once."""
        schema = load_schema(package, "postgres")
        if not schema.pending(self._version(), self._where()):
            return
        is_citus = self._on_citus()
        self._locking.execute(f"create schema if not exists {self._schema}")
        missing = True
        while missing:
            with self._locking.transaction():
                if is_citus:
                    self._locking.execute(SQL.citus_modify_one_after_the_other.postgres)
                self._locking.execute(SQL.lift_time_limit.postgres)
                self._one(SQL.lock_migrations, {"key": _lock_key(f"{self._schema} migrations")})
                at = self._version()
                steps = schema.pending(at, self._where())
                for migration in steps[:1]:
                    for statement in migration.statements():
                        self._locking.execute(statement)
                    if at == 0:
                        self._locking.execute(SQL.create_schema_version.postgres)
                    put = SQL.change_schema_version if at else SQL.put_schema_version
                    self._locking.execute(put.postgres, {"number": migration.number})
                missing = len(steps) > 1

    def _version(self) -> int:
        """The number of the store's schema; 0 where there are no tables."""
        ((tables, ours),) = self._locking.execute(SQL.tables_of_schema.postgres, {"schema": self._schema}).fetchall()
        if tables and not ours:
            raise StoreError(f"{self._where()} is not an Icefall store: use another --store-prefix")
        return int(self._one(SQL.schema_version)) if ours else 0

    async def current_version(self) -> int | None:
        """Return None for a writer next to others. Those do not count commits: each would wait for the row until the
        one before has committed."""
        return await super().current_version() if self._is_exclusive else None

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        self._sessions.follow()
        writing = self._sessions.writing
        with writing.transaction():
            tx = _PostgresTransaction(writing, self._known_kinds)
            try:
                yield tx
            except BaseException:
                with suppress(psycopg.Error):
                    tx.end_copy()
                raise
            tx.end_copy()
            self._sessions.count_commit()
        self._sessions.note_commit()

    async def write(self, change: Callable[[Transaction], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.write_here, change)

    async def write_in_steps(self, change: Callable[[Transaction], Iterator[None]]) -> None:
        """Run all steps in the thread of the writer, which mostly waits for the server."""

        def whole(tx: Transaction) -> None:
            for _ in change(tx):
                pass

        writing = asyncio.ensure_future(self.write(whole))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            while not writing.done():  # the thread goes on
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([writing])
            raise

    def write_here(self, change: Callable[[Transaction], T]) -> T:
        with self._one_at_a_time:
            if self._sessions.writing.closed:
                raise StoreLost(LOST)
            try:
                with self._transaction() as tx:
                    return change(tx)
            except _WRONG_STATEMENT:
                raise
            except psycopg.Error as error:
                raise (StoreLost(LOST) if self._sessions.writing.closed else translated_error(error)) from error

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        self._sessions.close()


def has_tables(pool: ServerPool, schema: str) -> bool:
    ((tables, _),) = PostgresReader(pool, schema).read(SQL.tables_of_schema, {"schema": schema})
    return bool(tables)


def schema_location(pool: ServerPool, schema: str) -> tuple[str, int]:
    """The server that holds a schema, without credentials, and the bytes it takes there."""
    reader, named = PostgresReader(pool, schema), {"schema": schema}
    if not reader.read(SQL.citus)[0][0]:
        return shown_url(pool.url), int(reader.read(SQL.schema_size, named)[0][0])
    node = reader.read(SQL.citus_node, named)
    return node[0][0] if node else shown_url(pool.url), int(reader.read(SQL.citus_size, named)[0][0])


def schemas_of(pool: ServerPool, prefix: str) -> list[str]:
    return [schema for (schema,) in PostgresReader(pool, "public").read(SQL.schemas, {"prefix": prefix})]


async def server_position(pool: ServerPool) -> ServerPosition:
    """Return how far a server is. It does not wait for a session that others use."""
    with urgent_queries():
        ((system, process, is_standby, position, replayed_s, on_citus),) = await PostgresReader(
            pool, "pg_catalog", _POSITION_LIMIT_S
        ).rows(SQL.position)
    problem = "replicas of Citus are not read: a position there says nothing of the other nodes" if on_citus else ""
    return ServerPosition(system, process, bool(is_standby), position, replayed_s, problem)


def rename_schema(pool: ServerPool, old: str, new: str) -> None:
    try:
        with connect(pool.url, {}) as connection:
            connection.execute(f"alter schema {old} rename to {new}")
    except psycopg.Error as error:
        raise translated_error(error) from error


def _lock_key(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"icefall {name}".encode()).digest()[:8], "big", signed=True)


def translated_error(error: psycopg.Error) -> StoreError:
    if isinstance(error, errors.QueryCanceled):
        return StoreBusy("a query was stopped at its time limit")
    if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected):
        return StoreBusy("the store was locked for too long")
    if isinstance(error, errors.SerializationFailure):
        return StoreReplaying("the standby replays a change of the rows that were read: try again")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreDenied(f"the role of the store has too few rights: {error.diag.message_primary}")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StoreError(_READ_ONLY)
    if isinstance(error, BROKEN) and not isinstance(error, errors.DiskFull):
        return unreachable(error)
    return StoreError(f"the store failed: {error}")
