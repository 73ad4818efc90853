"""Specific to SQLite: the journal, the pragmas, foreign files, damage, and a full disk."""

import asyncio
import itertools
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from tests.store.engines import NOTES, SqliteKit
from tests.waiting import LIMIT_S

from icefall.db import sqlite
from icefall.db.engine import Row, StoreBusy, StoreError, Transaction
from icefall.db.migrate import FIRST
from icefall.db.sqlite import SqliteReader, SqliteStore, copy_store
from icefall.db.wal import APPLICATION_ID

V1 = {"schema": NOTES}
PUT = "insert into note (id, text) values (:id, :text)"
COUNT = "select count(*) from note"


@pytest.fixture
def store(kit: SqliteKit) -> SqliteStore:
    return kit.open(V1)


def put_many(store: SqliteStore, numbers: range, size: int = 1) -> None:
    rows = [{"id": number, "text": "x" * size} for number in numbers]
    asyncio.run(store.write(lambda tx: tx.run_many(PUT, rows)))


def test_many_rows_are_inserted_by_few_statements(store: SqliteStore) -> None:
    rows = [(number, f"text {number}") for number in range(1000)]
    statements: list[str] = []

    def put(tx: Transaction) -> None:
        tx.run_many("insert into note (id, text) values (?, ?)", rows)

    store._writer.set_trace_callback(statements.append)
    asyncio.run(store.write(put))
    store._writer.set_trace_callback(None)
    assert asyncio.run(store.rows("select id, text from note order by id")) == rows
    assert len([one for one in statements if one.startswith("insert")]) == 1000 // 64 + 1000 % 64


