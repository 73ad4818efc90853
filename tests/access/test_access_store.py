"""The access store: made by whoever is first, keys of which only the hash is kept, secrets that stay."""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from icefall.access.command import keys_command
from icefall.access.store import (
    AccessReader,
    NameTaken,
    add_key,
    all_keys,
    ensure_store,
    key_hash,
    new_key,
    open_reader,
    page_token_secret,
    revoke_key,
    store_path,
)
from icefall.db.engine import StoreError
from icefall.errors import StartRefused

ENSURE = "import pathlib, sys; from icefall.access import store; store.ensure_store(pathlib.Path(sys.argv[1]))"
TIERS = ["free", "pro"]


def secret(data_dir: Path) -> bytes:
    reader = open_reader(data_dir)
    try:
        return page_token_secret(reader)
    finally:
        reader.close()


def test_the_secret_is_made_once(tmp_path: Path) -> None:
    ensure_store(tmp_path)
    first = secret(tmp_path)
    assert len(first) == 32
    ensure_store(tmp_path)
    assert secret(tmp_path) == first
    (tmp_path / "other").mkdir()
    ensure_store(tmp_path / "other")
    assert secret(tmp_path / "other") != first


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    ensure_store(tmp_path)
    reader = open_reader(tmp_path)  # while it is open there are a log and an index beside the file
    try:
        found = [path for path in tmp_path.iterdir() if path.name.startswith("access")]
        assert len(found) >= 2
        assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
    finally:
        reader.close()


def test_any_number_of_processes_may_make_it_at_once(tmp_path: Path) -> None:
    starting = [
        subprocess.Popen([sys.executable, "-c", ENSURE, str(tmp_path)], stderr=subprocess.PIPE) for _ in range(6)
    ]
    for process in starting:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b"")
    assert len(secret(tmp_path)) == 32


def test_a_store_without_its_secret_is_told(tmp_path: Path) -> None:
    ensure_store(tmp_path)
    with pytest.raises(StoreError, match="cannot be opened"):
        open_reader(tmp_path / "elsewhere")
    if os.getuid():
        (tmp_path / "shut").mkdir(mode=0o500)
        with pytest.raises(StoreError, match="cannot be written"):
            ensure_store(tmp_path / "shut")


def test_keys_are_random_and_only_their_hashes_are_kept(tmp_path: Path) -> None:
    key = add_key(tmp_path, "alice", "pro", 1_800_000_000)
    assert key.startswith("ice_")
    assert len({new_key() for _ in range(100)} | {key}) == 101
    assert len(key) == 4 + 43  # 32 bytes
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.encode() not in stored
    assert key_hash(key) in stored


def test_a_key_is_known_until_it_is_revoked_and_then_known_as_revoked(tmp_path: Path) -> None:
    key = add_key(tmp_path, "alice", "pro", 5)
    reader = open_reader(tmp_path)
    access = AccessReader(reader)
    assert asyncio.run(access.key(key)) == ("alice", "pro", None)
    assert asyncio.run(access.key(key + "x")) is None
    assert asyncio.run(access.key("\ud800")) is None
    with pytest.raises(NameTaken):
        add_key(tmp_path, "alice", "free", 6)
    assert revoke_key(tmp_path, "alice", 7)
    assert not revoke_key(tmp_path, "alice", 8)
    assert asyncio.run(access.key(key)) == ("alice", "pro", 7)
    again = add_key(tmp_path, "alice", "free", 9)
    assert asyncio.run(access.key(again)) == ("alice", "free", None)
    assert all_keys(tmp_path) == [("alice", "free", 9, None), ("alice", "pro", 5, 7)]
    asyncio.run(access.check())
    reader.close()


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    data_dir = tmp_path / "not" / "there"
    assert keys_command("list", data_dir, "", "", TIERS) == "There are no keys."
    assert not data_dir.exists()
    said = keys_command("add", data_dir, "alice", "", TIERS)
    key = said.splitlines()[0]
    assert "alice (tier free)" in said
    assert "cannot be shown again" in said
    with pytest.raises(StartRefused, match="a key named alice already"):
        keys_command("add", data_dir, "alice", "pro", TIERS)
    keys_command("add", data_dir, "bob", "pro", TIERS)
    listed = keys_command("list", data_dir, "", "", TIERS)
    assert [line.split()[:2] for line in listed.splitlines()] == [["NAME", "TIER"], ["alice", "free"], ["bob", "pro"]]
    assert key not in listed
    assert keys_command("revoke", data_dir, "alice", "", TIERS) == "The key of alice is revoked."
    with pytest.raises(StartRefused, match="no key named alice"):
        keys_command("revoke", data_dir, "alice", "", TIERS)
    assert len(keys_command("list", data_dir, "", "", TIERS).splitlines()[2].split()) == 6  # with a time of revocation


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    store_path(tmp_path).write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    with pytest.raises(StartRefused, match=r"access\.sqlite"):
        keys_command("list", tmp_path, "", "", TIERS)
