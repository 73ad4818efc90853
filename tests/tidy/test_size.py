"""Files and functions stay small. What is longer is a table, or is listed here with the reason."""

import ast

import pytest
from tests.tidy.source import Module, modules

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
TABLES: dict[str, str] = {}  # path: why it is one long table
LONG_FUNCTIONS: dict[str, str] = {}  # module.function: why it cannot be shorter


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_files_and_functions_stay_small(module: Module) -> None:
    count = module.text.count("\n")
    assert count <= FILE_LINES_MAX or module.shown in TABLES, f"{module.shown} has {count} lines"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            name = f"{module.name}.{node.name}"
            assert lines <= FUNCTION_LINES_MAX or name in LONG_FUNCTIONS, f"{name} has {lines} lines"


def test_every_exemption_is_still_needed() -> None:
    lines = {module.shown: module.text.count("\n") for module in modules()}
    assert [path for path in TABLES if lines.get(path, 0) <= FILE_LINES_MAX] == []
