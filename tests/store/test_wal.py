"""A copy of a store that lost its -wal file is refused; stores whose programs were killed are not."""

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.store.engines import NOTES, SqliteKit, package_of
from tests.waiting import LIMIT_S

from icefall.db import wal
from icefall.db.engine import StoreCorrupt, StoreError
from icefall.db.sqlite import SqliteReader, SqliteStore, copy_store
from icefall.db.wal import APPLICATION_ID, WRITING_ID, lost_its_wal

V1 = {"schema": NOTES}
PUT = "insert into note (id, text) values (:id, :text)"
COUNT = "select count(*) from note"


def put(store: SqliteStore, numbers: range, size: int = 1) -> None:
    rows = [{"id": number, "text": "x" * size} for number in numbers]
    store.write_here(lambda tx: tx.run_many(PUT, rows))


def wal_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def id_in(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[68:72], "big")


def copied(path: Path, name: str, *, with_wal: bool = False) -> Path:
    copy = path.with_name(name)
    shutil.copy(path, copy)
    if with_wal:
        shutil.copy(wal_of(path), wal_of(copy))
    return copy


def count_in(path: Path) -> int:
    with closing(SqliteReader(path)) as reader:
        return int(reader.read(COUNT)[0][0])


def refused(path: Path) -> bool:
    for use in (SqliteReader, partial(SqliteStore, package="icefall.node"), partial(copy_store, target=path / "no")):
        with pytest.raises(StoreCorrupt, match="copied while a program wrote it, without its -wal file"):
            use(path)
    return True


def test_a_copy_without_its_wal_is_refused_and_left_alone(kit: SqliteKit) -> None:
    store = kit.open(V1)
    put(store, range(10))
    put(store, range(10, 20))
    lost = copied(kit.path, "lost.sqlite")
    before = lost.read_bytes()
    assert refused(lost)
    assert lost.read_bytes() == before
    assert not wal_of(lost).exists()
    assert count_in(copied(kit.path, "both.sqlite", with_wal=True)) == 20
    store.close()
    assert count_in(copied(kit.path, "closed.sqlite")) == 20
    assert not wal_of(kit.path).exists()


def test_a_stopped_store_is_whole_while_readers_stay(kit: SqliteKit) -> None:
    store = kit.open(V1)
    store.is_only_writer = True
    put(store, range(10))
    staying = kit.reader()
    assert staying.read(COUNT) == [(10,)]
    store.close()
    assert count_in(copied(kit.path, "copy.sqlite")) == 10
    assert staying.read(COUNT) == [(10,)]


def test_another_writer_that_closes_keeps_the_mark(kit: SqliteKit) -> None:
    """As `icefall keys` beside a program."""
    put(kit.open(V1), range(10))
    other = kit.open(V1)
    put(other, range(10, 20))
    other.close()
    assert refused(copied(kit.path, "copy.sqlite"))


def test_an_empty_wal_is_none(kit: SqliteKit) -> None:
    """SQLite creates it for whoever looks at the copy first."""
    put(kit.open(V1), range(10))
    lost = copied(kit.path, "lost.sqlite")
    with closing(sqlite3.connect(f"{lost.as_uri()}?mode=ro", uri=True)) as looking:
        looking.execute(COUNT).fetchall()
    assert wal_of(lost).exists()
    assert refused(lost)


def test_every_moment_of_writing_is_marked(kit: SqliteKit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after merges, complete or not: a reader that stays at an old state keeps a merge from being complete."""
    monkeypatch.setattr(wal, "MERGE_BYTES", 100_000)
    store = kit.open(V1)
    put(store, range(10))
    merged = set()
    for number in range(1, 30):
        put(store, range(number * 10, number * 10 + 10), size=4000)
        merged.add(kit.path.stat().st_size)
        assert refused(copied(kit.path, f"copy{number}.sqlite"))
    assert len(merged) > 5
    with closing(sqlite3.connect(kit.path, isolation_level=None)) as staying:
        staying.execute("begin")
        staying.execute(COUNT).fetchall()
        for number in range(30, 60):
            put(store, range(number * 10, number * 10 + 10), size=4000)
            assert refused(copied(kit.path, f"copy{number}.sqlite"))
    store.close()
    assert count_in(copied(kit.path, "closed.sqlite")) == 600


def test_the_wal_does_not_grow_without_end(kit: SqliteKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal, "MERGE_BYTES", 100_000)
    store = kit.open(V1)
    sizes = []
    for number in range(50):
        put(store, range(number * 10, number * 10 + 10), size=4000)
        sizes.append(wal_of(kit.path).stat().st_size)
    assert max(sizes) < 300_000
    assert max(sizes[25:]) <= max(sizes[:25])


def test_a_store_that_is_only_opened_stays_whole(kit: SqliteKit) -> None:
    kit.open(V1).close()
    before = kit.path.read_bytes()
    kit.open(V1)
    assert kit.path.read_bytes() == before
    assert count_in(copied(kit.path, "copy.sqlite")) == 0


def test_looking_into_the_file_keeps_the_locks_of_this_process(kit: SqliteKit) -> None:
    """Without them another process would take itself for the last one, and remove the -wal file."""
    store = kit.open(V1)
    put(store, range(10))
    assert wal._id_in_file(kit.path) == WRITING_ID
    script = f"import sqlite3; c = sqlite3.connect({str(kit.path)!r}); c.execute({COUNT!r}).fetchall(); c.close()"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=LIMIT_S)
    assert wal_of(kit.path).stat().st_size > 0


def killed(kit: SqliteKit, before_the_end: str) -> None:
    """A process that writes rows 0 to 9 and ends by a signal, with a reader open."""
    script = f"""
import os, pathlib, signal, sqlite3, sys
sys.path.insert(0, {str(kit.path.parent)!r})
from icefall.db.sqlite import SqliteStore
store = SqliteStore(pathlib.Path({str(kit.path)!r}), {package_of(kit.path.parent, "sqlite", V1)!r})
for number in range(10):
    store.write_here(lambda tx: tx.run({PUT!r}, dict(id=number, text="x")))
{before_the_end}
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=LIMIT_S)
    assert ended.returncode == -signal.SIGKILL


