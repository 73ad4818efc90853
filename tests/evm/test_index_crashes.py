"""Killed while it indexes, again and again: in the end there is what a clean run indexes."""

import os
import random
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.evm import index_crash
from tests.evm.digest import digests
from tests.forked import exit_code_of
from tests.store.opened import tables_of
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.threaded import in_thread

CRASHES = int(os.environ.get("ICEFALL_FUZZ_CRASHES", "8"))
REAL_KILLS = max(2, min(10, CRASHES // 6))
ROOT = Path(__file__).parents[2]
LAST = {"geth-1": 100, "anvil-1": 300}


@pytest.mark.parametrize("chain", LAST)
def test_kill_9_at_any_write(chain: str, tmp_path: Path) -> None:
    source = random.Random(20261115)
    last, clean, tips = LAST[chain], tmp_path / "clean.sqlite", set()
    with in_thread(EvmReplay(chain)) as replay:
        child = partial(exit_code_of, index_crash.run)
        assert child(clean, replay.url, replay.chain_id, last) == 0
        expected = digests(clean)
        crashes, number = 0, 0
        while crashes < CRASHES // len(LAST):
            number += 1
            crashed = tmp_path / f"crashed-{number}.sqlite"
            given = crashed, replay.url, replay.chain_id, last
            while child(*given, source.randint(2, source.choice((60, 400, 900)))) != 0:
                crashes += 1
                tips.add(tip_of(crashed))
            assert digests(crashed) == expected
    assert len(tips) >= min(3, CRASHES // 4), "the crashes were all at one block"


def test_kill_9_at_any_moment(tmp_path: Path) -> None:
    source = random.Random(4)
    chain = "anvil-1"
    with in_thread(EvmReplay(chain)) as replay:
        clean, crashed = tmp_path / "clean.sqlite", tmp_path / "crashed.sqlite"
        given = replay.url, replay.chain_id, LAST[chain]
        assert exit_code_of(index_crash.run, clean, *given) == 0
        for _ in range(REAL_KILLS):
            command = [sys.executable, "-m", index_crash.__name__, str(crashed), *map(str, given)]
            child = subprocess.Popen(command, cwd=ROOT)
            time.sleep(source.uniform(0.3, 1.6))
            child.kill()
            child.wait()
        assert exit_code_of(index_crash.run, crashed, *given) == 0
        assert digests(crashed) == digests(clean)


def tip_of(path: Path) -> int:
    try:
        with tables_of(path) as tables:
            ((newest,),) = tables.rows("block", "coalesce(max(number), -1)")[1]
    except (sqlite3.OperationalError, psycopg.errors.UndefinedTable):  # not even migrated
        return -2
    return int(newest)
