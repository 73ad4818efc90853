"""Verbs, help, version and exit codes."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.waiting import LIMIT_S

from icefall import __version__, cli
from icefall.config.settings import SETTINGS, VERBS, Config
from icefall.errors import StartRefused
from icefall.processes.listening import ListeningSocket

CHAIN = '[[chain]]\nid = 7\nrpc = "http://user:secret@a"\n'


@pytest.fixture(autouse=True)
def work_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("ICEFALL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runtime(monkeypatch: pytest.MonkeyPatch, answer: int | BaseException) -> list[tuple[str, Config]]:
    """A fake icefall.processes.start that records its calls, and returns or raises `answer`; on free ports."""
    calls: list[tuple[str, Config]] = []
    for listener in ("HTTP", "DATA", "METRICS"):
        monkeypatch.setenv(f"ICEFALL_{listener}_PORT", "0")

    def run(verb: str, config: Config, sockets: dict[str, ListeningSocket]) -> int:
        calls.append((verb, config))
        for opened in sockets.values():
            opened.socket.close()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    module = ModuleType("icefall.processes.start")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "icefall.processes.start", module)
    return calls


def test_the_verbs_are_those_of_the_settings() -> None:
    without = ("completion", "help", "version")
    assert tuple(verb.name for verb in cli.VERBS if verb.name not in without) == VERBS
    assert set(cli.SYNONYMS.values()) <= {verb.name for verb in cli.VERBS}


@pytest.mark.parametrize("verb", ["up", "node", "data", "metrics"])
def test_serving_verbs_run(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = runtime(monkeypatch, 3)
    assert cli.main([verb, "--http-workers=2"]) == 3
    assert [(name, config.http_workers) for name, config in calls] == [(verb, 2)]


def test_an_interrupt_prints_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    runtime(monkeypatch, KeyboardInterrupt())
    assert cli.main(["up"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_refused_start_is_one_line_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime(monkeypatch, StartRefused("port 9650 is taken"))
    assert cli.main(["up"]) == 1
    assert capsys.readouterr() == ("", "icefall: port 9650 is taken\n")


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_help(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {verb.name} " in out and verb.summary in out for verb in cli.VERBS)
    assert "--index-enabled is the container index" in out


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_lists_its_settings(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, "--http-port", "--help", "--nonsense"]) == 0
    out = capsys.readouterr().out
    assert cli.main(["help", verb]) == 0
    assert capsys.readouterr().out == out
    own = {word for one in cli.VERBS if one.name == verb for word, _ in one.words}
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  --")]
    assert [flag for flag in listed if flag not in own] == [row.flag for row in SETTINGS if verb in row.verbs]
    assert max(map(len, out.splitlines())) <= 100


def test_a_verb_lists_only_what_it_uses(capsys: pytest.CaptureFixture[str]) -> None:
    def listed(verb: str) -> set[str]:
        cli.main(["help", verb])
        return {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  --")}

    stores = {"--config-file", "--data-dir", "--store", "--store-file", "--store-prefix"}
    assert listed("keys") == stores | {"--admin"}
    assert listed("abi") == stores
    assert listed("copy") == {"--config-file", "--data-dir", "--store-prefix"}
    assert "--data-port" not in listed("node") | listed("metrics") | listed("index")
    assert "--upstream" not in listed("data") | listed("index")
    assert {"--from", "--verify-roots", "--log-level"} <= listed("index")
    assert listed("config") == {row.flag for row in SETTINGS}


def test_help_of_keys_names_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["keys", "--help"]) == 0
    out = capsys.readouterr().out
    assert "usage: icefall keys add | list | revoke" in out
    assert all(f"\n  {word} " in out for word in cli.KEY_FLAGS)


@pytest.mark.parametrize("argv", [["--version"], ["node", "--version"], ["version"]])
def test_version(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 0
    assert capsys.readouterr().out == f"icefall/{__version__}\n"


def test_config_prints_every_value_and_its_origin(work_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work_dir / "icefall.toml").write_text(CHAIN + 'token = { symbol = "TOK" }\n')
    assert cli.main(["config", "--http-port=1", "--upstream=http://u:secret@h"]) == 0
    out = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert [row.name for row in SETTINGS] == list(lines)[: len(SETTINGS)]
    assert lines["http-port"] == ["1", "--http-port"]
    assert lines["http-idle-timeout"] == ["2m0s", "default"]
    assert lines["network-id"] == ["local", "default"]
    assert lines["upstream"] == ["http://u:***@h", "--upstream"]
    assert lines["genesis-file"] == ['""', "default"]
    assert lines["index-enabled"] == ["false", "default", "(true", "for", "icefall", "up)"]
    assert lines["chain[1].rpc"] == ["http://user:***@a", "icefall.toml"]
    assert lines["chain[1].token.symbol"] == ["TOK", "icefall.toml"]
    assert "secret" not in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["ups"], "unknown verb ups; did you mean up?"),
        (["q"], "unknown verb q; the verbs are up, node, data, metrics, index, keys, abi, webhooks, exports, forget, "),
        (["start"], "unknown verb start; did you mean up?"),
        (["Delete"], "unknown verb Delete; did you mean forget?"),
        (["help", "indx"], "unknown verb indx; did you mean index?"),
        (["version", "x"], "unexpected argument x"),
        (["completion"], "use icefall completion bash, zsh or fish"),
        (["completion", "tcsh"], "use icefall completion bash, zsh or fish"),
        (["forget"], "icefall forget needs a chain: use icefall forget 43114"),
        (["forget", "1", "2"], "unexpected argument 2"),
        (["forget", "7", "--yes=1"], "--yes takes no value"),
        (["forget", "7", "--data-dir", "x"], "chain 7 is not stored in "),
        (["forget", "../7", "--yes"], "chain ../7 is not stored in "),
        (["data", "--upstream=http://a"], "--upstream is a setting of icefall up and node, not of icefall data"),
        (["--http-port=1", "up"], "the verb comes first, as in: icefall up --http-port=1"),
        (["up", "--htpp-port"], "unknown setting --htpp-port; did you mean --http-port?"),
        (["config", "junk"], 'unexpected argument "junk"'),
        (["index"], "no [[chain]] is configured in icefall.toml: nothing to index"),
        (["keys"], "use icefall keys add --name=N --tier=T, icefall keys list or icefall keys revoke N"),
        (["keys", "ad"], "unknown action ad; use icefall keys add"),
        (["keys", "add"], "icefall keys add needs a name: use icefall keys add --name=N"),
        (["keys", "add", "--name"], "--name needs a value"),
        (["keys", "add", "--name=a b"], "--name must be 1 to 64 characters without spaces"),
        (["keys", "add", "--name=a", "--tier=metrics"], "--tier must be one of free, base, growth, pro"),
        (["keys", "list", "--name=a"], "unknown setting --name"),
        (["keys", "list", "junk"], "unexpected argument junk"),
        (["keys", "revoke"], "icefall keys revoke needs a name: use icefall keys add"),
        (["keys", "revoke", "unknown"], "there is no key named unknown"),
        (["keys", "revoke", "--name=unknown", "--data-dir=x"], "there is no key named unknown"),
        (["keys", "add", "--http-port=1"], "--http-port is a setting of icefall up and node, not of icefall keys"),
    ],
)
def test_refusals(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"icefall: {message}")
    assert err.count("\n") == 1


def test_index_verify_needs_an_indexed_chain(work_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work_dir / "icefall.toml").write_text(CHAIN)
    assert cli.main(["index", "--verify", f"--data-dir={work_dir / 'data'}"]) == 1
    assert "is not indexed in" in capsys.readouterr().err


def test_a_working_directory_that_is_gone(work_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work_dir / "gone").mkdir()
    os.chdir(work_dir / "gone")
    (work_dir / "gone").rmdir()
    assert cli.main(["config"]) == 1
    assert capsys.readouterr().err.startswith("icefall: cannot determine the working directory")


def spawn(*argv: str | bytes, **environ: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "icefall.cli", *argv]
    return subprocess.run(command, capture_output=True, env={**os.environ, **environ}, timeout=LIMIT_S, check=False)


def test_a_process_answers() -> None:
    done = spawn("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"icefall/{__version__}\n".encode(), b"")


def test_a_process_refuses() -> None:
    done = spawn("node", "--htpp-port=1")
    expected = b"icefall: unknown setting --htpp-port; did you mean --http-port?\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", expected)


def test_a_process_refuses_bytes_that_are_no_text() -> None:
    done = spawn("config", b"--data-dir=\xff")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b'icefall: --data-dir must be a path, got "\\xff": not valid UTF-8\n'


def test_a_process_prints_on_any_terminal() -> None:
    done = spawn("config", "--http-read-timeout=1us", "--log-dir=é", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"1\xb5s" in done.stdout


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m icefall.cli config | true"
    done = subprocess.run(command, shell=True, capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
