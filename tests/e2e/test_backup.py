"""`icefall backup` of an instance that indexes, and `icefall restore`: nothing is lost, nothing damaged is used."""

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.evm.digest import HOLDERS, digests
from tests.forked import run_program
from tests.server import serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread
from tests.waiting import LIMIT_S, until

from icefall.cli import main
from icefall.commands.backup import back_up
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
    assert (refused.returncode, "already: restore into a new --data-dir" in refused.stderr) == (1, True)


def test_secrets_of_webhooks_can_be_read_after_a_restore(tmp_path: Path) -> None:
    def secret(folder: Path, verb: str, call: str) -> str:
        with serving("data", folder) as server:
            return str(server.ask(verb, f"/v1/webhooks:{call}", listener="data").json()["secret"])

    made = secret(tmp_path, "POST", "generateOrRotateSharedSecret")
    copy, restored = tmp_path / "copy", tmp_path / "restored"
    assert main(["backup", str(copy), f"--data-dir={tmp_path / 'data'}"]) == 0
    assert main(["restore", str(copy), f"--data-dir={restored / 'data'}"]) == 0
    assert {(folder / "webhook.key").stat().st_mode & 0o777 for folder in (copy, restored / "data")} == {0o600}
    assert secret(restored, "GET", "getSharedSecret") == made


def test_what_delivery_has_read_is_copied_before_what_it_reads(tmp_path: Path) -> None:
    """Events that come while the stores are copied are in the copy of an outbox, and are delivered after a restore."""
    (tmp_path / "chains").mkdir()
    made = ("access.sqlite", "chains/1.sqlite", "node.sqlite")
    for name in made:
        with closing(sqlite3.connect(tmp_path / name)) as store:
            store.execute("create table meta (name, value)")
    lines: list[str] = []
    back_up(tmp_path, tmp_path.with_name("copy"), lambda line: lines.append(str(line)))
    copied = [line.split(": ")[0] for line in lines]
    assert sorted(copied) == sorted(made)
    assert copied[0] == "access.sqlite"


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


# -- backups that come from elsewhere ----------------------------------------------------------------------------------


def made_backup(folder: Path, *names: str) -> Path:
    """A backup whose manifest is right, with these files."""
    files = []
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"content")
        files.append({"path": name, "size": 7, "sha256": hashlib.sha256(b"content").hexdigest()})
    (folder / "backup.json").write_text(json.dumps({"version": "0", "taken": 0, "files": files}))
    return folder


def restored(folder: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What it says, to stdout if it succeeds and to stderr if it is refused."""
    code = main(["restore", str(folder), f"--data-dir={data_dir}"])
    said = capsys.readouterr()
    assert (code == 0) == bool(said.out) != bool(said.err)
    return said.out + said.err


@pytest.mark.parametrize(
    "name",
    [
        ".ssh/authorized_keys",
        "plugins/vm",
        "icefall.toml.d/x",
        "chains/../x",
        "staking/a/b",
        "chains/.x.sqlite",
        "x\ny",
    ],
)
def test_only_names_that_a_backup_has_are_restored(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made_backup(tmp_path / "backup", "node.sqlite", name)
    said = restored(folder, tmp_path / "home", capsys)
    assert re.search("which is (no file|outside) of (a|the) backup", said)
    assert said.count("\n") == 1, "a name is quoted"
    assert not (tmp_path / "home").exists()


def test_a_directory_that_holds_anything_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, home = made_backup(tmp_path / "backup", "node.sqlite"), tmp_path / "home"
    home.mkdir()
    (home / ".profile").touch()
    assert "holds .profile already" in restored(folder, home, capsys)
    (home / ".profile").unlink()
    assert "1 files restored" in restored(folder, home, capsys)


def test_modes_are_those_of_a_new_data_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("node.sqlite", "chains/7.sqlite", "staking/staker.key", "icefall.toml")
    folder, home = made_backup(tmp_path / "backup", *names), tmp_path / "home"
    for name in names:
        (folder / name).chmod(0o6755)
    (folder / "chains").chmod(0o777)
    said = restored(folder, home, capsys)
    assert f"A config file came along, {home / 'icefall.toml'}" in said
    modes = {str(path.relative_to(home)): oct(path.stat().st_mode & 0o7777) for path in (home, *home.rglob("*"))}
    assert modes == dict.fromkeys(names, "0o600") | {".": "0o700", "chains": "0o700", "staking": "0o700"}


def test_no_link_of_a_backup_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "7.sqlite").write_bytes(b"content")
    linked_file, linked_folder = (
        made_backup(tmp_path / "a", "chains/7.sqlite"),
        made_backup(tmp_path / "b", "chains/7.sqlite"),
    )
    (linked_file / "chains" / "7.sqlite").unlink()
    (linked_file / "chains" / "7.sqlite").symlink_to(elsewhere / "7.sqlite")
    (linked_folder / "chains" / "7.sqlite").unlink()
    (linked_folder / "chains").rmdir()
    (linked_folder / "chains").symlink_to(elsewhere)
    for folder in (linked_file, linked_folder):
        assert "the backup is incomplete" in restored(folder, tmp_path / "home", capsys)
    pipe = made_backup(tmp_path / "c", "node.sqlite")
    (pipe / "node.sqlite").unlink()
    os.mkfifo(pipe / "node.sqlite")
    assert "is not a file" in restored(pipe, tmp_path / "home", capsys)
    assert not (tmp_path / "home").exists()
    named_by_link = tmp_path / "latest"
    named_by_link.symlink_to(made_backup(tmp_path / "d", "node.sqlite"))
    assert "1 files restored" in restored(named_by_link, tmp_path / "home", capsys)


def test_a_restore_that_fails_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made_backup(tmp_path / "backup", "node.sqlite", "chains/7.sqlite")
    copied = shutil.copyfileobj

    def fail_at_the_chain(source: Any, target: Any, size: int) -> None:
        if "7.sqlite" in str(Path(f"/proc/self/fd/{target.fileno()}").readlink()):
            raise OSError(28, "No space left on device")
        copied(source, target, size)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfileobj", fail_at_the_chain)
        assert "cannot be written, and nothing is left there" in restored(folder, tmp_path / "home", capsys)
    assert not (tmp_path / "home").exists()
    assert "2 files restored" in restored(folder, tmp_path / "home", capsys)


def test_what_is_backed_up_can_be_restored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files and folders of the operator's own in the folder of the identity are no reason to refuse it later."""
    data_dir = tmp_path / "data"
    assert run_program("keys", "add", "--name=wallet", f"--data-dir={data_dir}").returncode == 0
    (data_dir / "staking" / "old").mkdir(parents=True)
    for name in ("staking/signer.key", "staking/.hidden", "staking/old/staker.key", "icefall.toml"):
        (data_dir / name).touch()
    assert main(["backup", str(tmp_path / "backup"), f"--data-dir={data_dir}"]) == 0
    capsys.readouterr()
    assert "3 files restored" in restored(tmp_path / "backup", tmp_path / "home", capsys)
    assert (tmp_path / "home" / "staking" / "signer.key").exists()
