"""docs/architecture.md describes the tree as it is: every file it names exists, and every package is named."""

import re
from pathlib import Path

from tests.tidy.source import PACKAGE, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAMED = re.compile(r"`([\w/]+(?:\.py|\.sql|/))`")
PLANNED: set[str] = set()


def missing(page: str) -> list[str]:
    """What is named and does not exist: in the whole package, or in the package named last before it."""
    found, package = [], PACKAGE
    for name in NAMED.findall(page):
        places = [base / name for base in (PACKAGE, package, ROOT)]
        if name.endswith("/"):
            package = next((place for place in places if place.is_dir()), package)
        if name not in PLANNED and not any(place.exists() for place in places):
            found.append(name)
    return found


def unnamed(page: str, packages: list[Path]) -> list[str]:
    names = set(NAMED.findall(page))
    shown = [f"{package.relative_to(PACKAGE)}/" for package in packages]
    return [name for name in shown if name not in names]


def test_what_the_page_names_exists() -> None:
    assert missing(PAGE) == []
    assert missing("`wire/` and `db/engine.py`, in `db/` also `lock.py`") == []
    assert missing("`nowhere/`, `db/nothing.py`, in `db/` also `engine.py` and `cli2.py`, in `wire/` `sqlite.py`") == [
        "nowhere/",
        "db/nothing.py",
        "cli2.py",
        "sqlite.py",
    ]


def test_every_package_is_named() -> None:
    packages = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
    assert len(packages) > 30
    assert unnamed(PAGE, packages) == []
    assert unnamed("`db/`", [PACKAGE / "db", PACKAGE / "wire" / "avm"]) == ["wire/avm/"]


def test_the_page_names_the_composition_roots_and_the_stores() -> None:
    for name in ("compose/engine.py", "compose/indexer.py", "compose/worker.py", "compose/stores.py"):
        assert f"`{name}`" in PAGE
