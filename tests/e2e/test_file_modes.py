"""Who may read what the program creates: its owner alone, as SECURITY.md promises, whatever the umask is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.forked import run_program
from tests.server import serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import until


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """The one of most systems. Forked programs have that of the process they are forked from, which is the same."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def shared_paths(data_dir: Path) -> dict[str, str]:
    """What others than the owner may read, write or enter, with its mode."""
    found = {path: path.lstat().st_mode & 0o777 for path in (data_dir, *data_dir.rglob("*"))}
    return {str(path.relative_to(data_dir)): oct(mode) for path, mode in found.items() if mode & 0o077}


def names(data_dir: Path) -> set[str]:
    return {path.name for path in data_dir.rglob("*")}


def test_up_with_an_indexed_chain(tmp_path: Path) -> None:
    config = tmp_path / "icefall.toml"
    with in_thread(EvmReplay("cchain-1")) as replay:
        config.write_text(f'[[chain]]\nid = "{replay.chain_id}"\nrpc = ["{replay.url}"]\n')
        settings = ("--api-admin-enabled", f"--config-file={config}", "--no-demo", "--rate-limits=on")
        with serving("up", tmp_path, *settings) as server:
            assert server.call("/ext/admin", "admin.memoryProfile")["result"] == {}
            until(lambda: "43112.sqlite-wal" in names(server.data_dir), "the store of the chain is open")
            expected = {"logs", "node.sqlite", "node.sqlite-shm", "access.sqlite", "mem.profile", "process.json", "run"}
            assert expected <= names(server.data_dir)
            assert shared_paths(server.data_dir) == {}
        assert shared_paths(server.data_dir) == {}


@pytest.mark.parametrize("verb", ["node", "data", "metrics"])
def test_other_servers(verb: str, tmp_path: Path) -> None:
    with serving(verb, tmp_path / "new") as server:
        assert shared_paths(server.data_dir) == {}


def test_verbs_that_end(tmp_path: Path) -> None:
    data_dir = tmp_path / "new" / "data"
    assert run_program("keys", "add", "--name=wallet", f"--data-dir={data_dir}").returncode == 0
    assert run_program("migrate", f"--data-dir={data_dir}").returncode == 0
    assert names(data_dir) >= {"access.sqlite", "access.lock", "node.sqlite"}
    assert shared_paths(data_dir) == {}
