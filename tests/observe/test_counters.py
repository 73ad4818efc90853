"""Counters of calls: one file per process, and their totals."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.observe.full_disk import small_files

from icefall.observe.counters import (
    CallCounters,
    CallCounts,
    alive,
    clear,
    counters_directory,
    process_stats,
    processes,
    totals,
)

LABELS = ["a", "b", "(no endpoint)"]

OTHER = """
import pathlib, sys
from icefall.observe.counters import CallCounters
counters = CallCounters({labels!r}, pathlib.Path({folder!r}))
for _ in range(3):
    counters.end(0, counters.begin(0), failed=False)
counters.begin(1)
print("counted", flush=True)
sys.stdin.read()
"""


def other(folder: Path) -> "subprocess.Popen[str]":
    script = OTHER.format(labels=LABELS, folder=str(folder))
    started = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout
    assert started.stdout.readline() == "counted\n"
    return started


def test_calls_failures_duration_and_calls_in_flight(tmp_path: Path) -> None:
    counters = CallCounters(LABELS, tmp_path)
    began = counters.begin(0)
    assert totals(tmp_path, 3)[0] == CallCounts(0, 0, 0, 0, 1)
    time.sleep(0.01)
    counters.end(0, began, failed=False)
    counters.end(1, counters.begin(1), failed=True)
    a, b, none = totals(tmp_path, 3)
    assert (a.calls, a.failures, a.in_flight) == (1, 0, 0)
    assert 10_000_000 <= a.duration_ns < 10_000_000_000
    assert (b.calls, b.failures, b.in_flight) == (1, 1, 0)
    assert none == CallCounts(0, 0, 0, 0, 0)


def test_a_request_without_endpoint_counts_under_the_last_label(tmp_path: Path) -> None:
    counters = CallCounters(LABELS, tmp_path)
    counters.count_unrouted()
    assert totals(tmp_path, 3)[2] == CallCounts(1, 1, 0, 0, 0)


def test_processes_are_added_up(tmp_path: Path) -> None:
    counters = CallCounters(LABELS, tmp_path)
    counters.end(0, counters.begin(0), failed=False)
    with other(tmp_path) as second, other(tmp_path) as third:
        assert processes(tmp_path) == sorted([os.getpid(), second.pid, third.pid])
        a, b, _ = totals(tmp_path, 3)
        assert (a.calls, b.in_flight) == (7, 2)
        for process in (second, third):
            process.communicate()


def test_counts_of_a_killed_process_stay_but_not_its_calls_in_flight(tmp_path: Path) -> None:
    with other(tmp_path) as second:
        assert totals(tmp_path, 3)[1].in_flight == 1
        second.kill()
    a, b, _ = totals(tmp_path, 3)
    assert (a.calls, b.in_flight) == (3, 0)
    assert processes(tmp_path) == [second.pid]
    assert process_stats(second.pid) is None


def test_a_fresh_start_counts_from_zero(tmp_path: Path) -> None:
    """Counts of a program that still runs next to this one stay."""
    with subprocess.Popen(["true"]) as ended:
        pass
    old, running = (counters_directory(tmp_path, pid, "data") for pid in (ended.pid, os.getpid()))
    for directory in (old, running):
        CallCounters(LABELS, directory).count_unrouted()
    (tmp_path / "levels").touch()
    clear(tmp_path)
    assert totals(old, 3) == [CallCounts(0, 0, 0, 0, 0)] * 3
    assert totals(running, 3)[2].calls == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counters", "levels"]
    clear(tmp_path / "none")


def test_truncated_files_and_files_of_another_table_are_tolerated(tmp_path: Path) -> None:
    (tmp_path / "1.counters").write_bytes(b"")
    (tmp_path / "2.counters").write_bytes(b"\x01" * 40)
    (tmp_path / "x.counters").write_bytes(b"\x01" * 4096)
    assert len(totals(tmp_path, 3)) == 3
    assert processes(tmp_path) == [1, 2]


def test_more_rows_than_a_page_holds(tmp_path: Path) -> None:
    counters = CallCounters([str(n) for n in range(1000)], tmp_path)
    counters.end(999, counters.begin(999), failed=False)
    assert totals(tmp_path, 1000)[999].calls == 1


def test_without_a_directory_nothing_is_written(tmp_path: Path) -> None:
    counters = CallCounters(LABELS, None)
    counters.end(0, counters.begin(0), failed=False)
    counters.count_unrouted()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_counts_in_memory(tmp_path: Path) -> None:
    with small_files():
        counters = CallCounters(LABELS, tmp_path / "run")
    counters.end(0, counters.begin(0), failed=False)
    counters.count_unrouted()
    assert totals(tmp_path / "run", 3) == [CallCounts(0, 0, 0, 0, 0)] * 3


def test_the_space_of_a_file_is_allocated_before_it_is_used(tmp_path: Path) -> None:
    CallCounters([str(n) for n in range(1000)], tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_blocks * 512 >= 32 * 1000


def test_process_stats() -> None:
    stats = process_stats(os.getpid())
    assert stats is not None
    assert stats.cpu_seconds > 0
    assert 1_000_000 < stats.resident_bytes < 100_000_000_000
    assert stats.open_files >= 3
    assert abs(stats.started_unix - time.time()) < 86400
    assert process_stats(2**22 + 1) is None


def test_alive() -> None:
    assert alive(os.getpid())
    assert alive(1)
    assert not alive(2**22 + 1)
