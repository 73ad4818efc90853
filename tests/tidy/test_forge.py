"""The files for the forge and for editors: they parse, call make targets only, and name the versions we support."""

import configparser
import re
import tomllib
from typing import Any

import pytest
import yaml
from tests.tidy.source import ROOT

FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
JOBS: dict[str, Any] = {
    name: job for path in WORKFLOWS for name, job in yaml.safe_load(path.read_text())["jobs"].items()
}
ARCHITECTURES = {"ubuntu-24.04": "x86-64", "ubuntu-24.04-arm": "aarch64"}


def commands(job: Any) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_calls_make_targets_that_exist(name: str) -> None:
    assert commands(JOBS[name])
    for command in commands(JOBS[name]):
        program, target, *settings = command.split()
        assert program == "make"
        assert target in TARGETS
        assert all(re.fullmatch(r"PYTHON=\w+", one) for one in settings)


def test_tests_run_on_every_python_and_both_architectures() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = [one.split(" :: ")[-1] for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)]
    matrix = JOBS["test"]["strategy"]["matrix"]
    assert matrix["python"] == supported
    assert project["requires-python"] == f">={supported[0]}"
    for job in ("test", "container"):
        assert {ARCHITECTURES[one] for one in JOBS[job]["strategy"]["matrix"]["runner"]} == {"x86-64", "aarch64"}
    built = [command.split()[1] for job in JOBS.values() for command in commands(job)]
    assert set(built) == {"test", "dist", "container"}


def test_the_workflows_may_only_read() -> None:
    assert WORKFLOWS
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}


def test_ruff_before_a_commit_is_the_one_of_the_lock() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    [repository] = config["repos"]
    [pinned] = re.findall(r"^ruff==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert repository["rev"] == f"v{pinned}"
    assert [hook["id"] for hook in repository["hooks"]] == ["ruff-check", "ruff-format"]


@pytest.mark.parametrize("path", sorted((FORGE / "ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.name)
def test_a_template_has_a_name_and_a_purpose(path: Any) -> None:
    head = path.read_text().split("---\n")[1]
    assert set(yaml.safe_load(head)) == {"name", "about"}


def test_editors_know_the_length_of_a_line() -> None:
    parser = configparser.ConfigParser()
    parser.read_string("[preamble]\n" + (ROOT / ".editorconfig").read_text())
    line_length = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["line-length"]
    assert parser["*"]["max_line_length"] == str(line_length)
    assert parser["Makefile"]["indent_style"] == "tab"
    assert parser["*.{py,toml}"]["indent_size"] == "4"
