"""The messages that docs/operating.md quotes are those of the program, so that a search for one finds its remedy."""

import ast
import re
from functools import cache

from tests.tidy.source import ROOT, modules

PAGE = (ROOT / "docs" / "operating.md").read_text()
RUNBOOK = PAGE.partition("\n## Runbook\n")[2].partition("\n## ")[0]
ANYTHING = "..."
VARIABLE = "\0"  # a value in a message of the source


@cache
def messages() -> tuple[str, ...]:
    """Every text of the program, with one mark for each value that is put into it."""
    found = []
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.JoinedStr):
                parts = (str(part.value) if isinstance(part, ast.Constant) else VARIABLE for part in node.values)
                found.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return tuple(found)


def quoted(page: str) -> list[str]:
    return re.findall(r'"([^"|]+)"', page)


def is_of_the_program(message: str) -> bool:
    """Whether a text of the program contains it; `...` stands for a value."""
    wanted = re.compile(".*".join(map(re.escape, message.split(ANYTHING))))
    return any(wanted.search(text) for text in messages())


def test_every_quoted_message_is_one_of_the_program() -> None:
    assert len(quoted(RUNBOOK)) >= 10
    assert [message for message in quoted(RUNBOOK) if not is_of_the_program(message)] == []


def test_how_messages_are_found() -> None:
    assert is_of_the_program("cannot listen on ...:... for the ... interface")
    assert not is_of_the_program("cannot listen on port")
    assert quoted('| a, "b ... c" | "d" |') == ["b ... c", "d"]


def test_every_alert_of_the_table_is_a_rule_and_has_a_remedy() -> None:
    rules = set(re.findall(r"alert: (\w+)", (ROOT / "deploy" / "prometheus" / "icefall-alerts.yml").read_text()))
    listed = PAGE.partition("\n## Alerts\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| (Icefall\w+) ", listed, re.MULTILINE)) == rules
    assert rules - set(re.findall(r"\bIcefall[A-Z]\w+", RUNBOOK)) == set()
