"""One name means one thing, and names and texts use the words of the field an engineer would search for."""

import ast
import re
from collections import defaultdict

import pytest
from tests.tidy.source import ROOT, modules, texts

# Private vocabulary that was replaced; the right side is what to write instead.
REPLACED = {
    "told": "result, shown or reported",
    "workshop": "block decoder",
    "wellbeing": "chain health",
    "praise": "mark_ok",
    "stranger": "unknown address, or no common block",
    "sketch": "outline or summary",
    "odd token": "untrusted token",
    "odd tokens": "untrusted tokens",
    "in step": "synced",
    "factbook": "contract cache",
    "open_ones": "unknown_addresses",
    "taken over": "imported",
    "not asked again": "disabled",
    "list of texts": "list of strings",
    "looked up beside": "fetched in the background",
    "a chain is open": "chain loaded",
    "complaint": "error or reason",
    "lied": "sent invalid data",
    "untold": "not reported",
}
WORDS = re.compile(rf"(?<![a-z])({'|'.join(REPLACED)})(?![a-z])", re.IGNORECASE)
SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # KeyTold is told too


def test_no_class_name_is_used_twice() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{module.shown}:{node.lineno}")
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def replaced_words(line: str) -> list[str]:
    return WORDS.findall(SPLIT.sub("_", line))


@pytest.mark.parametrize("folder", ["src", "docs", "README.md", "CONTRIBUTING.md"])
def test_replaced_words_do_not_come_back(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {', '.join(words)} -> {', '.join(REPLACED[w.lower()] for w in words)}"
        for path in texts(".py", ".sql", ".md")
        if path.relative_to(ROOT).parts[0] == folder and "migrations" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (words := replaced_words(line))
    ]
    assert found == []


def test_the_scan_finds_words_and_nothing_else() -> None:
    for text in ("told", "_told", "Told", "KeyTold", "told_x", "an odd token", "an upstream lied"):
        assert replaced_words(text), text
    for text in ("threshold", "toldo", "relied", "implied", "sketchy", "untouched", "odd length hex string"):
        assert not replaced_words(text), text
