"""Killed at its n-th write, again and again: what was followed in the end is what a clean run follows.

ICEFALL_FUZZ_CRASHES: how often.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.upstream.replay import Replay
from tests.upstream.threaded import in_thread
from tests.waiting import LIMIT_S
from tests.xchain.stored import digest

from icefall.node.store import store_path

CRASHES = int(os.environ.get("ICEFALL_FUZZ_CRASHES", "5"))
ROOT = Path(__file__).parents[2]


def run_child(directory: Path, url: str, *more: str) -> int:
    command = [sys.executable, "-m", "tests.follow.crash", str(directory), url, *more]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, timeout=LIMIT_S)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


def test_kill_9_at_any_write_while_following(tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    clean.mkdir()
    source = random.Random(20261115)
    heights: set[int] = set()
    with in_thread(Replay()) as upstream:
        assert run_child(clean, upstream.url) == 0
        crashes = 0
        while crashes < CRASHES:  # one history after the other, each killed until it gets to its end
            crashed = tmp_path / f"crashed-{crashes}"
            crashed.mkdir()
            while run_child(crashed, upstream.url, str(source.randint(4, 900))) != 0:
                crashes += 1
                heights.add(height(crashed))
            assert digest(crashed) == digest(clean)
    # It died in many places, not only before the first commit: runs of 16 blocks leave about a dozen heights.
    assert len(heights) > min(CRASHES // 4, 6)


def height(directory: Path) -> int:
    connection = sqlite3.connect(store_path(directory))
    try:
        found = connection.execute("select max(height) from ledger").fetchone()
    except sqlite3.OperationalError:  # not even migrated
        return -1
    finally:
        connection.close()
    return int(found[0]) if found[0] is not None else -1
