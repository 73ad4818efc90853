"""The commands of README.md and docs/first-hour.md, run as they are written: only addresses, ports and data directories
are this test's own."""

import fnmatch
import json
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.counterparts import npm_project, program
from tests.demo.prepared import demo_serving
from tests.server import Server, serving
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.replay import Replay
from tests.upstream.threaded import in_thread
from tests.waiting import LIMIT_S, until

from icefall import __version__

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FIRST_HOUR = (ROOT / "docs" / "first-hour.md").read_text()
PORTS = {"node": 9650, "data": 9652, "metrics": 9653}
UPSTREAM_URL = "http://host:9650"
ICEFALL = ".venv/bin/icefall"
FENCED = re.compile(r"^```sh\n(?P<sh>.*?)^```\n(?:```(?:json|http)\n(?P<answer>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
TOML = re.compile(r"^```toml\n(?P<toml>.*?)^```\n", re.MULTILINE | re.DOTALL)
ANYTHING = "..."


class Shown(NamedTuple):
    """A block of commands, and the answer that the page shows for it; empty where it shows none."""

    section: str
    commands: str
    answer: str

    @property
    def is_call(self) -> bool:
        return self.commands.startswith("curl ")

    @property
    def follows(self) -> bool:
        return UPSTREAM_URL in self.commands


def shown(page: str) -> Iterator[Shown]:
    for section in re.split(r"^## ", page, flags=re.MULTILINE):
        for block in FENCED.finditer(section):
            yield Shown(section.partition("\n")[0], block["sh"], block["answer"] or "")


BLOCKS = [*shown(README), *shown(FIRST_HOUR)]


def section(name: str) -> list[Shown]:
    return [block for block in BLOCKS if block.section == name]


INTERFACES, MORE_CALLS = section("A call for each interface"), section("More calls")
CALLS = INTERFACES + MORE_CALLS
SENDING, INDEXING = section("Send a transaction"), section("Index your own EVM chain")
FOLLOWING, ACCESS = section("Follow an existing node"), section("Keys and limits")
PROGRAMS = [line for block in section("Run it your way") for line in block.commands.splitlines()]


def called(server: Server, commands: str) -> str:
    """What the commands print, if it is JSON, in one line."""
    return json.dumps(json.loads(run(server, commands)), separators=(",", ":"), ensure_ascii=False)


def run(server: Server, commands: str, cwd: Path | None = None) -> str:
    """What the commands print, in a shell, at the server's own addresses."""
    program("curl")
    for listener, port in PORTS.items():
        if f"{listener}Uri" in server.process_info:
            commands = commands.replace(f"http://127.0.0.1:{port}", server.url(listener))
    done = subprocess.run(
        ["/bin/sh", "-ec", commands], capture_output=True, check=False, text=True, timeout=LIMIT_S, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    """What `make up` starts, once the demo is indexed."""
    assert "\nup: $(STAMP)\n\t@exec $(BIN)/icefall up $(ARGS)\n" in (ROOT / "Makefile").read_text()
    with demo_serving(tmp_path_factory.mktemp("readme")) as server:
        yield server


def test_the_pages_show_what_this_test_looks_for() -> None:
    assert "Two commands do everything" in README
    assert (len(INTERFACES), len(MORE_CALLS)) == (6, 6)
    assert all(block.is_call and block.answer for block in CALLS)
    for calls in (INTERFACES, MORE_CALLS):
        assert all(f"127.0.0.1:{port}/" in "".join(block.commands for block in calls) for port in PORTS.values())
    assert [block.is_call for block in FOLLOWING] == [False, True]
    assert (len(SENDING), len(INDEXING), len(ACCESS), len(PROGRAMS)) == (1, 1, 2, 3)
    tested = [*CALLS, *SENDING, *INDEXING, *FOLLOWING, *ACCESS, *section("Run it your way")]
    assert (README + FIRST_HOUR).count("```sh\n") == len(BLOCKS) == len(tested)
    lines = (README + FIRST_HOUR).splitlines()
    unfenced = [line for line in lines if re.match(rf" {{4}}(curl|{re.escape(ICEFALL)})\b", line)]
    assert unfenced == []


def test_how_answers_are_compared() -> None:
    assert agrees('{"a":1}', '{"a":1}')
    assert agrees('{"a":1,"b":[2,3],"c":4}', '{"a":...,"b":[\n  2,...],\n  ...4}')
    for wrong in ('{"a":2}', '{"a":1,"b":2}', '{"a":1'):
        assert not agrees(wrong, '{"a":1}')
    for wrong in ('{"b":1}', '{"a":1,"b":2,"c":5}', '{"a":"c":4}'):
        assert not agrees(wrong, '{"a":...,"b":...,"c":4}')


@pytest.mark.parametrize("block", CALLS, ids=lambda block: re.findall(r"127.0.0.1:\d+([/\w:]+)", block.commands)[0])
def test_a_call_gives_the_answer_that_is_shown(up: Server, block: Shown) -> None:
    answer = called(up, block.commands)
    assert agrees(answer, block.answer), f"{answer}\nis not\n{block.answer}"


@pytest.mark.parametrize("line", PROGRAMS)
def test_a_program_runs(tmp_path: Path, line: str) -> None:
    verb, settings = settings_of(line)
    if verb == "config":
        command = [sys.executable, "-m", "icefall.cli", verb, f"--data-dir={tmp_path}", *settings]
        done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=LIMIT_S)
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
            answer, deadline = "", time.monotonic() + LIMIT_S
            while not agrees(answer, health.answer):  # the first checks may run before the first answer has come
                assert time.monotonic() < deadline, f"{answer}\nis not\n{health.answer}"
                time.sleep(0.1)
                answer = called(server, health.commands)
            assert server.ask("POST", "/ext/bc/X").status == 503
            assert server.ask("GET", "/ext/health/readiness").status == 503
            upstream.show(P=13)  # before it says that this is all
            upstream.bootstrapped["P"] = True
            server.await_ready()


def icefall(line: str, tmp_path: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """A command of the pages that ends by itself, on a data directory of the test's own."""
    verb, settings = settings_of(line)
    command = [sys.executable, "-m", "icefall.cli", verb, *settings, f"--data-dir={tmp_path / 'data'}", *more]
    return subprocess.run(command, capture_output=True, check=False, text=True, timeout=LIMIT_S, cwd=tmp_path)


def test_sending_as_shown(up: Server) -> None:
    copy, install, send = SENDING[0].commands.splitlines()
    own = copy.split()[-1]
    assert f"--prefix {own} " in install, "not into the checkout"
    assert send.split()[1].endswith(".mjs"), "as .js it is no module without a package.json: node warns, or refuses"
    folder = npm_project(ROOT / "tests" / "e2e" / "js")
    name = install.split()[-1]
    package, _, version = name.rpartition("@")
    assert json.loads((folder / "package.json").read_text())["dependencies"] == {package: version}
    run(up, copy.replace(own, str(folder)).replace("examples/", f"{ROOT}/examples/"))
    answer = json.loads(run(up, send.replace(own, str(folder))))
    assert agrees(json.dumps(answer, separators=(",", ":")), SENDING[0].answer)
    wanted = ("/ext/bc/X", "avm.getTx", {"txID": answer["txID"], "encoding": "json"})
    until(lambda: "result" in up.call(*wanted), "its block")
    assert up.call(*wanted)["result"]["tx"]["id"] == answer["txID"]


def test_both_pages_show_the_same_chain_with_its_token() -> None:
    tables = [TOML.findall(page) for page in (README, FIRST_HOUR)]
    assert tables[0] == tables[1]
    assert [tomllib.loads(one)["chain"][0]["token"]["symbol"] for one in tables[0]] == ["AVAX"]


def test_the_installed_program_and_the_image_are_built_by_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make (\w+)`", README):
        assert f"\n{target}:" in makefile
    wheel = re.findall(r"`pipx install dist/(icefall-\*\.whl)`", README)
    assert fnmatch.filter([f"icefall-{__version__}-py3-none-any.whl"], wheel[0])
    assert re.search(r"`docker run [^`]* icefall`", README)


def test_indexing_as_shown(tmp_path: Path) -> None:
    found = TOML.search(FIRST_HOUR)
    assert found
    with in_thread(EvmReplay("cchain-1")) as replay:
        own = found["toml"].replace('"https://api.avax.network/ext/bc/C/rpc"', f'"{replay.url}"')
        assert replay.url in own
        (tmp_path / "icefall.toml").write_text(own.replace('"43114"', f'"{replay.chain_id}"'))
        follow, verify = INDEXING[0].commands.splitlines()
        indexed = icefall(follow, tmp_path, "--to=20")
        assert indexed.returncode == 0, indexed.stderr
        assert "C-Chain: block 20 of 20, synced" in indexed.stderr
        verified = icefall(verify, tmp_path)
        assert verified.returncode == 0, verified.stderr
        assert "C-Chain: 21 blocks compared, all as stored" in verified.stdout


def test_keys_as_shown(tmp_path: Path) -> None:
    add, listed, revoke = ACCESS[0].commands.splitlines()
    assert "It is shown only this once" in icefall(add, tmp_path).stdout
    assert "wallet  pro" in icefall(listed, tmp_path).stdout
    assert icefall(revoke, tmp_path).stdout == "The key of wallet is revoked.\n"


def test_limits_as_shown_next_to_a_running_program(up: Server) -> None:
    start, call = ACCESS[1].commands.splitlines()
    verb, settings = settings_of(start)
    port = next(one for one in settings if one.startswith("--data-port="))
    assert port.endswith("=9662"), "not the port of `make up`"
    settings.remove(port)
    with serving(verb, up.data_dir.parent, *settings) as server:
        status, *wanted = ACCESS[1].answer.splitlines()
        got = run(server, call.replace("http://127.0.0.1:9662", server.url("data"))).splitlines()
        assert got[0].strip() == status
        headers = {line.partition(": ")[0].lower(): line.partition(": ")[2].strip() for line in got[1:] if line}
        for line in wanted:
            name, _, value = line.partition(": ")
            assert name in headers
            assert value in (headers[name], ANYTHING)
