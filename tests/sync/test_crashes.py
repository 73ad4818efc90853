"""Killed at its n-th write, again and again: what was followed in the end is what a clean run follows.

ICEFALL_FUZZ_CRASHES: how often.
"""

import os
import random
import sqlite3
from pathlib import Path

from tests.forked import exit_code_of
from tests.sync.crash import run
from tests.upstream.replay import Replay
from tests.upstream.threaded import in_thread
from tests.xchain.stored import digest

from icefall.node.store import store_path

CRASHES = int(os.environ.get("ICEFALL_FUZZ_CRASHES", "5"))


def test_kill_9_at_any_write_while_following(tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    clean.mkdir()
    source = random.Random(20261115)
    heights: set[int] = set()
    with in_thread(Replay()) as upstream:
        assert exit_code_of(run, clean, upstream.url) == 0
        crashes = 0
        while crashes < CRASHES:  # one history after the other, each killed until it gets to its end
            crashed = tmp_path / f"crashed-{crashes}"
            crashed.mkdir()
            while exit_code_of(run, crashed, upstream.url, source.randint(4, 900)) != 0:
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
