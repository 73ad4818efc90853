"""The access store: created by the first process, hashes of keys, secrets that do not change."""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT_S

from icefall.access.store import (
    AccessReader,
    NameTaken,
    key_hash,
    new_key,
    page_token_secret,
    store_path,
)
from icefall.commands.keys import keys_command
from icefall.compose.stores import Stores
from icefall.db.engine import StoreError
from icefall.errors import StartRefused

ENSURE = """
import pathlib, sys
from icefall.compose.stores import Stores
Stores(pathlib.Path(sys.argv[1])).access_writer().ensure()
"""
TIERS = ["free", "pro"]


def secret(data_dir: Path) -> bytes:
    reader = Stores(data_dir).access_reader()
    try:
        return page_token_secret(reader)
    finally:
        reader.close()


def test_the_secret_is_created_once(tmp_path: Path) -> None:
    Stores(tmp_path).access_writer().ensure()
    first = secret(tmp_path)
    assert len(first) == 32
    Stores(tmp_path).access_writer().ensure()
    assert secret(tmp_path) == first
    (tmp_path / "other").mkdir()
    Stores(tmp_path / "other").access_writer().ensure()
    assert secret(tmp_path / "other") != first


def test_other_users_cannot_read_it(tmp_path: Path) -> None:
    Stores(tmp_path).access_writer().ensure()
    reader = Stores(tmp_path).access_reader()  # while it is open there are a log and an index next to the file
    try:
        found = [path for path in tmp_path.iterdir() if path.name.startswith("access")]
        assert len(found) >= 2
        assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
    finally:
        reader.close()


def test_concurrent_processes_may_create_it(tmp_path: Path) -> None:
    starting = [
        subprocess.Popen([sys.executable, "-c", ENSURE, str(tmp_path)], stderr=subprocess.PIPE) for _ in range(6)
    ]
    for process in starting:
        _, errors = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, errors) == (0, b"")
    assert len(secret(tmp_path)) == 32


def test_a_missing_or_unwritable_store_is_an_error(tmp_path: Path) -> None:
    Stores(tmp_path).access_writer().ensure()
    with pytest.raises(StoreError, match="cannot be opened"):
        Stores(tmp_path / "elsewhere").access_reader()
    if os.getuid():
        (tmp_path / "shut").mkdir(mode=0o500)
        with pytest.raises(StoreError, match="cannot be written"):
            Stores(tmp_path / "shut").access_writer().ensure()


def test_keys_are_random_and_only_their_hashes_are_stored(tmp_path: Path) -> None:
    key = Stores(tmp_path).access_writer().add_key("alice", "pro", 1_800_000_000)
    assert key.startswith("ice_")
    assert len({new_key() for _ in range(100)} | {key}) == 101
    assert len(key) == 4 + 43  # 32 bytes
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.encode() not in stored
    assert key_hash(key) in stored


def test_a_key_is_valid_until_it_is_revoked(tmp_path: Path) -> None:
    key = Stores(tmp_path).access_writer().add_key("alice", "pro", 5)
    reader = Stores(tmp_path).access_reader()
    access = AccessReader(reader)
    assert asyncio.run(access.key(key)) == ("alice", "pro", None, 0)
    assert asyncio.run(access.key(key + "x")) is None
    assert asyncio.run(access.key("\ud800")) is None
    with pytest.raises(NameTaken):
        Stores(tmp_path).access_writer().add_key("alice", "free", 6)
    assert Stores(tmp_path).access_writer().revoke_key("alice", 7)
    assert not Stores(tmp_path).access_writer().revoke_key("alice", 8)
    assert asyncio.run(access.key(key)) == ("alice", "pro", 7, 0)
    again = Stores(tmp_path).access_writer().add_key("alice", "free", 9)
    assert asyncio.run(access.key(again)) == ("alice", "free", None, 0)
    assert Stores(tmp_path).access_writer().all_keys() == [("alice", "free", 9, None, 0), ("alice", "pro", 5, 7, 0)]
    asyncio.run(access.check())
    reader.close()


def test_the_output_of_the_command(tmp_path: Path) -> None:
    data_dir = tmp_path / "not" / "there"
    assert keys_command("list", Stores(data_dir).access_writer(), "", "", TIERS) == "There are no keys."
    assert not data_dir.exists()
    output = keys_command("add", Stores(data_dir).access_writer(), "alice", "", TIERS)
    key = output.splitlines()[0]
    assert "alice (tier free)" in output
    assert "shown only this once" in output
    with pytest.raises(StartRefused, match="a key named alice already"):
        keys_command("add", Stores(data_dir).access_writer(), "alice", "pro", TIERS)
    keys_command("add", Stores(data_dir).access_writer(), "bob", "pro", TIERS)
    listed = keys_command("list", Stores(data_dir).access_writer(), "", "", TIERS)
    assert [line.split()[:2] for line in listed.splitlines()] == [["NAME", "TIER"], ["alice", "free"], ["bob", "pro"]]
    assert key not in listed
    assert (
        keys_command("revoke", Stores(data_dir).access_writer(), "alice", "", TIERS) == "The key of alice is revoked."
    )
    with pytest.raises(StartRefused, match="the key of alice is revoked already"):
        keys_command("revoke", Stores(data_dir).access_writer(), "alice", "", TIERS)
    assert (
        len(keys_command("list", Stores(data_dir).access_writer(), "", "", TIERS).splitlines()[2].split()) == 6
    )  # with a time of revocation


def test_a_file_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    store_path(tmp_path).write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    with pytest.raises(StartRefused, match=r"access\.sqlite"):
        keys_command("list", Stores(tmp_path).access_writer(), "", "", TIERS)


OPEN_AND_CLOSE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("select count(*) from api_key").fetchone()
connection.close()
"""


def test_writing_a_key_keeps_the_locks_of_a_store_that_is_open(tmp_path: Path) -> None:
    """A process with the store open writes it a second time, as workers and servers do. If that drops SQLite's locks,
    the next program that opens and closes the file takes itself for the last one and deletes the -wal file in use."""
    stores = Stores(tmp_path)
    opened = stores.access_store()
    try:
        stores.access_writer().add_key("first", "free", 1)
        wal = Path(f"{store_path(tmp_path)}-wal")
        before = wal.stat().st_ino
        subprocess.run([sys.executable, "-c", OPEN_AND_CLOSE, str(store_path(tmp_path))], check=True, timeout=LIMIT_S)
        assert wal.exists()
        assert wal.stat().st_ino == before
    finally:
        opened.close()
