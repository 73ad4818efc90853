"""Reading a chain's schema at the node of Citus that holds it, with the speed of plain PostgreSQL.

Citus plans most statements anew each time and passes them on, which costs several times the query itself. A chain is
whole on one node, and its tables there are plain ones with other names. So statements are sent to that node with those
names, and views as subqueries: the server plans them once.

Nothing tells such a session when the schema is moved: the old tables stay for a while. So every answer ends with a
check at the node that it still holds the schema, in the same statement that reads the number of commits. An answer that
fails it is read again, by way of the server that `--store` names, until the new place is known.
"""

import asyncio
import re
import time
from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

import psycopg

from icefall.db.engine import Row, StatementParams, StoreError, StoreUnreachable
from icefall.db.postgres import PostgresReader, translated_error
from icefall.db.postgres_pool import ServerPool
from icefall.db.postgres_session import SQL
from icefall.db.postgres_version import VersionChecks, VersionSession
from icefall.db.postgres_writer import node_info
from icefall.db.statements import Statement, for_postgres

LOOK_EVERY_S = 1.0  # while the schema has no place, or its node does not answer
_VERSION_TABLE = "schema_version"
_NEXT_WORDS = "where|join|left|cross|inner|on|order|group|limit|union|having|using|except|intersect|offset|for|window"
_RELATION = re.compile(
    rf"(?P<before>\b(?:from|join)\s+[(\s]*)(?P<name>[a-z_][a-z0-9_]*)\b(?!\s*\()"
    rf"(?P<alias>\s+(?:as\s+)?(?!(?:{_NEXT_WORDS})\b)[a-z_]\w*)?",
    re.IGNORECASE,
)


class SchemaPlace(NamedTuple):
    """The node that holds a schema. `relations`: what stands there for each of its tables and views."""

    node: tuple[str, int]
    group: int
    version_shard: int
    relations: Mapping[str, str]

    def text(self, statement: str) -> str:
        """Return a statement of psycopg for this place."""
        return _RELATION.sub(self._named, statement)

    def _named(self, found: re.Match[str]) -> str:
        there = self.relations.get(found["name"])
        if there is None:
            return found[0]
        return found["before"] + there + (found["alias"] or f" as {found['name']}")

    def version_text(self, _schema: str) -> str:
        """Return the statement for the number of commits, which finds none after the schema was moved."""
        there = self.relations[_VERSION_TABLE]
        return SQL.citus_commits_there.format(table=there, shard=self.version_shard, group=self.group)


def place_of(shards: list[Row], views: list[Row]) -> SchemaPlace | None:
    """Return the place by the rows of a node's metadata; None if the schema is not on one node."""
    nodes = {(host, int(port), int(group)) for _, _, _, group, host, port in shards}
    relations = {table: name for table, _, name, _, _, _ in shards}
    if len(nodes) != 1 or _VERSION_TABLE not in relations:
        return None
    ((host, port, group),) = nodes
    shard = next(int(number) for table, number, *_ in shards if table == _VERSION_TABLE)
    place = SchemaPlace((host, port), group, shard, relations)
    for name, definition in views:  # in the order in which they were created: a view names earlier ones
        relations[name] = f"({place.text(definition.strip().rstrip(';').replace('%', '%%'))})"
    return place


