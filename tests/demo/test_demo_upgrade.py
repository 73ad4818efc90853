"""The demo data of the release before is dropped; a chain of the user's own with that ID is never touched."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.upstream.evm_recording import recording

from icefall.compose.demo_data import EARLIER, drop_earlier_demo
from icefall.compose.stores import Stores, chain_files
from icefall.db.disk import StoreLock
from icefall.demo.chains import CHAINS

ANVIL = "31337"


def stored(data_dir: Path, genesis: str) -> Path:
    """A chain's store that began with this genesis."""
    (data_dir / "chains").mkdir()
    Stores(data_dir).chain_store(ANVIL).close()
    path = chain_files(data_dir, ANVIL)[0]
    with closing(sqlite3.connect(path)) as store:
        store.execute("insert into meta (name, value) values ('genesis_hash', ?)", [genesis])
        store.commit()
    return path


def test_no_recorded_chain_has_an_id_that_a_client_takes_by_default() -> None:
    ids = {chain.table["id"] for chain in CHAINS}
    assert not ids & {"1", "1337", ANVIL}
    assert not ids & set(EARLIER)
    assert EARLIER[ANVIL] == recording("anvil-1").meta["genesisHash"]


def test_the_data_of_the_release_before_is_dropped(tmp_path: Path) -> None:
    path = stored(tmp_path, EARLIER[ANVIL])
    lock = StoreLock(path.with_suffix(".lock"))
    assert drop_earlier_demo(tmp_path) == []
    assert path.exists(), "a program that runs keeps it"
    lock.release()
    assert drop_earlier_demo(tmp_path) == [ANVIL]
    assert not any(one.exists() for one in chain_files(tmp_path, ANVIL))
    assert drop_earlier_demo(tmp_path) == []


def test_a_chain_of_the_user_stays(tmp_path: Path) -> None:
    path = stored(tmp_path, "0x" + "11" * 32)
    assert drop_earlier_demo(tmp_path) == []
    assert path.exists()


@pytest.mark.parametrize("content", [b"", b"no store at all"])
def test_a_file_that_cannot_be_read_stays(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "chains").mkdir()
    chain_files(tmp_path, ANVIL)[0].write_bytes(content)
    assert drop_earlier_demo(tmp_path) == []
    assert chain_files(tmp_path, ANVIL)[0].read_bytes() == content
