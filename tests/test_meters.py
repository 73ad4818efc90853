"""Counters of calls: each process its own file, whoever is asked adds them up."""

import os
import subprocess
import sys
import time
from pathlib import Path

from icefall.observe.counters import CallCounters, CallCounts, alive, clear, process_figures, processes, totals

LABELS = ["a", "b", "(no endpoint)"]

OTHER = """
import pathlib, sys
from icefall.observe.counters import Meters
meters = Meters({labels!r}, pathlib.Path({folder!r}))
for _ in range(3):
    meters.end(0, meters.begin(0), failed=False)
meters.begin(1)
print("counted", flush=True)
sys.stdin.read()
"""


def other(folder: Path) -> "subprocess.Popen[str]":
    script = OTHER.format(labels=LABELS, folder=str(folder))
    started = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout
    assert started.stdout.readline() == "counted\n"
    return started


def test_calls_failures_time_and_what_is_in_flight(tmp_path: Path) -> None:
    meters = CallCounters(LABELS, tmp_path)
    began = meters.begin(0)
    assert totals(tmp_path, 3)[0] == CallCounts(0, 0, 0, 1)
    time.sleep(0.01)
    meters.end(0, began, failed=False)
    meters.end(1, meters.begin(1), failed=True)
    a, b, none = totals(tmp_path, 3)
    assert (a.calls, a.failures, a.in_flight) == (1, 0, 0)
    assert 10_000_000 <= a.duration_ns < 10_000_000_000
    assert (b.calls, b.failures, b.in_flight) == (1, 1, 0)
    assert none == CallCounts(0, 0, 0, 0)


def test_a_request_that_no_row_answers_counts_as_the_last_label(tmp_path: Path) -> None:
    meters = CallCounters(LABELS, tmp_path)
    meters.refuse()
    assert totals(tmp_path, 3)[2] == CallCounts(1, 1, 0, 0)


def test_processes_are_added_up(tmp_path: Path) -> None:
    meters = CallCounters(LABELS, tmp_path)
    meters.end(0, meters.begin(0), failed=False)
    with other(tmp_path) as second, other(tmp_path) as third:
        assert processes(tmp_path) == sorted([os.getpid(), second.pid, third.pid])
        a, b, _ = totals(tmp_path, 3)
        assert (a.calls, b.in_flight) == (7, 2)
        for process in (second, third):
            process.communicate()


def test_a_process_that_was_killed_keeps_its_counts_and_has_nothing_in_flight(tmp_path: Path) -> None:
    with other(tmp_path) as second:
        assert totals(tmp_path, 3)[1].in_flight == 1
        second.kill()
    a, b, _ = totals(tmp_path, 3)
    assert (a.calls, b.in_flight) == (3, 0)
    assert processes(tmp_path) == [second.pid]
    assert process_figures(second.pid) is None


def test_a_fresh_start_counts_from_zero(tmp_path: Path) -> None:
    CallCounters(LABELS, tmp_path).refuse()
    (tmp_path / "levels").touch()
    clear(tmp_path)
    assert totals(tmp_path, 3) == [CallCounts(0, 0, 0, 0)] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["levels"]
    clear(tmp_path / "none")


def test_files_of_another_table_or_half_made_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "1.meters").write_bytes(b"")
    (tmp_path / "2.meters").write_bytes(b"\x01" * 40)
    (tmp_path / "x.meters").write_bytes(b"\x01" * 4096)
    assert len(totals(tmp_path, 3)) == 3
    assert processes(tmp_path) == [1, 2]


def test_more_rows_than_a_page_holds(tmp_path: Path) -> None:
    meters = CallCounters([str(n) for n in range(1000)], tmp_path)
    meters.end(999, meters.begin(999), failed=False)
    assert totals(tmp_path, 1000)[999].calls == 1


def test_without_a_directory_nothing_is_written(tmp_path: Path) -> None:
    meters = CallCounters(LABELS, None)
    meters.end(0, meters.begin(0), failed=False)
    meters.refuse()
    assert list(tmp_path.iterdir()) == []


def test_what_the_kernel_says_of_a_process() -> None:
    figures = process_figures(os.getpid())
    assert figures is not None
    assert figures.cpu_seconds > 0
    assert 1_000_000 < figures.resident_bytes < 100_000_000_000
    assert figures.open_files >= 3
    assert abs(figures.started_unix - time.time()) < 86400
    assert process_figures(2**22 + 1) is None


def test_alive() -> None:
    assert alive(os.getpid())
    assert alive(1)
    assert not alive(2**22 + 1)
