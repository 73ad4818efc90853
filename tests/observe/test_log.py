"""Log lines: levels, formats, and files that are moved away or cannot be written."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.observe.full_disk import small_files
from tests.waiting import LIMIT_S

from icefall.observe import log_file
from icefall.observe.log import LEVELS, LevelPage, Log, Logs
from icefall.observe.log_file import LogFile, RepeatedLines, Rotation

NAMES = ["main", "X", "vm-factory"]


@pytest.fixture
def page() -> LevelPage:
    page = LevelPage.private(NAMES)
    for name in NAMES:
        page.put(name, "INFO", "WARN")
    return page


@pytest.fixture(autouse=True)
def _root_logger_stays_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# -- levels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log_level", LEVELS)
@pytest.mark.parametrize("display_level", ["VERBO", "WARN", "OFF"])
def test_a_line_is_written_where_its_level_is_enabled(page: LevelPage, log_level: str, display_level: str) -> None:
    page.put("X", log_level, display_level)
    assert page.get("X") == (log_level, display_level)
    for level, number in LEVELS.items():
        wanted = (number >= LEVELS[log_level], number >= LEVELS[display_level])
        assert page.sinks("X", number) == wanted, level
        assert page.wants(page.slot("X"), number) == any(wanted)
    assert page.get("main") == ("INFO", "WARN")


def test_the_page_is_shared_between_processes(tmp_path: Path) -> None:
    page = LevelPage.shared(NAMES, tmp_path / "levels", ("INFO", "INFO"), create=True)
    script = f"""
import pathlib, sys
from icefall.observe.log import LevelPage
page = LevelPage.shared({NAMES!r}, pathlib.Path({str(tmp_path / "levels")!r}), ("OFF", "OFF"), create=False)
for line in sys.stdin:
    print(*page.get(line.strip()), flush=True)
    page.put("main", "FATAL", "OFF")
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin
        assert other.stdout
        for level in ("INFO", "DEBUG", "OFF"):
            page.put("X", level, "ERROR")
            other.stdin.write("X\n")
            other.stdin.flush()
            assert other.stdout.readline() == f"{level} ERROR\n"  # at once, with nothing said
        assert page.get("main") == ("FATAL", "OFF")
        other.stdin.close()
    assert (tmp_path / "levels").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("create", [True, False])
def test_without_space_for_the_shared_page_the_levels_are_the_configured_ones(tmp_path: Path, create: bool) -> None:
    """The file is there but empty: the disk was full when it was created."""
    (tmp_path / "levels").touch()
    with small_files():
        page = LevelPage.shared(NAMES, tmp_path / "levels", ("WARN", "FATAL"), create=create)
        page.put("X", "DEBUG", "DEBUG")
    assert (page.get("main"), page.get("X")) == (("WARN", "FATAL"), ("DEBUG", "DEBUG"))


def test_a_missing_shared_page_means_the_configured_levels(tmp_path: Path) -> None:
    page = LevelPage.shared(NAMES, tmp_path / "levels", ("WARN", "FATAL"), create=False)
    assert page.get("main") == ("WARN", "FATAL")
    assert not (tmp_path / "levels").exists()


# -- lines -------------------------------------------------------------------------------------------------------


def test_a_line_in_a_file_is_one_json_object(page: LevelPage, tmp_path: Path) -> None:
    log = Log("X", "worker", page, LogFile(tmp_path / "logs" / "X.log"), io.StringIO(), as_json=True)
    log.info("it\nhappened", path=tmp_path, count=3, text="é\x00", inner={"a": [1]})
    log.debug("not wanted")
    log.error("bad")
    first, second = lines(tmp_path / "logs" / "X.log")
    assert list(first)[:5] == ["time", "level", "logger", "process", "message"]
    assert first == {
        "time": first["time"],
        "level": "INFO",
        "logger": "X",
        "process": "worker",
        "message": "it\nhappened",
        "path": str(tmp_path),
        "count": 3,
        "text": "é\x00",
        "inner": {"a": [1]},
    }
    assert (second["level"], second["message"]) == ("ERROR", "bad")


