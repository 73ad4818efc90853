"""The version of a SQLite store without a query: whatever program commits, it is another one, and locks stay."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.engines import NOTES, SqliteKit

from icefall.db import wal_header
from icefall.db.sqlite import SqliteReader, SqliteStore

COMMIT = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"


@pytest.fixture
def store(kit: SqliteKit) -> SqliteStore:
    return kit.open({"schema": NOTES})


def versions_asked(reader: SqliteReader, count: int) -> tuple[set[int | None], int]:
    """The versions that so many calls return, and how many queries they took."""
    queries: list[str] = []
    reader._connection.set_trace_callback(queries.append)
    found = {reader.version() for _ in range(count)}
    reader._connection.set_trace_callback(None)
    return found, len(queries)


def test_sqlite_is_asked_once_after_each_commit_of_any_program(kit: SqliteKit, store: SqliteStore) -> None:
    reader = kit.reader()
    reader.version()  # finds the header
    seen: set[int | None] = set()
    for number in range(3):
        found, queries = versions_asked(reader, 100)
        assert len(found) == queries == 1
        assert not found & seen
        seen |= found
        put = f"insert into note (id, text) values ({number}, '')"
        subprocess.run([sys.executable, "-c", COMMIT, str(kit.path), put], check=True)


def test_no_commit_is_missed_also_where_the_wal_file_begins_anew(kit: SqliteKit, store: SqliteStore) -> None:
    reader = kit.reader()
    seen = {reader.version()}
    with closing(sqlite3.connect(kit.path, isolation_level=None)) as other:
        for number in range(100):
            other.execute("insert into note (id, text) values (?, 'x')", (number,))
            version = reader.version()
            assert version not in seen
            assert version == reader._ask_version()
            seen.add(version)
            if number % 7 == 0:
                other.execute("pragma wal_checkpoint(truncate)").fetchone()


def test_where_the_header_is_not_found_sqlite_is_asked_each_time(
    kit: SqliteKit, store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_header, "_OPENED", tmp_path / "missing")
    found, queries = versions_asked(kit.reader(), 10)
    assert len(found) == 1
    assert queries == 10


def test_a_reader_that_is_closed_leaves_the_locks_of_another(kit: SqliteKit, store: SqliteStore) -> None:
    one, other = SqliteReader(kit.path), kit.reader()
    assert one.version() != other.version()
    before = locks_on(Path(f"{kit.path}-shm"))
    assert before
    one.close()
    assert locks_on(Path(f"{kit.path}-shm")) == before
    assert len(versions_asked(other, 10)[0]) == 1


def locks_on(path: Path) -> list[str]:
    """The locks that this process holds on a file."""
    owner, file = f" {os.getpid()} ", f":{path.stat().st_ino} "
    lines = Path("/proc/locks").read_text().splitlines()
    return sorted(line.partition(":")[2] for line in lines if owner in line and file in line)
