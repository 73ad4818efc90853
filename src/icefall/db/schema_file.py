"""Reads `schema.<engine>.sql`, the file that says what the tables of a store are.

The comment above each table says what a row means; a line `-- # Heading` begins a section. Above a table of an embedded
store, the line `-- in two parts` stands for two tables, `_recent` and `_merged`, and a view that is both: rows are
inserted into the first and moved to the second in the order of their keys, many to a page. A row is in one of them.
"""

import re
from collections.abc import Iterator
from sqlite3 import complete_statement
from typing import NamedTuple

from icefall.db.statements import load

SQL = load("icefall.db", "two_parts.sql")
_IN_TWO_PARTS = "-- in two parts"
_SECTION = "-- # "
_DECLARED = re.compile(r"^create (?:unique )?(table|view|index|trigger) (\w+)", re.MULTILINE)
_CONSTRAINT = re.compile(r"(primary key|unique|check) ?\(([^)]*)\)")
_COMMA = re.compile(r",(?![^(]*\))")  # outside of parentheses


class Column(NamedTuple):
    name: str
    kind: str  # type and constraints, as they are written
    note: str  # the comment behind it


class Declared(NamedTuple):
    """One statement of the file: a table, view, index or trigger."""

    kind: str
    name: str
    section: str  # the heading above it; empty: none
    comment: str  # the lines directly above it, as one text
    statement: str
    is_in_two_parts: bool

    def columns(self) -> list[Column]:
        """The columns of a table."""
        found = (item for item in _items(self.statement) if not _CONSTRAINT.match(item[0]))
        return [Column(text.partition(" ")[0], text.partition(" ")[2], note) for text, note in found]

    def key(self) -> list[str]:
        """The columns of a table's primary key; where it has none, of its first unique constraint."""
        items = [text for text, _ in _items(self.statement)]
        inline = [text.partition(" ")[0] for text in items if " primary key" in text]
        constraints = [found for text in items if (found := _CONSTRAINT.match(text)) and found[1] != "check"]
        constraints.sort(key=lambda found: found[1])  # the primary key is the first
        return inline or [name for found in constraints[:1] for name in re.split(r",\s*", found[2])]


def split_statements(script: str) -> Iterator[str]:
    """The statements one by one, each with the comments above it; the last may be without a semicolon."""
    buffer = ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if complete_statement(buffer):
            yield buffer
            buffer = ""
    if any(not line.startswith("--") for line in buffer.split("\n") if line.strip()):
        yield buffer


def declarations(script: str) -> list[Declared]:
    """Everything that a schema file creates, in its order."""
    found, section = [], ""
    for text in split_statements(script):
        match = _DECLARED.search(text)
        if match is None:
            raise ValueError(f"a schema file only creates tables, views, indexes and triggers: {text.strip()}")
        above = text[: match.start()]
        headings = [line.removeprefix(_SECTION) for line in above.splitlines() if line.startswith(_SECTION)]
        section = headings[-1] if headings else section
        directly = above.rstrip("\n").rpartition("\n\n")[2].splitlines()
        said = " ".join(line.removeprefix("--").strip() for line in directly if line != _IN_TWO_PARTS)
        in_two = _IN_TWO_PARTS in directly
        found.append(Declared(match[1], match[2], section, said.strip(), text[match.start() :].strip(), in_two))
    return found


def expanded(script: str) -> str:
    """The script with every table in two parts written out."""
    if _IN_TWO_PARTS not in script:
        return script
    return "".join(_in_two_parts(text) if _IN_TWO_PARTS in text else text for text in split_statements(script))


def _in_two_parts(text: str) -> str:
    table = declarations(text)[0]
    columns, key = [column.name for column in table.columns()], table.key()
    names = {
        "table": table.name,
        "columns": ", ".join(columns),
        "new_columns": ", ".join(f"new.{name}" for name in columns),
        "is_old": " and ".join(f"{name} = old.{name}" for name in key),
    }
    parts = [table.statement.replace(f" {table.name} ", f" {table.name}{part} ", 1) for part in ("_recent", "_merged")]
    both = [f"{text.format(**names)};" for text in (SQL.view, SQL.insert_trigger, SQL.delete_trigger)]
    return "\n".join([*parts, *both, ""])


def _items(statement: str) -> list[tuple[str, str]]:
    """What is between the outer parentheses of a `create table`, each item with the comment behind it. No item is on
    more than one line."""
    items: list[tuple[str, str]] = []
    for line in statement[statement.index("(") + 1 : statement.rindex(")")].splitlines():
        code, _, note = line.partition("--")
        items += [(text.strip(), "") for text in _COMMA.split(code) if text.strip()]
        if note:
            items[-1] = (items[-1][0], note.strip())
    return items
