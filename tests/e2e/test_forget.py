"""`icefall forget CHAIN`: what it deletes, and what it refuses."""

import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.program import outcome
from tests.forked import run_program
from tests.server import serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread

from icefall.compose.shared_chains import with_stored_chains
from icefall.compose.stores import stores_of
from icefall.config.load import load
from icefall.config.values import bare
from icefall.db.disk import StoreLock


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """A data directory with one indexed chain, of a config file that lists it."""
    with in_thread(EvmReplay("cchain-1")) as replay:
        config = tmp_path / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{replay.chain_id}"\nname = "C-Chain"\nrpc = ["{replay.url}"]\n')
        assert outcome("index", tmp_path / "data", f"--config-file={config}", "--to=3").code == 0
    return tmp_path


def forget(folder: Path, chain: str, *more: str) -> "subprocess.CompletedProcess[str]":
    return run_program("forget", chain, f"--data-dir={folder / 'data'}", *more, cwd=folder)


def test_a_chain_is_deleted_after_confirmation(indexed: Path) -> None:
    chains = indexed / "data" / "chains"
    other = chains / "9.sqlite"
    other.write_bytes(b"another chain")
    asked = forget(indexed, "43112")
    assert asked.returncode == 1
    assert "everything stored of chain 43112" in asked.stderr
    assert "Confirm with --yes" in asked.stderr
    assert (chains / "43112.sqlite").exists()
    done = forget(indexed, "c-chain", "--yes")  # by its name in the config file
    assert done.returncode == 0, done.stderr
    assert "the next start indexes it from its first block" in done.stdout
    assert list(chains.iterdir()) == [other]
    again = forget(indexed, "43112", "--yes")
    assert (again.returncode, "chain 43112 is not stored" in again.stderr, "stored are 9" in again.stderr) == (
        1,
        True,
        True,
    )


def test_a_chain_in_use_is_kept(indexed: Path) -> None:
    path = indexed / "data" / "chains" / "43112"
    lock = StoreLock(path.with_suffix(".lock"))
    refused = forget(indexed, "43112", "--yes")
    lock.release()
    assert refused.returncode == 1
    assert "is in use by process" in refused.stderr
    with serving("data", indexed, cwd=indexed) as server:
        refused = forget(indexed, "43112", "--yes")
        assert f"as process {server.process.pid}: stop it first" in refused.stderr
    assert path.with_suffix(".sqlite").exists()


def test_names_are_quoted(tmp_path: Path) -> None:
    """They may come from a script, or from a data directory that is not ours, and reach a terminal or a shell."""
    chains = tmp_path / "data" / "chains"
    chains.mkdir(parents=True)
    (chains / "9\x1b[2J.sqlite").touch()
    for name in ("\x1b[2J", "a b", "7; true"):
        refused = forget(tmp_path, name, "--yes")
        assert (refused.returncode, "\x1b" in refused.stderr) == (1, False)
        assert refused.stderr.startswith(f"icefall: chain {bare(name)} is not stored in ")
        assert refused.stderr.endswith(f"stored are {bare('9' + chr(27) + '[2J')}\n")
        assert bare(name)[0] == '"'
        refused = forget(tmp_path, name, "--yes", "--store=postgresql://nowhere/db")
        assert (
            refused.stderr == f"icefall: chain {bare(name)} is not in the configuration: name it by its EVM chain ID\n"
        )
    refused = forget(tmp_path, "\u00b2", "--yes", "--store=postgresql://nowhere/db")
    assert "is not in the configuration" in refused.stderr, "a digit, but none of an ID"
    refused = forget(tmp_path, "7", "--yes", "--store=postgresql://nowhere/db")
    delete = "delete from icefall_access.chain_config where chain_id = '7'"
    assert f"drop schema icefall_chain_7 cascade` and `{delete}` there" in refused.stderr


def listed(folder: Path) -> list[str]:
    """The chains that a reader without a config file serves."""
    config = load("data", (f"--data-dir={folder / 'data'}",), {}, folder / "data").config
    with closing(stores_of(config)) as stores:
        return [chain.id for chain in with_stored_chains(config, stores).chain]


def test_readers_no_longer_list_a_forgotten_chain(indexed: Path) -> None:
    assert listed(indexed) == ["43112"]
    assert forget(indexed, "43112", "--yes").returncode == 0
    assert listed(indexed) == []


def test_a_chain_whose_files_are_gone_is_unlisted(indexed: Path) -> None:
    """Its store was deleted by hand, or was a schema of a server that was dropped."""
    shutil.rmtree(indexed / "data" / "chains")
    done = forget(indexed, "43112", "--yes")
    assert (done.returncode, listed(indexed)) == (0, []), done.stderr
    assert "is not stored" in forget(indexed, "43112", "--yes").stderr


def test_a_chain_on_a_server_of_its_own_is_unlisted_here_afterwards(tmp_path: Path) -> None:
    config = tmp_path / "icefall.toml"
    config.write_text('[[chain]]\nid = "7"\nrpc = ["http://127.0.0.1:1"]\nstore = "postgresql://nowhere/db"\n')
    refused = forget(tmp_path, "7", "--yes")
    assert "drop schema icefall_chain_7 cascade` there; take the chain out of icefall.toml" in refused.stderr
    assert "run `icefall forget 7` again" in refused.stderr
