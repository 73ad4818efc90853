"""The completion scripts: bash completes with its own, zsh and fish read theirs where they are installed."""

import shutil
import subprocess

import pytest
from tests.counterparts import program

from icefall import cli
from icefall.config.settings import SETTINGS


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["completion", shell]) == 0
    return capsys.readouterr().out


def bash(text: str, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in ("icefall", *words))
    asked = f"{text}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _icefall 2>/dev/null; echo ${{COMPREPLY[@]}}"
    done = subprocess.run([program("bash"), "-c", asked], capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_bash_completes_verbs_settings_and_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    assert bash(text, "me") == ["metrics"]
    assert set(bash(text, "")) == {verb.name for verb in cli.VERBS}
    assert bash(text, "up", "--http-po") == ["--http-port="]
    assert bash(text, "data", "--http-po") == []
    assert bash(text, "index", "--verify") == ["--verify-roots", "--verify", "--verify-all"]
    assert bash(text, "keys", "r") == ["revoke"]
    assert bash(text, "forget", "--y") == ["--yes"]
    assert bash(text, "help", "me") == ["metrics"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_verb_and_setting(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for verb in cli.VERBS:
        assert f"{verb.name}) _arguments" in text if shell == "zsh" else f"-a {verb.name} -d" in text
    for setting in SETTINGS:
        assert setting.flag in text if shell == "zsh" else f"-l {setting.name}" in text
    found = shutil.which(shell)
    if found:  # neither is needed for anything else, so their absence is no failure
        done = subprocess.run([found, "-n", "/dev/stdin"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