class CitusNodeReader(PostgresReader):
    """A reader of a schema at the node that holds it. `find` must have returned True before.

    `pool`: of the server that `--store` names; `pool_of`: of another one, by how it is connected to.
    """

    def __init__(self, pool: ServerPool, schema: str, pool_of: Callable[[str], ServerPool]) -> None:
        super().__init__(pool, schema)
        self._pool_of = pool_of
        self._place: SchemaPlace | None = None
        self._node_pool: ServerPool | None = None
        self._checks: VersionChecks | None = None
        self._texts: dict[str, Statement] = {}
        self._places = 0

    @property
    def joins_are_slow(self) -> bool:
        return False

    @property
    def generation(self) -> int:
        """A number for each place and each time that its sessions lead to another process."""
        return (self._places << 32) + (self._node_pool.generation if self._node_pool is not None else 0)

    @property
    def node(self) -> tuple[str, int] | None:
        """The host and port of the node that is read; None while there is none."""
        return self._place.node if self._place is not None else None

    async def is_on_citus(self) -> bool:
        """Tell whether the server of the store is a node of Citus."""
        return bool((await super().rows(SQL.citus))[0][0])

    async def find(self) -> bool:
        """Look where the schema is; False if it cannot be read there. StoreError where the server cannot be asked."""
        self.close()
        place = place_of(
            await super().rows(SQL.citus_shards, {"schema": self._schema}),
            await super().rows(SQL.citus_views, {"schema": self._schema}),
        )
        if place is None:
            return False
        info = node_info(self._pool.url, *place.node)
        node_pool, checks = self._pool_of(info), VersionChecks(VersionSession(info, place.version_text))
        is_same = False
        try:
            before = await super().rows(SQL.commits)
            there = await checks.version(self._schema)
            after = await super().rows(SQL.commits)
            known = [one for rows in (before, [(there,)], after) for (one,) in rows if one is not None]
            is_same = len(known) == 3 and known == sorted(known)  # else the address means another server here
        finally:
            if not is_same:
                checks.give_up()
        if is_same:
            self._place, self._node_pool, self._checks = place, node_pool, checks
            self._places += 1
        return is_same

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        if self._place is None or self._node_pool is None:
            raise StoreUnreachable("the chain is not read at its node")
        try:
            return await self._node_pool.sessions.query(self._kind, self._text(self._place, statement), params)
        except psycopg.ProgrammingError as error:  # a table that was moved away, or a right that only Citus gives
            raise StoreUnreachable(f"the chain cannot be read at its node: {error}") from error
        except psycopg.Error as error:
            raise translated_error(error) from error

    def _text(self, place: SchemaPlace, statement: str) -> Statement:
        if statement not in self._texts:
            text = Statement(statement)
            text.postgres = place.text(for_postgres(statement))
            self._texts[statement] = text
        return self._texts[statement]

    async def current_version(self) -> int | None:
        """Return the number of commits. None if the chain is elsewhere now: nothing more is read here then."""
        version = await self._checks.version(self._schema) if self._checks is not None else None
        if version is None:
            self.close()
        return version

    async def schema_number(self) -> int:
        return int((await self.rows(SQL.schema_version))[0][0])

    def close(self) -> None:
        """Forget the place."""
        checks, self._checks = self._checks, None
        self._place = self._node_pool = None
        if checks is not None:
            checks.give_up()
        self._texts.clear()


class CitusNodeChoice:
    """Chooses the node that holds a chain (0), or else the server that `--store` names (1)."""

    def __init__(self, reader: CitusNodeReader, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader = reader
        self._clock = clock
        self._is_citus: bool | None = None
        self._next_look = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def choose(self, avoided: Container[int] = ()) -> int:
        if self._is_citus is False or 0 in avoided:
            return 1
        if self._reader.node is None and self._looking is None and self._clock() >= self._next_look:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        if self._looking is not None:
            await asyncio.shield(self._looking)
        return 0 if self._reader.node is not None else 1

    async def _look(self) -> None:
        try:
            if self._is_citus is None:
                self._is_citus = await self._reader.is_on_citus()
            if self._is_citus:
                await self._reader.find()
        except StoreError:  # reading from the server itself shows why
            pass
        finally:
            self._next_look = self._clock() + LOOK_EVERY_S
            self._looking = None

    def leave_out(self, number: int, why: str) -> None:
        """Forget the place of the node: it is looked for again by itself."""
        if number == 0:
            self._reader.close()
            self._next_look = self._clock() + LOOK_EVERY_S
