"""One writer per data directory: a lock that is released when its holder ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from icefall.db.disk import StoreLock
from icefall.db.engine import StoreError

HOLD = "import pathlib, sys, time; from icefall.db.disk import StoreLock; lock = StoreLock(pathlib.Path(sys.argv[1])); \
print('held', flush=True); time.sleep(60)"


def test_a_second_holder_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path / "node.lock")
    with pytest.raises(StoreError) as caught:
        StoreLock(tmp_path / "node.lock")
    assert str(caught.value) == (
        f"{tmp_path} is in use by process {os.getpid()}: stop that Icefall first, or use another --data-dir"
    )
    lock.release()
    StoreLock(tmp_path / "node.lock").release()


def test_the_lock_is_free_when_its_holder_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "node.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"in use by process {holder.pid}:"):
            StoreLock(path)
        holder.send_signal(signal.SIGKILL)
    StoreLock(path).release()
    assert path.read_text() == f"{os.getpid()}\n"


def test_a_child_process_does_not_inherit_it(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path / "node.lock")
    command = [sys.executable, "-c", "print('up', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        lock.release()
        StoreLock(tmp_path / "node.lock").release()
        child.communicate(b"\n")


def test_a_directory_that_cannot_be_written_is_refused_clearly(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written: No such file or directory; use another --data-dir"):
        StoreLock(tmp_path / "none" / "node.lock")
