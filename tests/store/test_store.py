"""What every store engine must do: one suite, run on each of them."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.store.engines import KITS, NOTES, Kit
from tests.store.structure import structure
from tests.waiting import LIMIT_S

from icefall.db.engine import Reader, Row, Store, StoreBusy, StoreError, StoreOfOtherRelease, Transaction
from icefall.db.migrate import FIRST

PUT = "insert into note (id, text) values (:id, :text)"
ALL = "select id, text from note order by id"
COUNT = "select count(*) from note"
V1 = {"schema": NOTES}
MARKS = "create table mark (id integer primary key);\n"
V2 = {"schema": NOTES + MARKS, "0102_marks": f"{MARKS}insert into note (id, text) values (7, 'two');\n"}


@pytest.fixture(params=KITS)
def kit(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kit]:
    kit: Kit = KITS[request.param](tmp_path)
    yield kit
    kit.close()


@pytest.fixture
def store(kit: Kit) -> Store:
    return kit.open(V1)


def put(number: int, text: str = "x") -> dict[str, object]:
    return {"id": number, "text": text}


def putting(number: int) -> Callable[[Transaction], int]:
    return lambda tx: tx.run(PUT, put(number))


def notes(reader: Reader) -> list[Row]:
    return asyncio.run(reader.rows(ALL))


class Boom(Exception):
    pass


# -- one writer, all or nothing ----------------------------------------------------------------------------------


def test_a_write_returns_what_its_function_returns(store: Store) -> None:
    def change(tx: Transaction) -> str:
        assert tx.run(PUT, put(1)) == 1
        assert tx.rows(ALL) == [(1, "x")]
        assert tx.run("update note set text = 'y'") == 1
        return "done"

    assert asyncio.run(store.write(change)) == "done"
    assert notes(store) == [(1, "y")]


def test_many_rows_at_once(store: Store) -> None:
    rows = [put(number) for number in range(5000)]
    asyncio.run(store.write(lambda tx: tx.run_many(PUT, rows)))
    assert asyncio.run(store.rows(COUNT)) == [(5000,)]


def test_writes_run_one_after_the_other(store: Store) -> None:
    inside: list[int] = []
    most = 0

    def change(tx: Transaction) -> None:
        nonlocal most
        inside.append(1)
        most = max(most, len(inside))
        (before,) = tx.rows(COUNT)
        time.sleep(0.002)
        assert tx.rows(COUNT) == [before]
        tx.run(PUT, put(before[0]))  # a primary key: two that saw the same count would collide
        inside.pop()

    async def scenario() -> None:
        await asyncio.gather(*(store.write(change) for _ in range(40)))

    asyncio.run(scenario())
    assert most == 1
    assert asyncio.run(store.rows(COUNT)) == [(40,)]


def test_writes_are_executed_in_order(store: Store) -> None:
    order: list[int] = []

    def noting(number: int) -> Callable[[Transaction], None]:
        return lambda tx: order.append(number)

    async def scenario() -> None:
        await asyncio.gather(*(store.write(noting(number)) for number in range(20)))

    asyncio.run(scenario())
    assert order == list(range(20))


@pytest.mark.parametrize("error", [Boom, KeyboardInterrupt, SystemExit])
def test_an_exception_rolls_back(store: Store, error: type[BaseException]) -> None:
    def change(tx: Transaction) -> None:
        tx.run_many(PUT, [put(1), put(2)])
        raise error

    with pytest.raises(error):
        asyncio.run(store.write(change))
    assert notes(store) == []
    asyncio.run(store.write(lambda tx: tx.run(PUT, put(3))))
    assert notes(store) == [(3, "x")]


def test_a_wrong_statement_rolls_back(store: Store) -> None:
    def change(tx: Transaction) -> None:
        tx.run(PUT, put(1))
        tx.run(PUT, put(1))

    with pytest.raises(Exception, match=r"(?i)unique"):
        asyncio.run(store.write(change))
    assert notes(store) == []


def test_a_write_whose_caller_was_cancelled_is_atomic(store: Store) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def change(tx: Transaction) -> None:
        tx.run(PUT, put(1))
        entered.set()
        assert go_on.wait(LIMIT_S)
        tx.run(PUT, put(2))

    async def scenario() -> None:
        task = asyncio.create_task(store.write(change))
        await asyncio.to_thread(entered.wait, LIMIT_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await store.write(lambda tx: None)

    asyncio.run(scenario())
    assert notes(store) in ([], [(1, "x"), (2, "x")])


# -- readers -----------------------------------------------------------------------------------------------------


def test_other_tasks_run_while_a_change_is_written_in_steps(store: Store) -> None:
    seen = threading.Event()

    def change(tx: Transaction) -> Iterator[None]:
        tx.run(PUT, put(1))
        deadline = time.monotonic() + LIMIT_S
        while not seen.is_set():
            assert time.monotonic() < deadline
            yield
        tx.run(PUT, put(2))

    async def both() -> None:
        writing = asyncio.create_task(store.write_in_steps(change))
        await asyncio.sleep(0)
        assert await store.rows(ALL) == []
        seen.set()
        await writing

    asyncio.run(both())
    assert notes(store) == [(1, "x"), (2, "x")]


def test_two_changes_in_steps_are_written_one_after_the_other(store: Store) -> None:
    def change(tx: Transaction, first: int) -> Iterator[None]:
        tx.run(PUT, put(first))
        yield
        tx.run(PUT, put(first + 1))

    async def both() -> None:
        await asyncio.gather(*[store.write_in_steps(partial(change, first=first)) for first in (1, 3)])

    asyncio.run(asyncio.wait_for(both(), LIMIT_S))
    assert notes(store) == [(number, "x") for number in (1, 2, 3, 4)]


def test_an_exception_in_a_later_step_rolls_back(store: Store) -> None:
    def change(tx: Transaction) -> Iterator[None]:
        tx.run(PUT, put(1))
        yield
        raise Boom

    with pytest.raises(Boom):
        asyncio.run(store.write_in_steps(change))
    asyncio.run(store.write(putting(2)))
    assert notes(store) == [(2, "x")]


def test_a_change_in_steps_has_ended_when_its_caller_is_cancelled(store: Store) -> None:
    """Whether it is stored or not: what it uses may be changed from then on."""
    entered, was_cancelled, is_over = threading.Event(), threading.Event(), threading.Event()

    def change(tx: Transaction) -> Iterator[None]:
        tx.run(PUT, put(1))
        deadline = time.monotonic() + LIMIT_S
        try:
            while not was_cancelled.is_set():
                assert time.monotonic() < deadline
                entered.set()
                yield
                time.sleep(0.001)
            for _ in range(20):  # and some steps more
                yield
                time.sleep(0.001)
        finally:
            is_over.set()
        tx.run(PUT, put(2))

    async def cancelled() -> None:
        writing = asyncio.create_task(store.write_in_steps(change))
        while not entered.is_set():
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.sleep(0)
        writing.cancel()  # once more while it waits
        was_cancelled.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert is_over.is_set()
        await store.write(putting(3))

    asyncio.run(cancelled())
    assert notes(store) in ([(3, "x")], [(1, "x"), (2, "x"), (3, "x")])


def test_nothing_is_visible_before_the_commit_and_all_of_it_after(kit: Kit, store: Store) -> None:
    reader = kit.reader()
    wrote, go_on = threading.Event(), threading.Event()

    def change(tx: Transaction) -> None:
        tx.run_many(PUT, [put(1), put(2)])
        wrote.set()
        assert go_on.wait(LIMIT_S)

    async def scenario() -> None:
        task = asyncio.create_task(store.write(change))
        await asyncio.to_thread(wrote.wait, LIMIT_S)
        assert await reader.rows(ALL) == []  # a reader never waits for the writer, who still waits for us
        assert await store.rows(ALL) == []
        go_on.set()
        await task
        assert len(await reader.rows(ALL)) == 2
        assert len(await store.rows(ALL)) == 2

    asyncio.run(scenario())


def test_every_call_sees_what_was_committed_before_it(kit: Kit, store: Store) -> None:
    """A statement that is not read to its end pins the snapshot, and the reader answers stale data for ever."""
    readers = [kit.reader(), kit.reader()]

    async def scenario() -> None:
        for number in range(50):
            for reader in readers:  # more rows than anybody looks at
                assert len(await reader.rows(ALL)) == number
            await store.write(putting(number))
            for reader in readers:
                assert await reader.rows(COUNT) == [(number + 1,)]

    asyncio.run(scenario())


def test_a_query_that_failed_or_was_stopped_pins_no_snapshot(kit: Kit, store: Store) -> None:
    reader = kit.reader(query_limit_s=0.5)

    async def scenario() -> None:
        await store.write(lambda tx: tx.run_many(PUT, [put(n) for n in range(2000)]))
        with pytest.raises(StoreBusy):
            await reader.rows("select count(*) from note a, note b, note c where a.text <> b.text or b.text <> c.text")
        with pytest.raises(StoreError):
            await reader.rows("select nothing from note")
        await store.write(lambda tx: tx.run(PUT, put(5000)))
        assert await reader.rows("select max(id) from note") == [(5000,)]

    asyncio.run(scenario())


def test_a_query_is_stopped_at_its_time_limit(kit: Kit, store: Store) -> None:
    for reader in (kit.reader(query_limit_s=0.5), kit.open(V1, query_limit_s=0.5)):
        began = time.perf_counter()
        with pytest.raises(StoreBusy, match="time limit"):
            asyncio.run(reader.rows(kit.slow()))
        assert time.perf_counter() - began > 0.4
        assert asyncio.run(reader.rows(COUNT)) == [(0,)]  # the next one has its own time


def test_a_reader_can_change_nothing(kit: Kit, store: Store) -> None:
    reader = kit.reader()
    for statement in ("insert into note values (1, 'x')", "delete from note", "drop table note", "create table t (i)"):
        with pytest.raises(StoreError):
            asyncio.run(reader.rows(statement))
    assert notes(store) == []


# -- migrations --------------------------------------------------------------------------------------------------


def test_migrations_run_once_and_in_order(kit: Kit) -> None:
    first = kit.open(V1)
    asyncio.run(first.write(lambda tx: tx.run(PUT, put(1))))
    first.close()
    for _ in range(2):
        with closing(kit.open(V2)) as second:
            assert notes(second) == [(1, "x"), (7, "two")]
            assert asyncio.run(kit.reader().schema_number()) == FIRST + 1


def test_a_new_store_is_created_from_the_schema_file_alone(kit: Kit) -> None:
    with closing(kit.open(V2)) as store:
        assert notes(store) == []
        assert store.read("select count(*) from mark") == [(0,)]
        assert asyncio.run(kit.reader().schema_number()) == FIRST + 1


def test_a_migrated_store_is_like_a_new_one(kit: Kit, tmp_path: Path) -> None:
    """Whether the schema file and the migrations agree is seen, whatever they forget."""
    noted = NOTES.replace(")", ", at integer not null default 0)") + "create index note_at on note (at);\n"
    steps = {"0102_at": "alter table note add column at integer not null default 0;\n"}
    kit.open(V1).close()
    for more, is_like_new in (({}, False), ({"0103_index": "create index note_at on note (at);\n"}, True)):
        steps |= more
        scripts = {"schema": noted} | steps
        with closing(kit.open(scripts)) as migrated:
            folder = tmp_path / str(len(steps))
            folder.mkdir()
            other = KITS[kit.name](folder)
            with closing(other), closing(other.open(scripts)) as created:
                assert (structure(migrated) == structure(created)) == is_like_new


def test_a_migration_that_fails_changes_nothing_at_all(kit: Kit) -> None:
    first = kit.open(V1)
    asyncio.run(first.write(lambda tx: tx.run(PUT, put(1))))
    first.close()
    broken = V1 | {
        "0102_good": "insert into note (id, text) values (2, 'kept');",
        "0103_bad": "create table half (id int);\ninsert into note values (3, '');\ninsert into nowhere values (1);",
    }
    with pytest.raises(StoreError, match="nowhere"):
        kit.open(broken)
    fixed = broken | {"0103_bad": "create table half (id integer);"}
    mended = kit.open(fixed)  # would fail if 0102 ran twice, or if half of 0103 were there
    assert notes(mended) == [(1, "x"), (2, "kept")]


def test_a_newer_store_is_refused_and_left_alone(kit: Kit) -> None:
    kit.open(V1).close()
    kit.open(V2).close()
    with pytest.raises(
        StoreOfOtherRelease, match=r"newer Icefall \(schema 102, this program knows 101\): upgrade Icefall, or use"
    ):
        kit.open(V1)
    assert notes(kit.open(V2)) == [(7, "two")]


def test_a_store_that_is_closed_can_be_opened_again_at_once(kit: Kit) -> None:
    for number in range(5):
        store = kit.open(V1)
        asyncio.run(store.write(putting(number)))
        store.close()
    assert len(notes(kit.open(V1))) == 5
