"""One name means one thing, and names and texts use the words of the field an engineer would search for."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable

import pytest
from tests.tidy.source import ROOT, modules, texts

# Private vocabulary that was replaced; the right side is what to write instead. These are banned everywhere.
REPLACED = {
    "told": "result, shown or reported",
    "untold": "not reported",
    "workshop": "block decoder",
    "wellbeing": "chain health",
    "praise": "mark_ok",
    "stranger": "unknown address, or no common block",
    "strangers": "unknown addresses",
    "nobody": "say who or what is meant: no caller, no owner",
    "lied": "sent invalid data",
    "lying": "invalid or untrusted",
    "a lie": "invalid data",
    "factbook": "contract cache",
    "open_ones": "unknown_addresses",
    "odd token": "untrusted token",
    "odd tokens": "untrusted tokens",
    "odd_since": "untrusted_since",
    "complaint": "error or reason",
    "there is nothing at": "no route for",
    "one writer a": "one writer per",
    "looked up beside": "fetched in the background",
    "list of texts": "list of strings",
    "not asked again": "disabled",
    "a chain is open": "chain loaded",
}
# Words a test may need: banned in the program and its documents.
REPLACED_IN_THE_PROGRAM = {
    "greet": "probe",
    "standing": "upstream state or follower status",
    "sketch": "outline or summary",
    "in step": "synced",
    "taken over": "imported",
    "liar": "attacker, or an upstream that sends invalid data",
}
# Plain words in a sentence ("blocks that lie in the range"): banned as part of a name.
IDENTIFIER_PARTS = {"lie": "InvalidData", "lies": "InvalidData", "knowledge": "AnswerContext"}
INSTEAD = REPLACED | REPLACED_IN_THE_PROGRAM | IDENTIFIER_PARTS
PARTS = "|".join(IDENTIFIER_PARTS)
IDENTIFIERS = rf"(?<=_)(?:{PARTS})(?![a-z])|(?<![a-z])(?:{PARTS})(?=_)|(?<=class )(?:{PARTS})(?![a-z])"


def pattern(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z])(?:{'|'.join(words)})(?![a-z])|{IDENTIFIERS}", re.IGNORECASE)


EVERYWHERE, PROGRAM = pattern(REPLACED), pattern(REPLACED | REPLACED_IN_THE_PROGRAM)
SCANNED = dict.fromkeys(("src", "docs", "README.md", "CONTRIBUTING.md"), PROGRAM) | dict.fromkeys(
    ("tests", "bench"), EVERYWHERE
)
EXEMPT = {
    "tests/tidy/test_names.py",  # the list itself
}
SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # KeyTold is told too
CLASS = re.compile(r"^\s*class \w*(Ask|Told)\b", re.MULTILINE)


def test_no_class_name_is_used_twice() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{module.shown}:{node.lineno}")
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def replaced_words(line: str, words: re.Pattern[str] = PROGRAM) -> list[str]:
    return words.findall(SPLIT.sub("_", line))


@pytest.mark.parametrize("folder", SCANNED)
def test_replaced_words_do_not_come_back(folder: str) -> None:
    scanned = [
        path
        for path in texts(".py", ".sql", ".md", ".js")
        if (inside := path.relative_to(ROOT)).parts[0] == folder
        and str(inside) not in EXEMPT
        and "migrations" not in inside.parts  # shipped: never changed again
    ]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {', '.join(words)} -> {', '.join(INSTEAD[w.lower()] for w in words)}"
        for path in scanned
        for number, line in enumerate((path.name + "\n" + path.read_text()).splitlines())  # 0 is the file's name
        if (words := replaced_words(line, SCANNED[folder]))
    ]
    assert scanned
    assert found == []


def test_parameters_and_results_are_named_so() -> None:
    found = {str(path.relative_to(ROOT)): CLASS.findall(path.read_text()) for path in texts(".py")}
    assert {path: classes for path, classes in found.items() if classes} == {}


def test_the_scan_finds_words_and_nothing_else() -> None:
    for text in ("told", "_told", "Told", "KeyTold", "told_x", "an odd token", "an upstream lied", "NOBODY", "greet(x)",
                 "test_tokens_that_lie_are_marked", "test_dag_lies.py", "class Lie(Exception)", "ProvenLie", "Standing",
                 "odd_since", "one writer a store", "there is nothing at /", "class Workshop", "class Knowledge",
                 "lying_upstream", "a liar that", "self.praise(url)"):  # fmt: skip
        assert replaced_words(text), text
    for text in ("threshold", "toldo", "relied", "implied", "sketchy", "untouched", "odd length hex string",
                 "outstanding", "underlying", "positions that lie in the range", "applies_to", "families", "client",
                 "one writer and", "main step", "general knowledge", "familiar"):  # fmt: skip
        assert not replaced_words(text), text
    assert CLASS.search("class KeyAsk(Base):")
    assert not CLASS.search("class Task(Base):\nclass Asked:")
