"""What readers keep of a store is valid until its next commit, and not a moment longer."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from icefall.db.changes import ChangeCount, LastRead, StoreVersion, unknown_version
from icefall.db.engine import Transaction
from icefall.db.sqlite import SqliteReader, SqliteStore
from icefall.node.store import PACKAGE, SQL
from icefall.xchain.object_cache import ObjectCache


def _put(tx: Transaction, value: str) -> None:
    tx.run(SQL.put_meta, {"name": "x", "value": value})


class CountedReads:
    def __init__(self, directory: Path, version: StoreVersion | None = None) -> None:
        self._path = directory / "node.sqlite"
        self.count = 0
        self.last = LastRead(version or unknown_version, self._read)

    async def _read(self) -> str:
        self.count += 1
        with closing(SqliteReader(self._path)) as reader:
            return str((await reader.rows(SQL.meta, {"name": "x"}))[0][0])

    def get(self) -> tuple[str, int]:
        """The value, and how many times the store was read for it."""
        before = self.count
        return asyncio.run(self.last.get()), self.count - before


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "node.sqlite", PACKAGE, changes=tmp_path / "changes")
    store.write_here(lambda tx: _put(tx, "1"))
    yield store
    store.close()


def test_a_value_is_read_again_after_each_commit(tmp_path: Path, store: SqliteStore) -> None:
    reads = CountedReads(tmp_path, StoreVersion(tmp_path / "changes"))
    assert [reads.get(), reads.get()] == [("1", 1), ("1", 0)]
    store.write_here(lambda tx: _put(tx, "2"))
    assert [reads.get(), reads.get()] == [("2", 1), ("2", 0)]


def test_what_is_rolled_back_changes_nothing(tmp_path: Path, store: SqliteStore) -> None:
    reads = CountedReads(tmp_path, StoreVersion(tmp_path / "changes"))
    reads.get()

    def fail(tx: Transaction) -> None:
        _put(tx, "2")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write_here(fail)
    assert reads.get() == ("1", 0)


def test_nothing_is_kept_while_a_commit_is_under_way(tmp_path: Path, store: SqliteStore) -> None:
    """A writer that was killed within one leaves the number odd; the next writer ends that."""
    changes = ChangeCount(tmp_path / "changes")
    reads = CountedReads(tmp_path, StoreVersion(tmp_path / "changes"))
    reads.get()
    changes.begin()
    assert [reads.get(), reads.get()] == [("1", 1), ("1", 1)]
    store.close()
    SqliteStore(tmp_path / "node.sqlite", PACKAGE, changes=tmp_path / "changes").close()
    assert [reads.get(), reads.get()] == [("1", 1), ("1", 0)]


@pytest.mark.parametrize("size", [None, 0])
@pytest.mark.usefixtures("store")
def test_without_a_page_the_store_is_read_each_time(tmp_path: Path, size: int | None) -> None:
    """On a full disk the writer has made none, or an empty file."""
    page = tmp_path / "none"
    if size is not None:
        page.write_bytes(bytes(size))
    reads = CountedReads(tmp_path, StoreVersion(page))
    assert [reads.get(), reads.get()] == [("1", 1), ("1", 1)]


def test_objects_are_kept_until_a_commit_and_within_their_size(tmp_path: Path, store: SqliteStore) -> None:
    cache: ObjectCache[str, int] = ObjectCache(StoreVersion(tmp_path / "changes"), 10)
    now = cache.now()
    cache.put(now, "a", 1, 4)
    cache.put(now, "b", 2, 6)
    assert cache.now() == {"a": 1, "b": 2}
    cache.put(now, "too large", 3, 11)
    assert cache.now() == {"a": 1, "b": 2}
    cache.put(now, "c", 3, 1)
    assert cache.now() == {"c": 3}, "beyond the size, those before are dropped"
    store.write_here(lambda tx: _put(tx, "2"))
    assert cache.now() == {}
    cache.put(now, "made before the commit", 1)
    assert cache.now() == {}


def test_without_a_version_no_object_is_kept() -> None:
    cache: ObjectCache[str, int] = ObjectCache(unknown_version, 10)
    cache.put(cache.now(), "a", 1)
    assert cache.now() == {}
