"""Killed at its n-th write in the DAG or behind it, again and again: in the end there is what a clean run follows."""

import os
import random
import sqlite3
from pathlib import Path

from tests.forked import exit_code_of
from tests.sync.dag_crash import run
from tests.sync.dag_scene import DagReplay, dag_txs
from tests.upstream.threaded import in_thread
from tests.xchain.stored import digest

from icefall.node.store import store_path

CRASHES = int(os.environ.get("ICEFALL_FUZZ_CRASHES", "5"))


def test_kill_9_at_any_write_in_the_dag(tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    clean.mkdir()
    source = random.Random(20261115)
    places: set[tuple[int, int]] = set()
    with in_thread(DagReplay()) as upstream:
        assert exit_code_of(run, clean, upstream.url) == 0
        crashes = 0
        while crashes < CRASHES:
            crashed = tmp_path / f"crashed-{crashes}"
            crashed.mkdir()
            # Early deaths leave it in the DAG; a commit that takes many writes needs a late one to be passed at all.
            while exit_code_of(run, crashed, upstream.url, source.randint(4, source.choice((150, 900)))) != 0:
                crashes += 1
                places.add(place(crashed))
            assert digest(crashed) == digest(clean)
    in_the_dag = {txs for height, txs in places if height == 0}
    assert len(in_the_dag) > min(CRASHES // 4, 4)  # runs of four leave some dozens of places
    assert all(0 <= txs <= len(dag_txs()) for txs in in_the_dag)


def place(directory: Path) -> tuple[int, int]:
    """Height, and how many transactions have been accepted since the genesis."""
    connection = sqlite3.connect(store_path(directory))
    try:
        found = connection.execute("select height, next_seq - genesis_txs from ledger").fetchone()
        indexed = connection.execute("select count(*) from container where series = 4").fetchone()[0]
    except sqlite3.OperationalError:  # not even migrated
        return -1, 0
    finally:
        connection.close()
    assert indexed == (found[1] if found else 0)  # the index goes with the checkpoint
    return found or (-1, 0)
