"""Killed at its n-th write, again and again: what was followed in the end is what a clean run follows."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from tests.upstream.replay import Replay, in_thread
from tests.xchain.stored import digest

CRASHES = int(os.environ.get("ICEFALL_FUZZ_CRASHES", "12"))
ROOT = Path(__file__).parents[2]


def run_child(directory: Path, url: str, *more: str) -> int:
    command = [sys.executable, "-m", "tests.follow.crash", str(directory), url, *more]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, timeout=60)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


def test_kill_9_at_any_write_while_following(tmp_path: Path) -> None:
    clean, crashed = tmp_path / "clean", tmp_path / "crashed"
    clean.mkdir()
    crashed.mkdir()
    source = random.Random(20261115)
    with in_thread(Replay()) as upstream:
        assert run_child(clean, upstream.url) == 0
        killed = 0
        for _ in range(CRASHES):
            killed += run_child(crashed, upstream.url, str(source.randint(4, 60))) != 0
        assert run_child(crashed, upstream.url) == 0
    assert killed
    assert digest(crashed) == digest(clean)
