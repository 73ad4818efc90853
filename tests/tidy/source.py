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
    tree: ast.Module

    @property
    def part(self) -> str:
        """The folder or top-level module it belongs to; empty for the package itself."""
        return self.name.partition(".")[2].partition(".")[0]

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(ROOT))


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text()
        found.append(Module(name, path, text, ast.parse(text)))
    return tuple(found)


def imports(module: Module) -> Iterator[tuple[str, int]]:
    """Every module of ours, and every other package, that is imported anywhere in it, with the line."""
    names = {one.name for one in modules()}
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
