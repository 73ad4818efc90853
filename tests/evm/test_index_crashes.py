"""Killed while it indexes, again and again: in the end there is what a clean run indexes.

Most children are forked from a process that has imported everything: imports are most of their time.
"""

import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import psycopg
import pytest
from tests.evm import index_crash
from tests.evm.digest import digests
from tests.store.opened import tables_of
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread

CRASHES = int(os.environ.get("ICEFALL_FUZZ_CRASHES", "12"))
REAL_KILLS = max(2, min(10, CRASHES // 6))
ROOT = Path(__file__).parents[2]
LAST = {"geth-1": 160, "anvil-1": 300}
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([index_crash.__name__])


def arguments(path: Path, replay: EvmReplay, last: int, *more: str) -> list[str]:
    return [str(path), replay.url, str(replay.chain_id), str(last), *more]


def start_child(path: Path, replay: EvmReplay, last: int, *more: str) -> BaseProcess:
    given = (arguments(path, replay, last, *more), dict(os.environ))
    child = FORKING.Process(target=index_crash.forked, args=given, daemon=True)
    child.start()
    return child


def run_child(path: Path, replay: EvmReplay, last: int, *more: str) -> int:
    child = start_child(path, replay, last, *more)
    child.join(120)
    assert child.exitcode in (0, -signal.SIGKILL), "standard error says why"
    return child.exitcode


@pytest.mark.parametrize("chain", LAST)
def test_kill_9_at_any_write(chain: str, tmp_path: Path) -> None:
    source = random.Random(20261115)
    last, clean, tips = LAST[chain], tmp_path / "clean.sqlite", set()
    with in_thread(EvmReplay(chain)) as replay:
        assert run_child(clean, replay, last) == 0
        expected = digests(clean)
        crashes, number = 0, 0
        while crashes < CRASHES // len(LAST):
            number += 1
            crashed = tmp_path / f"crashed-{number}.sqlite"
            while run_child(crashed, replay, last, str(source.randint(2, source.choice((60, 400, 900))))) != 0:
                crashes += 1
                tips.add(tip_of(crashed))
            assert digests(crashed) == expected
    assert len(tips) >= min(3, CRASHES // 4), "the crashes were all at one block"


def test_kill_9_at_any_moment(tmp_path: Path) -> None:
    source = random.Random(4)
    chain = "anvil-1"
    with in_thread(EvmReplay(chain)) as replay:
        clean, crashed = tmp_path / "clean.sqlite", tmp_path / "crashed.sqlite"
        assert run_child(clean, replay, LAST[chain]) == 0
        for _ in range(REAL_KILLS):
            command = [sys.executable, "-m", index_crash.__name__, *arguments(crashed, replay, LAST[chain])]
            child = subprocess.Popen(command, cwd=ROOT)
            time.sleep(source.uniform(0.3, 1.6))
            child.kill()
            child.wait()
        assert run_child(crashed, replay, LAST[chain]) == 0
        assert digests(crashed) == digests(clean)


def tip_of(path: Path) -> int:
    try:
        with tables_of(path) as tables:
            ((newest,),) = tables.rows("block", "coalesce(max(number), -1)")[1]
    except (sqlite3.OperationalError, psycopg.errors.UndefinedTable):  # not even migrated
        return -2
    return int(newest)
