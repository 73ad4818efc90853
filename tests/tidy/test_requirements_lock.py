"""requirements.lock names a file for everything that pyproject.toml asks for, by hash and from no particular index."""

import re
import tomllib
from importlib.metadata import distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.tidy.source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WANTED = [
    *PROJECT["project"]["dependencies"],
    *PROJECT["build-system"]["requires"],
    *(one for group in PROJECT["dependency-groups"].values() for one in group),
]
# A pin and its hashes are one entry, continued over lines; comments say what wants it.
ENTRY = re.compile(
    r"^(\S+)==(\S+)(?: ; [^\\\n]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)(?:    #.*\n)*", re.M
)
LOCK = (ROOT / "requirements.lock").read_text()
PINNED = {canonicalize_name(name): version for name, version, _ in ENTRY.findall(LOCK)}


@pytest.mark.parametrize("wanted", WANTED)
def test_every_dependency_is_pinned_within_its_range(wanted: str) -> None:
    requirement = Requirement(wanted)
    version = PINNED.get(canonicalize_name(requirement.name))
    assert version is not None, f"{requirement.name} is not in requirements.lock: run `make lock`"
    assert version in requirement.specifier, f"{requirement.name} {version} is out of range: run `make lock`"


def test_everything_that_they_depend_on_is_pinned_too() -> None:
    """It is installed without looking for dependencies. With the extras that are asked for."""
    missing, left = [], [Requirement(one) for one in WANTED]
    seen: set[tuple[str, str]] = set()
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if name not in PINNED or PINNED[name] not in requirement.specifier:
            missing.append(str(requirement))
            continue
        for extra in {"", *requirement.extras} - {known for of, known in seen if of == name}:
            seen.add((name, extra))
            needed = map(Requirement, distribution(name).requires or [])
            left += [one for one in needed if one.marker is None or one.marker.evaluate({"extra": extra})]
    assert missing == []
    assert {("coverage", "toml"), ("psycopg", "binary")} <= seen
    assert len(seen) > 30


def test_there_is_nothing_but_pins_with_hashes() -> None:
    assert ENTRY.sub("", LOCK) == ""
    assert "://" not in LOCK
