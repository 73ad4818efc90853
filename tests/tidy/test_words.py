"""SQL only in .sql files, docstrings that make sense alone, nothing left for later, nothing tied to one machine."""

import ast
import re
from collections.abc import Iterator

from tests.tidy.source import ROOT, Module, modules, texts

SQL = re.compile(
    r"\b(select\b.+\bfrom|insert\s+(or\s+\w+\s+)?into|update\s+\w+\s+set|delete\s+from|replace\s+into"
    r"|(create|drop|alter)\s+(unique\s+)?(table|index|view|trigger))\b",
    re.IGNORECASE | re.DOTALL,
)
CONTROL = re.compile(r"^\s*(pragma\s+\w|begin\b|commit\b|rollback\b(?!\.sql)|savepoint\b|attach\s)", re.IGNORECASE)
# They may control transactions, and know no table.
ENGINES = ("src/icefall/db/sqlite.py", "src/icefall/db/wal.py", "src/icefall/db/postgres.py")
LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE = re.compile(r"(?<![\w.$}/:-])/(root|home/\w+|Users/\w+|work/(main|shared))/")
MIXED = {"utils", "util", "helpers", "common", "misc", "tools", "shared", "base"}

# A docstring is read in a hover box, without the name above it: it begins with a verb, or with a noun and its article.
FRAGMENT = re.compile(
    r"(Of|By|In|As|With|Without|For|From|At|On|To|And|Or|Where|Until|Before|After|Into|Within|Under|Above|Below|Per|Via"
    r"|Through|Between|Like|Upon|Besides)\b"
)


def strings(module: Module) -> Iterator[ast.Constant]:
    """Every string that is not a docstring."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


def docstrings(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def test_docstrings_are_sentences_that_make_sense_alone() -> None:
    found = [
        f"{module.shown}:{line}: {text.splitlines()[0]}"
        for module in modules()
        for line, text in docstrings(module)
        if FRAGMENT.match(text)
    ]
    assert found == []


def test_sql_lives_in_sql_files() -> None:
    found = [
        f"{module.shown}:{node.lineno}: {node.value!r}"
        for module in modules()
        for node in strings(module)
        if SQL.search(str(node.value)) or (module.shown not in ENGINES and CONTROL.match(str(node.value)))
    ]
    assert found == []


def test_the_scan_finds_sql() -> None:
    for text in ("select a from b", "INSERT INTO t", "update t set x = 1", "delete from t", "create unique index i"):
        assert SQL.search(text), text
    for text in ("select one of them", "created a table", "update it", "taken from"):
        assert not SQL.search(text), text


def test_no_module_is_named_after_mixed_helpers() -> None:
    assert [module.shown for module in modules() if module.path.stem in MIXED] == []


def test_packages_re_export_nothing() -> None:
    for module in modules():
        if module.path.name == "__init__.py":
            held = [node for node in module.tree.body if not isinstance(node, ast.Expr)]
            names = [ast.unparse(node.targets[0]) for node in held if isinstance(node, ast.Assign)]
            assert len(names) == len(held), f"{module.shown} defines more than a name"
            assert set(names) <= {"__version__"}, module.shown


def test_nothing_is_left_for_later() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts(".py", ".sql", ".md", ".toml", ".js")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if LATER.search(line)
    ]
    assert found == []


def test_nothing_names_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (*texts(".py", ".sql", ".md", ".toml", ".js", ".sh"), ROOT / "Makefile")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if MACHINE.search(line)
    ]
    assert found == []
