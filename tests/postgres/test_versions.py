"""The version of a schema is another one after every commit of its only writer, and as new as the question."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial

import psycopg
import pytest
from tests.awaited import awaited
from tests.ports import held_port
from tests.postgres.server import new_prefix, server_url
from tests.store.engines import NOTES, PostgresKit

from icefall.db import postgres_version
from icefall.db.engine import Reader, Transaction
from icefall.db.postgres import PostgresReader, PostgresStore
from icefall.db.postgres_pool import ServerPool
from icefall.db.postgres_version import Done, Failed, VersionChecks
from icefall.node.store import PACKAGE

V1 = {"schema": NOTES}
PUT = "insert into note (id, text) values (:id, 'x')"


def version(reader: Reader) -> int | None:
    return asyncio.run(reader.current_version())


def put(number: int, tx: Transaction) -> int:
    return tx.run(PUT, {"id": number})


def admin(statement: str) -> None:
    with psycopg.connect(server_url(), autocommit=True) as session:
        session.execute(statement)


def test_it_is_another_one_after_every_commit(kit: PostgresKit) -> None:
    store, reader = kit.open(V1, exclusive=True), kit.reader()
    seen = [version(reader)]

    def in_steps(tx: Transaction) -> Iterator[None]:
        yield
        put(3, tx)
        yield

    store.write_here(partial(put, 1))
    seen.append(version(reader))
    asyncio.run(store.write(partial(put, 2)))
    seen.append(version(reader))
    asyncio.run(store.write_in_steps(in_steps))
    seen.append(version(reader))
    numbers = [number for number in seen if number is not None]
    assert numbers == sorted(set(seen)), seen  # type: ignore[type-var]
    assert len(numbers) == 4
    with pytest.raises(psycopg.IntegrityError):
        store.write_here(partial(put, 1))
    assert version(reader) == version(store) == numbers[-1]
    assert reader.version() is None  # without a round trip


def test_it_is_never_used_twice(kit: PostgresKit) -> None:
    """Not after a server has lost commits, nor for another schema of the same name."""
    seen: set[int | None] = {None}
    for lost in ("commits = commits - 2", "commits = null", "number = number", ""):
        store = kit.open(V1, exclusive=True)
        for number in range(3):
            store.write_here(lambda tx, at=number: tx.run("update note set id = id where id = :id", {"id": at}))  # type: ignore[misc]
            found = version(kit.reader())
            assert found not in seen
            seen.add(found)
        store.close()
        admin(f"update {kit.schema}.schema_version set {lost}" if lost else f"drop schema {kit.schema} cascade")
    assert kit.open(V1, exclusive=True) is not None
    assert version(kit.reader()) not in seen


def test_writers_next_to_others_have_none(kit: PostgresKit) -> None:
    store = kit.open(V1)
    store.write_here(partial(put, 1))
    assert version(store) is version(kit.reader()) is None
    only = kit.open(V1, exclusive=True)
    before = version(kit.reader())
    store.write_here(partial(put, 2))
    assert version(store) is None
    assert version(only) == version(kit.reader()) == before


def test_a_dump_does_not_hold_up_a_start(kit: PostgresKit) -> None:
    """It reads every table in one long transaction."""
    kit.open(V1, exclusive=True).close()
    with psycopg.connect(server_url()) as dump:
        dump.execute(f"select * from {kit.schema}.schema_version")
        kit.open(V1, exclusive=True)


def test_schemas_and_event_loops_take_turns(kit: PostgresKit) -> None:
    other = new_prefix()
    store = kit.open(V1, exclusive=True)
    with closing(PostgresStore(kit.pool, other, PACKAGE)):
        readers = [PostgresReader(kit.pool, schema) for schema in (kit.schema, other)]

        async def ask_all() -> list[int | None]:
            return await asyncio.gather(*(reader.current_version() for reader in readers * 3))

        for number in range(3):
            found = asyncio.run(ask_all())
            assert found == found[:2] * 3
            assert found[0] != found[1]
            store.write_here(partial(put, number))
            assert version(readers[0]) == (found[0] or 0) + 1
    admin(f"drop schema {other} cascade")


@awaited
async def test_a_session_that_was_ended_is_replaced(kit: PostgresKit) -> None:
    kit.open(V1, exclusive=True)
    reader = kit.reader()
    first = await reader.current_version()
    connection = kit.pool.versions._session._connection  # type: ignore[attr-defined]
    admin(f"select pg_terminate_backend({connection.info.backend_pid})")
    while not connection.closed:
        await asyncio.sleep(0.01)
    assert await reader.current_version() == first is not None


@awaited
async def test_a_check_that_takes_too_long_is_given_up(kit: PostgresKit, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    kit.pool.versions._clock = lambda: now[0]
    kit.open(V1, exclusive=True)
    reader = kit.reader()
    first = await reader.current_version()
    assert first is not None
    async with await psycopg.AsyncConnection.connect(server_url()) as locked:
        await locked.execute(f"lock table {kit.schema}.schema_version in access exclusive mode")
        with monkeypatch.context() as locked_only:  # the other checks may take long on a busy machine
            locked_only.setattr(postgres_version, "_LIMIT_S", 0.1)
            assert set(await asyncio.gather(reader.current_version(), reader.current_version())) == {None}
    now[0] += 10
    assert await reader.current_version() == first


def test_a_server_that_is_not_there_has_none() -> None:
    with held_port() as port, closing(ServerPool(f"postgresql://someone@127.0.0.1:{port}/db")) as pool:
        assert version(PostgresReader(pool, "public")) is None


# -- which check a request uses ----------------------------------------------------------------------------------


class HeldSession:
    """A server that answers a check with what was committed when it was sent, and not before `answer` is called."""

    def __init__(self) -> None:
        self.committed = 0
        self.sent: list[int] = []
        self._done: Done | None = None
        self.fail: Failed = self.close
        self._held = 0

    def send(self, schema: str, done: Done, failed: Failed) -> None:
        assert self._done is None, "one at a time"
        self.sent.append(self.committed)
        self._done, self.fail, self._held = done, failed, self.committed

    def answer(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(self._held)

    def close(self) -> None:
        self._done = None


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@awaited
async def test_a_request_does_not_use_a_check_that_is_on_its_way() -> None:
    server = HeldSession()
    checks = VersionChecks(server)
    first = [asyncio.ensure_future(checks.version("a")) for _ in range(3)]
    await turn()
    assert server.sent == [0]  # for all three
    server.committed = 1
    later = [asyncio.ensure_future(checks.version("a")) for _ in range(3)]
    await turn()
    server.answer()
    await turn()
    assert [one.result() for one in first] == [0, 0, 0]
    assert not any(one.done() for one in later)
    server.answer()
    assert await asyncio.gather(*later) == [1, 1, 1]
    assert server.sent == [0, 1]


@awaited
async def test_no_request_waits_for_a_check_of_another_schema_after_one_that_failed() -> None:
    server, now = HeldSession(), [0.0]
    checks = VersionChecks(server, lambda: now[0])
    asked = [asyncio.ensure_future(checks.version(schema)) for schema in ("a", "b", "c", "a")]
    await turn()
    server.fail()
    assert await asyncio.gather(*asked) == [None] * 4
    assert server.sent == [0]
    again = [asyncio.ensure_future(checks.version(schema)) for schema in ("a", "b")]
    await turn()
    server.answer()
    assert await asyncio.gather(*again) == [None, 0]  # only the schema whose check failed is not asked for


@awaited
async def test_a_cancelled_request_leaves_the_others_alone() -> None:
    server = HeldSession()
    checks = VersionChecks(server)
    for cancelled in ((0,), (0, 1, 2), (1,)):
        asked = [asyncio.ensure_future(checks.version("a")) for _ in range(3)]
        await turn()
        for index in cancelled:
            asked[index].cancel()
        await turn()
        server.answer()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [index for index in range(3) if found[index] != 0] == list(cancelled)


@pytest.mark.parametrize("seed", range(20))
@awaited
async def test_in_any_order_no_version_is_older_than_its_request(seed: int) -> None:
    draw, server = random.Random(seed), HeldSession()
    checks = VersionChecks(server)
    tasks: list[asyncio.Task[None]] = []

    async def ask(schema: str) -> None:
        at_least = server.committed
        found = await checks.version(schema)
        assert found is not None
        assert at_least <= found <= server.committed

    for _ in range(300):
        step = draw.random()
        if step < 0.4:
            tasks.append(asyncio.ensure_future(ask(draw.choice("ab"))))
        elif step < 0.5 and tasks:
            draw.choice(tasks).cancel()
        elif step < 0.7:
            server.committed += 1
        elif step < 0.9:
            server.answer()
        else:
            await asyncio.sleep(0)
    while not all(task.done() for task in tasks):
        await turn()
        server.answer()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            task.result()
    assert len(server.sent) < len(tasks)
