"""A chain of the user with the ID of a recorded one: the demo's data makes room, the user's is never touched."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from icefall.config.load import load
from icefall.config.settings import Config
from icefall.db.lock import StoreLock
from icefall.demo.chains import own_genesis
from icefall.run.demo_data import drop_demo_data, taken_ids
from icefall.run.stores import chain_files, open_chain_store

ANVIL = "31337"


def config(data_dir: Path, chain_id: str = ANVIL) -> Config:
    (data_dir / "icefall.toml").write_text(f'[[chain]]\nid = "{chain_id}"\nrpc = ["http://127.0.0.1:8545"]\n')
    loaded = load("up", [f"--data-dir={data_dir}"], {"HOME": str(data_dir)}, data_dir).config
    return msgspec.structs.replace(loaded)


def stored(data_dir: Path, genesis: str, chain_id: str = ANVIL) -> Path:
    """A chain's store that began with this genesis."""
    (data_dir / "chains").mkdir()
    open_chain_store(data_dir, chain_id).close()
    path = chain_files(data_dir, chain_id)[0]
    with closing(sqlite3.connect(path)) as store:
        store.execute("insert into meta (name, value) values ('genesis_hash', ?)", [genesis])
        store.commit()
    return path


def test_only_chains_with_a_genesis_of_their_own_are_recognised() -> None:
    assert set(own_genesis()) == {ANVIL}


def test_demo_data_is_dropped_for_a_configured_chain(tmp_path: Path) -> None:
    path = stored(tmp_path, own_genesis()[ANVIL])
    assert taken_ids(tmp_path) == set()
    assert drop_demo_data(config(tmp_path, "777")) == []
    assert path.exists()
    lock = StoreLock(path.with_suffix(".lock"))
    assert drop_demo_data(config(tmp_path)) == []
    assert path.exists(), "a program that runs keeps it"
    lock.release()
    assert drop_demo_data(config(tmp_path)) == [ANVIL]
    assert not any(one.exists() for one in chain_files(tmp_path, ANVIL))
    assert drop_demo_data(config(tmp_path)) == []


def test_data_of_the_users_own_chain_stays(tmp_path: Path) -> None:
    path = stored(tmp_path, "0x" + "11" * 32)
    assert drop_demo_data(config(tmp_path)) == []
    assert path.exists()
    assert taken_ids(tmp_path) == {ANVIL}, "the demo leaves that ID alone"


@pytest.mark.parametrize("content", [b"", b"no store at all"])
def test_a_file_that_cannot_be_read_stays(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "chains").mkdir()
    chain_files(tmp_path, ANVIL)[0].write_bytes(content)
    assert drop_demo_data(config(tmp_path)) == []
    assert chain_files(tmp_path, ANVIL)[0].read_bytes() == content
