"""The README's commands, run as they are written: only addresses, ports and data directories are this test's own."""

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.counterparts import program
from tests.server import Server, serving
from tests.upstream.replay import Replay, in_thread

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
NODE_URL, UPSTREAM_URL = "http://127.0.0.1:9650", "http://host:9650"
ICEFALL = ".venv/bin/icefall"
FENCED = re.compile(r"^```sh\n(?P<sh>.*?)^```\n(?:```json\n(?P<json>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
ANYTHING = "..."


class Shown(NamedTuple):
    """A block of commands, and the answer that the README shows for it; empty where it shows none."""

    section: str
    commands: str
    answer: str

    @property
    def is_call(self) -> bool:
        return self.commands.startswith("curl ")

    @property
    def follows(self) -> bool:
        return UPSTREAM_URL in self.commands


def shown() -> Iterator[Shown]:
    for section in re.split(r"^## ", README, flags=re.MULTILINE):
        for block in FENCED.finditer(section):
            yield Shown(section.partition("\n")[0], block["sh"], block["json"] or "")


BLOCKS = list(shown())
FOLLOWING = [block for block in BLOCKS if block.section == "Follow an existing node"]
CALLS = [block for block in BLOCKS if block.is_call and block not in FOLLOWING]
PROGRAMS = [
    line for block in BLOCKS if not (block.is_call or block.follows) for line in block.commands.splitlines() if line
]


def called(server: Server, commands: str) -> str:
    """What the commands print, if it is JSON, in one line."""
    program("curl")
    command = commands.replace(NODE_URL, server.url())
    done = subprocess.run(["/bin/sh", "-ec", command], capture_output=True, check=False, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return json.dumps(json.loads(done.stdout), separators=(",", ":"), ensure_ascii=False)


def agrees(answer: str, shown: str) -> bool:
    """Whether an answer is the one shown; there `...` stands for anything."""
    first, *others = "".join(part.strip() for part in shown.splitlines()).split(ANYTHING)
    if not others:
        return answer == first
    *middle, last = others
    if not (answer.startswith(first) and answer.endswith(last)):
        return False
    at, end = len(first), len(answer) - len(last)
    for part in middle:
        found = answer.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


def settings_of(line: str) -> tuple[str, list[str]]:
    """Verb and settings of an icefall command."""
    name, verb, *settings = shlex.split(line, comments=True)
    assert name == ICEFALL
    return verb, settings


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """What `make up` starts."""
    assert "\nup: $(STAMP)\n\t@exec $(BIN)/icefall up $(ARGS)\n" in (ROOT / "Makefile").read_text()
    with serving("up", tmp_path_factory.mktemp("readme"), "--demo") as server:
        yield server


def test_the_readme_shows_what_this_test_looks_for() -> None:
    assert "Two commands do everything" in README
    assert len(CALLS) >= 5
    assert all(block.answer for block in CALLS)
    assert [block.is_call for block in FOLLOWING] == [False, True]
    assert len(PROGRAMS) >= 3
    assert README.count("```sh\n") == len(BLOCKS)
    unfenced = [line for line in README.splitlines() if re.match(rf" {{4}}(curl|{re.escape(ICEFALL)})\b", line)]
    assert unfenced == []


def test_how_answers_are_compared() -> None:
    assert agrees('{"a":1}', '{"a":1}')
    assert agrees('{"a":1,"b":[2,3],"c":4}', '{"a":...,"b":[\n  2,...],\n  ...4}')
    for wrong in ('{"a":2}', '{"a":1,"b":2}', '{"a":1'):
        assert not agrees(wrong, '{"a":1}')
    for wrong in ('{"b":1}', '{"a":1,"b":2,"c":5}', '{"a":"c":4}'):
        assert not agrees(wrong, '{"a":...,"b":...,"c":4}')


@pytest.mark.parametrize("block", CALLS, ids=lambda block: re.findall(r"/ext/\w+|\w+\.\w+(?=\")", block.commands)[-1])
def test_a_call_gives_the_answer_that_is_shown(up: Server, block: Shown) -> None:
    answer = called(up, block.commands)
    assert agrees(answer, block.answer), f"{answer}\nis not\n{block.answer}"


@pytest.mark.parametrize("line", PROGRAMS)
def test_a_program_runs(tmp_path: Path, line: str) -> None:
    verb, settings = settings_of(line)
    if verb == "config":
        command = [sys.executable, "-m", "icefall.cli", verb, f"--data-dir={tmp_path}", *settings]
        done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        assert "http-port" in done.stdout
        return
    with serving(verb, tmp_path, *settings) as server:
        assert server.ask("GET", "/ext/health").status == 200


def test_following_as_shown(tmp_path: Path) -> None:
    start, health = FOLLOWING
    with in_thread(Replay()) as upstream:
        upstream.bootstrapped["P"] = False  # X's first import waits for P, so that there is time to look
        upstream.show(P=0)
        verb, settings = settings_of(start.commands.replace(UPSTREAM_URL, upstream.url))
        with serving(verb, tmp_path, *settings, ready=False) as server:
            answer, deadline = "", time.monotonic() + 10
            while not agrees(answer, health.answer):  # the first checks may run before the first answer has come
                assert time.monotonic() < deadline, f"{answer}\nis not\n{health.answer}"
                time.sleep(0.1)
                answer = called(server, health.commands)
            assert server.ask("POST", "/ext/bc/X").status == 503
            assert server.ask("GET", "/ext/health/readiness").status == 503
            upstream.bootstrapped["P"] = True
            upstream.show(P=13)
            server.await_ready()