def test_the_terminal_shows_its_own_levels_in_either_form(page: LevelPage) -> None:
    for as_json in (True, False):
        terminal = io.StringIO()
        log = Log("main", "engine", page, None, terminal, as_json=as_json)
        log.info("quiet")
        log.warn("look", why="that")
        (line,) = terminal.getvalue().splitlines()
        if as_json:
            assert json.loads(line)["why"] == "that"
        else:
            assert line.endswith('] WARN  <main> look {"why":"that"}')
            assert "\x1b" not in line


def test_colours_are_for_terminals(page: LevelPage, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    Log("main", "engine", page, None, terminal, as_json=False).error("red")
    assert "\x1b[31mERROR\x1b[0m" in terminal.getvalue()


def test_a_closed_terminal_is_ignored(page: LevelPage) -> None:
    terminal = io.StringIO()
    terminal.close()
    Log("main", "engine", page, None, terminal, as_json=False).error("not shown")


def test_debugs_reports_whether_debug_is_enabled(page: LevelPage) -> None:
    log = Log("main", "engine", page, None, io.StringIO(), as_json=False)
    assert not log.is_debug()
    page.put("main", "OFF", "DEBUG")
    assert log.is_debug()


def test_library_lines_go_to_main_from_warn_up(page: LevelPage, tmp_path: Path) -> None:
    logs = Logs("engine", page, tmp_path, "json")
    logs.capture_library_logs()
    logging.getLogger("lib.part").info("chatter")
    logging.getLogger("lib.part").warning("careful: %s", 7)
    logging.getLogger("lib").critical("help")
    warned, failed = lines(tmp_path / "main.log")
    assert (warned["level"], warned["message"], warned["source"]) == ("WARN", "careful: 7", "lib.part")
    assert failed["level"] == "ERROR"


# -- files -------------------------------------------------------------------------------------------------------


def test_a_file_moved_away_is_opened_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "_REOPEN_S", 0.0)
    path = tmp_path / "main.log"
    file = LogFile(path)
    file.write(b"one\n")
    path.rename(tmp_path / "main.log.1")
    file.write(b"two\n")
    path.unlink()
    file.write(b"three\n")
    assert (tmp_path / "main.log.1").read_bytes() == b"one\n"
    assert path.read_bytes() == b"three\n"


def test_a_moved_file_is_checked_once_per_second(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "main.log")
    file.write(b"one\n")
    (tmp_path / "main.log").rename(tmp_path / "main.log.1")
    file.write(b"two\n")
    assert (tmp_path / "main.log.1").read_bytes() == b"one\ntwo\n"


def test_two_processes_append_whole_lines_to_one_file(tmp_path: Path) -> None:
    script = f"""
import pathlib
from icefall.observe.log_file import LogFile
file = LogFile(pathlib.Path({str(tmp_path / "main.log")!r}))
for number in range(500):
    file.write(b"x" * 200 + b"\\n")
"""
    started = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [process.wait(LIMIT_S) for process in started] == [0, 0]
    assert (tmp_path / "main.log").read_bytes() == (b"x" * 200 + b"\n") * 1000


def test_writing_continues_after_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "_REOPEN_S", 0.0)
    path = tmp_path / "main.log"
    path.symlink_to("/dev/full")
    file = LogFile(path)
    file.write(b"lost\n")
    file.write(b"lost too\n")
    path.unlink()
    file.write(b"kept\n")
    assert path.read_bytes() == b"kept\n"


