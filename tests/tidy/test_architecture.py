"""docs/architecture.md and the decisions describe the tree as it is: every file they name exists, and every package is
named."""

import re
from pathlib import Path

from tests.slowest import seconds_of_files
from tests.tidy.source import PACKAGE, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAMED = re.compile(r"`([\w/]+(?:\.py|\.sql|/))`")
PLANNED: set[str] = set()
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
LINK = r"\]\(([\w./-]+)(?:#[\w-]+)?\)"
FILE = re.compile(rf"`([\w./-]+\.(?:py|sql|js|md|toml|yaml|yml|json|lock))`|{LINK}")
CREATED = {  # by a user or a running program
    "icefall.toml",
    "process.json",
    "process-data.json",
    "process-metrics.json",
    "run/limits.lock",
    "/openapi.json",
    "/explorer/config.json",
}


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


def missing_files(page: Path, text: str) -> list[str]:
    """The files that a decision names by a whole path, or links to, and that do not exist."""
    named = [(named, (PACKAGE, ROOT)) if named else (linked, (page.parent,)) for named, linked in FILE.findall(text)]
    return [
        f"{page.name}: {name}"
        for name, bases in named
        if name not in CREATED and not any((base / name).exists() for base in bases)
    ]


def test_what_the_page_names_exists() -> None:
    assert missing(PAGE) == []
    assert missing("`wire/` and `db/engine.py`, in `db/` also `disk.py`") == []
    assert missing("`nowhere/`, `db/nothing.py`, in `db/` also `engine.py` and `cli2.py`, in `wire/` `sqlite.py`") == [
        "nowhere/",
        "db/nothing.py",
        "cli2.py",
        "sqlite.py",
    ]


def test_what_the_decisions_name_exists() -> None:
    assert len(DECISIONS) > 20
    pages = [*DECISIONS, ROOT / "CONTRIBUTING.md"]
    assert [one for page in pages for one in missing_files(page, page.read_text())] == []
    page = DECISIONS[0]
    text = "`db/engine.py`, `icefall.toml`, [a](../architecture.md#x), `docs/settings.md`, `http-host`"
    assert missing_files(page, text) == []
    text = "`api/rsgi.py`, `engine.py`, [a](nowhere.md)"
    assert missing_files(page, text) == [f"{page.name}: {one}" for one in ("api/rsgi.py", "engine.py", "nowhere.md")]


def test_the_decisions_are_numbered_in_order() -> None:
    numbers = [int(page.name[:4]) for page in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [page.name for page in DECISIONS if not page.read_text().startswith(f"# {int(page.name[:4])}. ")] == []


def test_every_package_is_named() -> None:
    packages = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
    assert len(packages) > 30
    assert unnamed(PAGE, packages) == []
    assert unnamed("`db/`", [PACKAGE / "db", PACKAGE / "wire" / "avm"]) == ["wire/avm/"]


def test_the_page_names_the_composition_roots_and_the_stores() -> None:
    for name in ("compose/engine.py", "compose/indexer.py", "compose/worker.py", "compose/stores.py"):
        assert f"`{name}`" in PAGE


def test_a_fourth_token_standard_touches_the_files_that_its_decision_lists() -> None:
    """What differs by the standard is in its row; the files that name the youngest one are those that a further one
    touches. The signatures of functions are data."""
    page = (ROOT / "docs" / "decisions" / "0030-token-standards.md").read_text()
    listed = re.findall(r"^\| `([\w/.]+)` \|", page, re.MULTILINE)
    naming = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*")
        if path.suffix in {".py", ".sql", ".js", ".html", ".css"} and "migrations" not in path.parts
        if re.search(r"erc[-_]?1155|is_1155", path.read_text(), re.IGNORECASE)
    ]
    assert sorted(naming) == sorted(listed)
    assert len(listed) <= 15


def test_the_table_of_slow_tests_names_files_that_exist() -> None:
    listed = seconds_of_files()
    assert [path for path in listed if not (ROOT / "tests" / path).exists()] == []
    assert list(listed.values()) == sorted(listed.values(), reverse=True)
