"""A store that is not written while too little disk space is free."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.store.engines import NOTES, SqliteKit

from icefall.db import disk
from icefall.db.disk import DiskGuard, DiskLow, FreeSpace, GuardedStore, free_space
from icefall.db.engine import Transaction

PUT = "insert into note (id, text) values (1, 'a')"
COUNT = "select count(*) from note"


def put_in_steps(tx: Transaction) -> Iterator[None]:
    tx.run(PUT)
    yield


def leave_free(monkeypatch: pytest.MonkeyPatch, percent: int) -> None:
    usage = SimpleNamespace(f_bavail=percent, f_blocks=100, f_frsize=4096)
    monkeypatch.setattr(disk, "os", SimpleNamespace(statvfs=lambda _: usage))


def test_free_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert free_space(tmp_path).available_bytes > 0
    leave_free(monkeypatch, 7)
    assert free_space(tmp_path) == FreeSpace(7 * 4096, 7)


def test_writes_wait_for_space_and_reads_do_not(
    monkeypatch: pytest.MonkeyPatch, kit: SqliteKit, tmp_path: Path
) -> None:
    now = [0.0]
    store = GuardedStore(kit.open({"schema": NOTES}), DiskGuard(tmp_path, 3, lambda: now[0]))
    leave_free(monkeypatch, 2)
    with pytest.raises(DiskLow, match=r"2 % of the disk of .* is free and 3 % is required"):
        asyncio.run(store.write(lambda tx: tx.run(PUT)))
    with pytest.raises(DiskLow):
        store.write_here(lambda tx: tx.run(PUT))
    with pytest.raises(DiskLow):
        asyncio.run(store.write_in_steps(put_in_steps))
    assert store.read(COUNT) == asyncio.run(store.rows(COUNT)) == [(0,)]
    leave_free(monkeypatch, 3)
    now[0] += 1.0
    asyncio.run(store.write_in_steps(put_in_steps))
    assert store.read(COUNT) == [(1,)]
