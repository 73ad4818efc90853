"""Files are neither long nor tiny, and functions stay small. What differs is listed here with the reason."""

import ast

from tests.tidy.source import modules

FILE_LINES_MAX = 400
FILE_LINES_MIN = 40  # a shorter one is a function in the wrong place
FILE_LINES_MEAN_MIN = 130  # fewer and fuller files are found sooner
FUNCTION_LINES_MAX = 60
TABLES: dict[str, str] = {}  # path: why it is one long table
TINY = {
    "src/icefall/__main__.py": "what `python -m icefall` and the command run",
    "src/icefall/wire/errors.py": "one class, which every module of wire raises and imports without a cycle",
}
LONG_FUNCTIONS: dict[str, str] = {}  # module.function: why it cannot be shorter


def test_files_stay_small() -> None:
    lines = {module.shown: module.text.count("\n") for module in modules()}
    assert {path: count for path, count in lines.items() if count > FILE_LINES_MAX and path not in TABLES} == {}


def test_no_file_is_tiny() -> None:
    lines = {module.shown: module.text.count("\n") for module in modules() if module.path.name != "__init__.py"}
    assert {path: count for path, count in lines.items() if count < FILE_LINES_MIN and path not in TINY} == {}
    assert [path for path in TINY if lines.get(path, FILE_LINES_MIN) >= FILE_LINES_MIN] == []


def test_files_are_full_on_average() -> None:
    lines = [module.text.count("\n") for module in modules()]
    assert sum(lines) / len(lines) >= FILE_LINES_MEAN_MIN


def test_functions_stay_small() -> None:
    lines = {
        f"{module.name}.{node.name}:{node.lineno}": (node.end_lineno or 0) - node.lineno + 1
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and f"{module.name}.{node.name}" not in LONG_FUNCTIONS
    }
    assert {name: count for name, count in lines.items() if count > FUNCTION_LINES_MAX} == {}


def test_every_exemption_is_still_needed() -> None:
    lines = {module.shown: module.text.count("\n") for module in modules()}
    assert [path for path in TABLES if lines.get(path, 0) <= FILE_LINES_MAX] == []
