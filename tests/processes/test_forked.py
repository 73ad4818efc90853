"""Children of the supervisor are forked from it: what they inherit, and how they end."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.waiting import until

from icefall.compose.child import ENGINE, INDEXER, ChildArguments
from icefall.config.load import load
from icefall.processes.forked import Child

CONFIG = load("up", ["--data-dir=unused"], {}, Path("/")).config
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def ended(child: Child) -> int:
    until(lambda: not child.is_alive(), "the end of the child")
    assert child.code is not None
    return child.code


def started(
    run: Callable[[ChildArguments], int], role: str = INDEXER, close: Callable[[], None] = lambda: None
) -> Child:
    return Child(ChildArguments(role, "up", CONFIG), run, close)


def until_stdin_ends(_: ChildArguments) -> int:
    while os.read(0, 100):
        pass
    return 7


@pytest.fixture
def waiting() -> Iterator[Child]:
    child = started(until_stdin_ends)
    yield child
    child.kill()


@pytest.mark.parametrize("code", [0, 1, 75])
def test_the_result_is_the_exit_code(code: int) -> None:
    child = started(lambda _: code)
    assert ended(child) == code
    assert child.how_it_ended() == f"exit code {code}"


def test_an_exception_ends_only_the_child_and_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    here = os.getpid()

    def fails(_: ChildArguments) -> int:
        raise SystemExit("a bug")  # not even this may reach what lies above

    try:
        child = started(fails)
    finally:
        assert os.getpid() == here
    assert ended(child) == 1
    assert "SystemExit: a bug" in capfd.readouterr().err


def test_what_was_printed_before_is_printed_once(capfd: pytest.CaptureFixture[str]) -> None:
    sys.stdout.write("not flushed yet")
    assert ended(started(lambda _: 0)) == 0
    sys.stdout.flush()
    assert capfd.readouterr().out == "not flushed yet"


def test_a_signal_that_comes_at_once_is_not_lost() -> None:
    """The supervisor's own handler would swallow it."""
    swallowed: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: swallowed.append(number))
    try:
        for _ in range(30):
            child = started(until_stdin_ends)
            child.stop()
            assert ended(child) == -signal.SIGTERM
            assert child.how_it_ended() == "killed by SIGTERM"
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not swallowed


def test_a_child_that_does_not_end_is_killed(waiting: Child) -> None:
    waiting.kill()
    assert ended(waiting) == -signal.SIGKILL


def test_a_child_sees_the_end_of_its_supervisor_though_a_later_child_lives(waiting: Child) -> None:
    """A pipe has its end when every process has closed it."""
    later = started(until_stdin_ends, close=waiting.close)
    try:
        waiting.close()  # what the end of the supervisor does
        assert ended(waiting) == 7
        assert later.is_alive()
    finally:
        later.kill()


def is_ready(child: Child) -> bool:
    child.read_reports()
    return child.is_ready


def test_only_the_engine_reports_that_it_is_ready(capfd: pytest.CaptureFixture[str]) -> None:
    def reports(_: ChildArguments) -> int:
        os.write(1, b"ready\n")
        return until_stdin_ends(_)

    engine, other = started(reports, ENGINE), started(reports)
    try:
        until(lambda: is_ready(engine), "the report")
        assert not is_ready(other)
    finally:
        engine.kill()
        other.kill()
    capfd.readouterr()


def test_a_message_to_a_child_that_has_ended_reaches_no_other() -> None:
    gone = started(lambda _: 0)
    assert ended(gone) == 0
    reader, writer = os.pipe()  # has the numbers of its pipe now
    gone.send("hello")
    gone.read_reports()
    gone.close()
    os.close(writer)
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_a_child_has_a_name_and_a_session_of_its_own(waiting: Child) -> None:
    name = Path(f"/proc/{waiting.pid}/comm")
    until(lambda: name.read_text() == "icefall-indexer\n", "its name")
    assert os.getsid(waiting.pid) == waiting.pid
