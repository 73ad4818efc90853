"""Generates docs/schema.md from the schema files of SQLite. Those of PostgreSQL have the same tables and columns."""

import re
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from textwrap import fill

from icefall.db.schema_file import Declared, declarations

STORES = {
    "icefall.evm": "The store of an EVM chain",
    "icefall.node": "The store of the node",
    "icefall.access": "The store of API keys, budgets and usage",
}
_HEAD = """# Tables

Generated from `src/icefall/*/schema.sqlite.sql` by `make docs`.

Each store is a SQLite file in the data directory, or a schema of the PostgreSQL server that `--store` names. Both have
the tables below. Where SQLite has `integer`, `blob` and `real`, PostgreSQL has `bigint` (`int4` in some long tables),
`bytea` and `double precision`. Some tables are views there, of the rows they list (decision 34). One more table there,
`schema_version`, holds the number of the schema; SQLite has it in the file's head.
"""
_TWO_PARTS = (
    "In SQLite it is in two parts: rows are inserted into `{name}_recent` and later moved to `{name}_merged`; `{name}` "
    "is a view of both."
)
_WIDTH = 120
_ON = re.compile(r" on (\w+) ")


def schema_markdown() -> str:
    lines = [_HEAD]
    for package, title in STORES.items():
        text = files(package).joinpath("schema.sqlite.sql").read_text("utf-8")
        lines += [f"## {title}", "", _introduction(text), ""]
        declared = declarations(text)
        indexes = [one for one in declared if one.kind == "index"]
        for section, members in groupby(declared, lambda one: one.section):
            lines += [f"### {section}", ""] if section else []
            for one in members:
                lines += _described(one, indexes) if one.kind in ("table", "view") else []
    return "\n".join(lines)


def main() -> None:
    (Path("docs") / "schema.md").write_text(schema_markdown(), "utf-8")


def _introduction(text: str) -> str:
    """The comment at the top of the file, by its paragraphs."""
    comment = text.partition("\n\n")[0].splitlines()
    return "\n".join(fill(line.removeprefix("--").strip(), _WIDTH) for line in comment)


def _described(one: Declared, indexes: list[Declared]) -> list[str]:
    lines = [f"#### `{one.name}`", "", fill(one.comment, _WIDTH), ""]
    if one.kind == "view":
        return lines
    if one.is_in_two_parts:
        lines += [fill(_TWO_PARTS.format(name=one.name), _WIDTH), ""]
    lines += ["| column | type | |", "|---|---|---|"]
    lines += [f"| `{column.name}` | {column.kind} | {column.note} |".replace("|  |", "| |") for column in one.columns()]
    keys = f"Key columns: {_names(one.key())}."
    own = [index for index in indexes if (on := _ON.search(index.statement)) and on[1] == one.name]
    if own:
        shown = ", ".join(f"`{index.name}` {_indexed(index)}" for index in own)
        keys += f" Indexes: {shown}."
    return [*lines, "", fill(keys, _WIDTH), ""]


def _names(columns: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in columns)


def _indexed(index: Declared) -> str:
    """What an index is of, as it is written."""
    statement = index.statement.partition(";")[0]
    return f"`{statement[statement.index('(') :]}`"


if __name__ == "__main__":
    main()