def test_the_line_after_a_truncated_one_is_intact(tmp_path: Path) -> None:
    script = f"""
import pathlib, resource, signal
from icefall.observe.log_file import LogFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = LogFile(pathlib.Path({str(tmp_path / "main.log")!r}))
file.write(b'{{"n": 1}}\\n')
resource.setrlimit(resource.RLIMIT_FSIZE, (13, resource.RLIM_INFINITY))
file.write(b'{{"n": 2}}\\n')
file.write(b'{{"n": 3}}\\n')
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
file.write(b'{{"n": 4}}\\n')
file.write(b'{{"n": 5}}\\n')
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=LIMIT_S)
    assert (tmp_path / "main.log").read_text().splitlines() == ['{"n": 1}', '{"n"', '{"n": 4}', '{"n": 5}']


def test_a_directory_that_cannot_be_created_is_tolerated(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    file = LogFile(tmp_path / "logs" / "main.log")
    file.write(b"lost\n")
    (tmp_path / "logs").unlink()
    file.write(b"kept\n")
    assert (tmp_path / "logs" / "main.log").read_bytes() == b"kept\n"
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_a_full_file_is_rotated_and_only_so_many_are_kept(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "main.log", Rotation(bytes_max=10, files_max=2))
    for number in range(9):
        file.write(b"line %d\n" % number)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert kept == {"main.log": b"line 8\n", "main.log.1": b"line 6\nline 7\n", "main.log.2": b"line 4\nline 5\n"}


def test_with_zero_all_are_kept(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "main.log", Rotation(bytes_max=1, files_max=0))
    for number in range(12):
        file.write(b"%d\n" % number)
    assert len(list(tmp_path.iterdir())) == 12
    assert (tmp_path / "main.log.11").read_bytes() == b"0\n"


def test_two_processes_rotate_one_file_and_lose_no_line(tmp_path: Path) -> None:
    script = f"""
import pathlib
from icefall.observe.log_file import LogFile, Rotation
file = LogFile(pathlib.Path({str(tmp_path / "main.log")!r}), Rotation(10_000, 0))
for number in range(500):
    file.write(b"x" * 200 + b"\\n")
"""
    started = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [process.wait(LIMIT_S) for process in started] == [0, 0]
    files = list(tmp_path.iterdir())
    assert sorted(b"".join(path.read_bytes() for path in files).split()) == [b"x" * 200] * 1000
    assert len(files) > 5


# -- repeated lines ----------------------------------------------------------------------------------------------


def test_repeated_lines_are_counted(page: LevelPage, tmp_path: Path) -> None:
    log = Log("X", "worker", page, LogFile(tmp_path / "X.log"), io.StringIO(), as_json=True)
    now = [0.0]
    log._repeats._clock = lambda: now[0]
    for _ in range(153):
        log.error("the store failed", why="full")
        log.error("the store failed", why="locked")
    now[0] = 10.0
    log.info("something else")
    assert [line["message"] for line in lines(tmp_path / "X.log")] == [
        "the store failed",
        "the store failed",
        "the store failed (152 more)",
        "the store failed (152 more)",
        "something else",
    ]
    log.error("the store failed", why="full")
    assert lines(tmp_path / "X.log")[-1]["why"] == "full"


def test_debug_lines_are_not_counted(page: LevelPage, tmp_path: Path) -> None:
    page.put("X", "DEBUG", "OFF")
    log = Log("X", "worker", page, LogFile(tmp_path / "X.log"), io.StringIO(), as_json=True)
    for _ in range(3):
        log.debug("request")
    assert len(lines(tmp_path / "X.log")) == 3


def test_only_the_last_lines_are_remembered() -> None:
    reported: list[tuple[str, str, int]] = []
    repeats = RepeatedLines(lambda *line: reported.append(line), lambda: 0.0)
    for number in range(1000):
        assert not repeats.is_repeated("INFO", str(number), b"")
    assert repeats.is_repeated("INFO", "999", b"")
    assert not repeats.is_repeated("INFO", "0", b"")
    assert len(repeats._lines) < 100
    assert reported == []
