"""Our own source, read as text and as syntax trees."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "icefall"
_SKIPPED = {"vectors", "golden", "node_modules", "__pycache__"}


class Module(NamedTuple):
    name: str  # icefall.node.health.runner
    path: Path
    text: str

    @property
    def tree(self) -> ast.Module:
        """Only where it is asked for: every test process collects these tests, and one of them runs them."""
        return _tree(self.text)

    @property
    def part(self) -> str:
        """The folder or top-level module it belongs to; empty for the package itself."""
        return self.name.partition(".")[2].partition(".")[0]

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(ROOT))


@cache
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, path, path.read_text()))
    return tuple(found)


@cache
def imports(module: Module) -> tuple[tuple[str, int], ...]:
    """Every module of ours, and every other package, that is imported anywhere in it, with the line."""
    return tuple(_imports(module, {one.name for one in modules()}))


def _imports(module: Module, names: set[str]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.shown}:{node.lineno} imports relatively"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner if inner in names else node.module or ""), node.lineno


def texts(*suffixes: str) -> Iterator[Path]:
    """Files people read and write, everywhere but among recorded data."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in suffixes)
    for folder in ("src", "tests", "docs", "bench"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes and not _SKIPPED.intersection(path.parts):
                yield path