def test_many_rows_that_conflict_are_as_one_by_one(store: SqliteStore) -> None:
    put = "insert into note (id, text) values (?, ?) on conflict (id) do update set text = note.text || excluded.text"
    rows = [(number % 70, chr(97 + number // 70)) for number in range(210)]
    statements: list[str] = []
    store._writer.set_trace_callback(statements.append)
    asyncio.run(store.write(lambda tx: tx.run_many(put, rows)))
    store._writer.set_trace_callback(None)
    assert asyncio.run(store.rows("select id, text from note order by id")) == [(number, "abc") for number in range(70)]
    assert len([one for one in statements if one.startswith("insert")]) == 210 // 64 + 210 % 64


@pytest.mark.parametrize("count", [1, 63, 64, 65, 128])
def test_of_many_rows_all_are_inserted_or_none(store: SqliteStore, count: int) -> None:
    def put(tx: Transaction, rows: list[tuple[int, str]]) -> None:
        tx.run_many("insert into note (id, text) values (?, ?)", rows)

    asyncio.run(store.write(partial(put, rows=[(number, "") for number in range(count)])))
    assert asyncio.run(store.rows(COUNT)) == [(count,)]
    taken = [(number, "") for number in (*range(count, 2 * count), 0)]
    with pytest.raises(sqlite3.IntegrityError):
        asyncio.run(store.write(partial(put, rows=taken)))
    assert asyncio.run(store.rows(COUNT)) == [(count,)]


def pragma(path: Path, name: str) -> object:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"pragma {name}").fetchone()[0]
    finally:
        connection.close()


def test_the_file_is_ours_numbered_and_in_wal_mode(kit: SqliteKit, store: SqliteStore) -> None:
    assert pragma(kit.path, "journal_mode") == "wal"
    assert pragma(kit.path, "application_id") == APPLICATION_ID
    assert pragma(kit.path, "user_version") == FIRST
    assert pragma(kit.path, "page_size") == 8192
    assert asyncio.run(store.rows("pragma query_only")) == [(1,)]


def test_the_writer_syncs_at_checkpoints(store: SqliteStore) -> None:
    """NORMAL: with OFF a power cut could damage the file, which no test of kill -9 would notice."""
    assert store.write_here(lambda tx: tx.rows("pragma synchronous")) == [(1,)]


def test_a_failed_migration_keeps_the_old_number(kit: SqliteKit) -> None:
    kit.open(V1).close()
    with pytest.raises(StoreError):
        kit.open(V1 | {"0102_bad": "create table half (id integer);\ncreate table half (id integer);"})
    assert pragma(kit.path, "user_version") == FIRST
    assert asyncio.run(kit.reader().rows("select count(*) from sqlite_master where name = 'half'")) == [(0,)]


def test_statements_of_a_schema_may_span_lines_and_hold_semicolons(kit: SqliteKit) -> None:
    script = (
        "-- a; comment\n"
        "create table t (\n  a text default ';'\n);\n"
        "create trigger g after insert on t begin\n  update t set a = 'b;';\n  update t set a = a || 'c';\nend;\n"
        "insert into t (a) values ('x');\n\ninsert into t (a) values ('y');\n"
        "insert into t (a) values ('last one without an end')"
    )
    store = kit.open({"schema": script})
    assert asyncio.run(store.rows("select a from t")) == [("b;c",)] * 3


def test_a_newer_store_keeps_every_byte(kit: SqliteKit) -> None:
    kit.open(V1 | {"0102_more": "create table more (id integer);"}).close()
    before = kit.path.read_bytes()
    with pytest.raises(StoreError, match="newer"):
        kit.open(V1)
    assert kit.path.read_bytes() == before
    assert not kit.path.with_name("store.sqlite-wal").exists()


@pytest.mark.parametrize("setup", ["create table theirs (id integer)", "pragma application_id = 7"])
def test_a_foreign_database_is_refused_and_left_alone(kit: SqliteKit, setup: str) -> None:
    connection = sqlite3.connect(kit.path)
    connection.execute(setup)
    connection.commit()
    connection.close()
    before = kit.path.read_bytes()
    with pytest.raises(StoreError, match=r"store\.sqlite is not an Icefall store: use another --data-dir"):
        kit.open(V1)
    assert kit.path.read_bytes() == before
    assert pragma(kit.path, "journal_mode") == "delete"


def test_a_file_that_is_no_database_is_refused_and_left_alone(kit: SqliteKit) -> None:
    kit.path.write_bytes(b"these are my holiday notes\n" * 500)
    with pytest.raises(StoreError, match=r"store\.sqlite cannot be \w+: file is not a database"):
        kit.open(V1)
    assert kit.path.read_bytes().startswith(b"these are my holiday notes\n")


def test_a_damaged_header_is_refused(kit: SqliteKit) -> None:
    kit.open(V1).close()
    damaged = bytearray(kit.path.read_bytes())
    damaged[100:4000] = bytes(3900)  # the page that lists the tables
    kit.path.write_bytes(damaged)
    with pytest.raises(StoreError, match=r"store\.sqlite cannot be used: .*malformed"):
        kit.open(V1)


def test_damage_found_while_running_is_a_store_error(kit: SqliteKit) -> None:
    store = kit.open(V1)
    put_many(store, range(2000), size=100)
    store.close()
    damaged = bytearray(kit.path.read_bytes())
    damaged[3 * 8192 :] = b"\xff" * (len(damaged) - 3 * 8192)
    kit.path.write_bytes(damaged)
    store = kit.open(V1)
    with pytest.raises(StoreError, match="malformed"):
        asyncio.run(store.rows("select sum(length(text)) from note"))
    with pytest.raises(StoreError, match="malformed"):
        asyncio.run(store.write(lambda tx: tx.rows("select sum(length(text)) from note")))


def test_a_reader_of_a_missing_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteReader(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteStore(tmp_path / "none" / "store.sqlite", "icefall.node")


def test_a_full_disk_fails_the_write_and_loses_nothing(kit: SqliteKit, store: SqliteStore) -> None:
    put_many(store, range(10))
    pages = store._writer.execute("pragma page_count").fetchone()[0]
    store._writer.execute(f"pragma max_page_count = {pages + 5}")
    for _ in range(3):
        with pytest.raises(StoreError, match="full"):
            put_many(store, range(100, 5000), size=200)
        assert asyncio.run(store.rows(COUNT)) == [(10,)]
    store._writer.execute("pragma max_page_count = 1000000")
    put_many(store, range(100, 5000), size=200)
    assert asyncio.run(kit.reader().rows(COUNT)) == [(4910,)]


def test_a_file_that_may_not_grow_fails_the_commit_and_loses_nothing(kit: SqliteKit) -> None:
    """The kernel limits the size of the journal, in a process of its own."""
    kit.open(V1).close()
    script = f"""
import asyncio, pathlib, resource, signal, sys
sys.path.insert(0, {str(kit.path.parent)!r})
from icefall.db.engine import StoreError
from icefall.db.sqlite import SqliteStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SqliteStore(pathlib.Path({str(kit.path)!r}), "migrated_full")
put = lambda first, last: asyncio.run(store.write(lambda tx: tx.run_many({PUT!r},
    [dict(id=n, text="x" * 500) for n in range(first, last)])))
put(0, 10)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
try:
    put(10, 5000)
except StoreError as error:
    print("refused:", error)
print(asyncio.run(store.rows({COUNT!r})))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
put(10, 5000)
print(asyncio.run(store.rows({COUNT!r})))
"""
    folder = kit.path.parent / "migrated_full"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "schema.sqlite.sql").write_text(NOTES)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=LIMIT_S)
    refused, between, after = ended.stdout.splitlines()
    assert refused.startswith("refused: the store failed: ")
    assert (between, after) == ("[(10,)]", "[(5000,)]")


def test_kill_9_keeps_what_was_committed(kit: SqliteKit) -> None:
    kit.open(V1).close()
    script = f"""
import os, sqlite3
connection = sqlite3.connect({str(kit.path)!r}, isolation_level=None)
for number in range(50):
    connection.execute({PUT!r}, dict(id=number, text="x"))
connection.execute("begin immediate")
connection.execute("delete from note")
print("ready", flush=True)
os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert (ended.stdout, ended.returncode) == ("ready\n", -9)
    assert asyncio.run(kit.open(V1).rows(COUNT)) == [(50,)]


def test_the_version_is_not_stopped_at_the_time_limit_of_an_earlier_query(kit: SqliteKit, store: SqliteStore) -> None:
    """Steps of statements are counted together: one that is only asked for its version reaches the next check too."""
    put_many(store, range(3))
    reader = kit.reader()
    reader.read(COUNT)
    reader._deadline = 0.0  # long ago
    assert len({reader._ask_version() for _ in range(sqlite._STEPS_BETWEEN_CHECKS)}) == 1


LIST = """select id, text, null, id * 1.5, x'00ff', x'', -id << 40 from note where id >= :low
order by id desc limit :limit"""


def executed(store: SqliteStore, statement: str, params: dict[str, int]) -> tuple[list[Row], str]:
    """The rows of a query, and the last statement that SQLite executed for it."""
    statements: list[str] = []
    store._connection.set_trace_callback(statements.append)
    rows = store.read(statement, params)
    store._connection.set_trace_callback(None)
    return rows, statements[-1]


@pytest.mark.parametrize("limit", [0, 1, 7, 30])
def test_a_list_hands_over_the_rows_that_would_be_fetched(store: SqliteStore, limit: int) -> None:
    put_many(store, range(20), size=3)
    params = {"low": 2, "limit": limit}
    fetched = store._connection.execute(LIST, params).fetchall()
    assert len(fetched) == min(limit, 18)
    for _ in range(2):  # the first time its columns are counted
        rows, statement = executed(store, LIST, params)
        assert rows == fetched
        assert "hand_over" in statement


def test_rows_that_are_ordered_after_they_are_limited_are_fetched(store: SqliteStore) -> None:
    put_many(store, range(20))
    ordered = "select id from (select id from note order by id limit :limit) order by id desc"
    rows, statement = executed(store, ordered, {"limit": 3})
    assert rows == [(2,), (1,), (0,)]
    assert "hand_over" not in statement


@pytest.mark.parametrize("rest", ["", " order by id limit :limit"])
def test_a_statement_that_is_put_together_again_is_the_same_one(store: SqliteStore, rest: str) -> None:
    put_many(store, range(3))
    for _ in range(2):
        assert store.read("select id from " + "".join(["note", rest]), {"limit": 5}) == [(0,), (1,), (2,)]


def test_rows_of_a_list_that_was_stopped_are_not_those_of_the_next_one(kit: SqliteKit, store: SqliteStore) -> None:
    put_many(store, range(3))
    reader = kit.reader(query_limit_s=0.05)
    numbers = "with recursive n (i) as (select 1 union all select i + 1 from n) select i from n limit :limit"
    with pytest.raises(StoreBusy):
        reader.read(numbers, {"limit": 1 << 40})
    assert reader.read(numbers, {"limit": 3}) == [(1,), (2,), (3,)]


def test_another_writer_that_holds_the_lock_too_long_is_an_error(
    kit: SqliteKit, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_LIMIT_MS", 50)
    impatient = kit.open(V1)
    other = sqlite3.connect(kit.path, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(StoreBusy, match="locked for too long"):
        asyncio.run(impatient.write(lambda tx: None))
    other.execute("rollback")
    other.close()
    asyncio.run(impatient.write(lambda tx: None))


def test_a_constraint_is_a_bug_and_keeps_its_name(store: SqliteStore) -> None:
    def change(tx: Transaction) -> None:
        tx.run(PUT, {"id": 1, "text": None})

    with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
        asyncio.run(store.write(change))


def test_a_store_whose_writer_was_killed_is_used(kit: SqliteKit) -> None:
    """Its -wal file is there: nothing is lost."""
    kit.close()
    script = f"""
import os, signal
from icefall.db.sqlite import SqliteStore
store = SqliteStore(__import__("pathlib").Path({str(kit.path)!r}), "icefall.node")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    SqliteStore(kit.path, "icefall.node").close()
    SqliteReader(kit.path).close()
    assert pragma(kit.path, "application_id") == APPLICATION_ID


def _put_rows(rows: list[dict[str, object]], tx: Transaction) -> None:
    tx.run_many(PUT, rows)


def test_a_copy_is_of_one_moment_while_others_write(kit: SqliteKit, store: SqliteStore, tmp_path: Path) -> None:
    """Each transaction adds ten rows, so no copy may hold a number of rows that is not a multiple of ten."""
    put_many(store, range(10))
    stop = threading.Event()

    def write() -> None:
        for number in itertools.count(1):
            rows: list[dict[str, object]] = [{"id": 10 * number + one, "text": "x" * 1000} for one in range(10)]
            store.write_here(partial(_put_rows, rows))
            if stop.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    counts = []
    for number in range(5):
        copy = tmp_path / f"copy{number}.sqlite"
        assert copy_store(kit.path, copy) == copy.stat().st_size
        reader = SqliteReader(copy)
        counts.append(int(reader.read(COUNT)[0][0]))
        reader.close()
    stop.set()
    writer.join()
    assert [count % 10 for count in counts] == [0] * 5
    assert counts == sorted(counts)
    assert counts[0] >= 10
