"""Documents are read in terminals and as diffs: no line of prose is long, and the README stays short."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.source import ROOT

LINE_MAX = 120
README_BYTES_MAX = 6 * 1024
FIGURES_LINES_MAX = 150
PICTURE_BYTES_MAX = 200 * 1024
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[\w-]+)?\)")
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines that are neither of a table nor of a code block."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("|", "    ")):
            yield number, line


def long_lines(path: Path, text: str) -> list[str]:
    return [f"{path}:{number}: {len(line)}" for number, line in prose(text) if len(line) > LINE_MAX]


def test_no_line_of_prose_is_long() -> None:
    assert len(DOCUMENTS) > 30
    found = [one for path in DOCUMENTS for one in long_lines(path.relative_to(ROOT), path.read_text())]
    assert found == []


def test_the_scan_leaves_out_tables_and_code() -> None:
    long = "x" * (LINE_MAX + 1)
    text = f"# a\n\n{long}\n| {long} |\n    {long}\n```sh\n{long}\n```\n- {long}\n"
    assert long_lines(Path("a.md"), text) == [f"a.md:3: {LINE_MAX + 1}", f"a.md:9: {LINE_MAX + 3}"]


def test_every_link_leads_to_a_file() -> None:
    linked = [(path, name) for path in DOCUMENTS for name in LINK.findall(path.read_text())]
    assert len(linked) > 40
    assert [f"{path.name}: {name}" for path, name in linked if not (path.parent / name).exists()] == []
    assert LINK.findall("[a](b.md#c), [d](https://e), ![f](g/h.png)") == ["b.md", "g/h.png"]


def test_the_first_page_and_the_figures_stay_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= README_BYTES_MAX
    assert (ROOT / "docs" / "figures.md").read_text().count("\n") <= FIGURES_LINES_MAX
    pictures = list((ROOT / "docs" / "images").iterdir())
    assert pictures
    assert [path.name for path in pictures if path.stat().st_size > PICTURE_BYTES_MAX] == []