# Between the two marks of a merge: the -wal file says the same as the file.
IN_A_MERGE = f"store._writer.execute('pragma application_id = {WRITING_ID}')"
MERGED = f"{IN_A_MERGE}\nstore._writer.execute('pragma wal_checkpoint(passive)')"


@pytest.mark.parametrize("moment", ["", IN_A_MERGE, MERGED])
@pytest.mark.parametrize("reader_stays", [True, False])
def test_a_store_whose_program_was_killed_is_whole(kit: SqliteKit, moment: str, *, reader_stays: bool) -> None:
    kit.open(V1).close()
    staying = kit.reader()
    if not reader_stays:
        staying.close()
    killed(kit, moment)
    assert not lost_its_wal(kit.path)
    assert count_in(kit.path) == 10
    store = kit.open(V1)
    put(store, range(10, 20))
    store.close()
    staying.close()
    assert count_in(kit.path) == 20


def test_readers_leave_the_wal_where_it_is(kit: SqliteKit) -> None:
    killed(kit, "")
    readers = [SqliteReader(kit.path) for _ in range(3)]
    for reader in readers:
        assert reader.read(COUNT) == [(10,)]
        reader.close()
    assert wal_of(kit.path).stat().st_size > 0
    assert count_in(kit.path) == 10


def test_another_program_that_merges_the_wal_leaves_a_whole_store(kit: SqliteKit) -> None:
    killed(kit, "")
    assert id_in(kit.path) == WRITING_ID
    with closing(sqlite3.connect(kit.path)) as shell:
        assert shell.execute(COUNT).fetchall() == [(10,)]
    assert not wal_of(kit.path).exists()
    assert id_in(kit.path) == APPLICATION_ID
    assert count_in(kit.path) == 10


def test_an_open_that_fails_leaves_a_whole_store(kit: SqliteKit) -> None:
    """It is the last to close, and merges a -wal file that a program left between the marks of a merge."""
    kit.open(V1 | {"0102_more": "create table more (id integer);"}).close()
    killed_package = package_of(kit.path.parent, "sqlite", V1 | {"0102_more": "create table more (id integer);"})
    store = SqliteStore(kit.path, killed_package)
    put(store, range(10))
    store._writer.execute(f"pragma application_id = {WRITING_ID}")
    left = copied(kit.path, "left.sqlite", with_wal=True)
    store.close()
    with pytest.raises(StoreError, match="newer"):
        SqliteStore(left, package_of(kit.path.parent, "sqlite", V1))
    assert count_in(left) == 10


def test_a_disk_that_is_full_at_the_end_keeps_the_wal(kit: SqliteKit) -> None:
    """The mark cannot be corrected, so the -wal file must stay."""
    limit = f"""
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat({str(wal_of(kit.path))!r}).st_size, resource.RLIM_INFINITY))
store.close()"""
    killed(kit, IN_A_MERGE + limit)
    assert wal_of(kit.path).stat().st_size > 0
    assert count_in(kit.path) == 10
    assert asyncio.run(kit.open(V1).rows(COUNT)) == [(10,)]


def test_a_backup_of_a_store_in_use_is_whole(kit: SqliteKit) -> None:
    store = kit.open(V1)
    put(store, range(10))
    copies = [kit.path.with_name(f"{name}.sqlite") for name in ("usual", "merging")]
    copy_store(kit.path, copies[0])
    store._writer.execute(f"pragma application_id = {WRITING_ID}")
    copy_store(kit.path, copies[1])
    for copy in copies:
        wal_of(copy).unlink(missing_ok=True)
        assert id_in(copy) == APPLICATION_ID
        assert count_in(copy) == 10
    refused(copied(kit.path, "lost.sqlite"))
