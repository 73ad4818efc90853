"""`icefall backup` of an instance that indexes, and `icefall restore`: nothing is lost, nothing damaged is used."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.evm.digest import HOLDERS, digests
from tests.forked import run_program
from tests.server import serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import LIMIT_S, until

from icefall.cli import main
from icefall.evm.storing.store import store_path

LAST = 400


def tip(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as store:
            return int(store.execute("select coalesce(max(number), -1) from block").fetchone()[0])
    except sqlite3.Error:
        return -1


def test_a_chain_backed_up_while_it_is_indexed(tmp_path: Path) -> None:
    """Indexing goes on from the restored copy, and ends where an index without interruption does."""
    with in_thread(EvmReplay("geth-1")) as replay:
        config = tmp_path / "icefall.toml"
        config.write_text(f'[[chain]]\nid = "{replay.chain_id}"\nrpc = ["{replay.url}"]\n')
        running, restored = tmp_path / "running", tmp_path / "restored"
        path = store_path(running, str(replay.chain_id))
        settings = (f"--config-file={config}", "--log-level=off")
        command = [sys.executable, "-m", "icefall", "index", f"--data-dir={running}", f"--to={LAST}", *settings]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as indexer:
            until(lambda: tip(path) >= 20, "the first blocks")
            taken = run_program("backup", str(tmp_path / "copy"), f"--data-dir={running}")
            code = indexer.wait(LIMIT_S)
        assert (taken.returncode, code) == (0, 0), taken.stderr
        assert f"chains/{replay.chain_id}.sqlite: " in taken.stdout
        done = run_program("restore", str(tmp_path / "copy"), f"--data-dir={restored}")
        assert done.returncode == 0, done.stderr
        copied = store_path(restored, str(replay.chain_id))
        assert 20 <= tip(copied) <= LAST
        done = run_program("index", f"--data-dir={restored}", f"--to={LAST}", *settings)
        assert done.returncode == 0, done.stderr
    got, wanted = digests(copied), digests(path)
    assert {table for table in wanted if got[table] != wanted[table]} <= HOLDERS


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Of a node with a key, taken while it runs."""
    target = tmp_path / "backups" / "1"
    with serving("node", tmp_path) as server:
        assert run_program("keys", "add", "--name=wallet", f"--data-dir={server.data_dir}").returncode == 0
        done = run_program("backup", str(target), f"--data-dir={server.data_dir}")
        assert done.returncode == 0, done.stderr
        again = run_program("backup", str(target), f"--data-dir={server.data_dir}")
        assert "name a new one for each backup" in again.stderr
    return target


def test_a_node_is_the_same_after_a_restore(backup: Path, tmp_path: Path) -> None:
    with serving("node", tmp_path) as before:
        identity = before.call("/ext/info", "info.getNodeID")["result"]
    files = {file["path"] for file in json.loads((backup / "backup.json").read_text())["files"]}
    assert files == {"node.sqlite", "access.sqlite", "staking/staker.crt", "staking/staker.key"}
    assert {path.stat().st_mode & 0o777 for path in backup.glob("*.sqlite")} == {0o600}
    restored = tmp_path / "restored"
    assert run_program("restore", str(backup), f"--data-dir={restored / 'data'}").returncode == 0
    assert "wallet" in run_program("keys", "list", f"--data-dir={restored / 'data'}").stdout
    with serving("node", restored) as after:
        assert after.call("/ext/info", "info.getNodeID")["result"] == identity
    refused = run_program("restore", str(backup), f"--data-dir={restored / 'data'}")
    assert (refused.returncode, "holds node.sqlite already" in refused.stderr) == (1, True)


def test_a_damaged_backup_is_refused(backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(folder: Path) -> str:
        assert main(["restore", str(folder), f"--data-dir={tmp_path / 'new'}"]) == 1
        return capsys.readouterr().err

    with (backup / "node.sqlite").open("r+b") as file:
        file.seek(5000)
        file.write(b"damage")
    assert "the backup is damaged" in refused(backup)
    (backup / "node.sqlite").unlink()
    assert "the backup is incomplete" in refused(backup)
    (backup / "backup.json").write_text("{")
    assert "is damaged" in refused(backup)
    (backup / "backup.json").write_text('{"version":"0","taken":0,"files":[{"path":"../x","size":0,"sha256":""}]}')
    assert "outside of the backup" in refused(backup)
    assert "is not a backup" in refused(tmp_path)
    assert not (tmp_path / "new").exists()
