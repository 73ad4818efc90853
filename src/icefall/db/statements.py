"""SQL lives in `.sql` files; this reads them.

A file is a list of statements, each headed `-- name: its_name`. The comment lines above a statement say what a row
means and which endpoints use it.
"""

import re
from functools import cache
from importlib.resources import files

_HEAD = re.compile(r"^-- name: *([a-z][a-z0-9_]*) *$", re.MULTILINE)


class Statements:
    """The statements of one file, as attributes."""

    def __init__(self, origin: str, by_name: dict[str, str]) -> None:
        self._origin = origin
        self._by_name = by_name

    def __getattr__(self, name: str) -> str:
        try:
            return self._by_name[name]
        except KeyError:
            raise AttributeError(f"{self._origin} has no statement named {name}") from None

    def names(self) -> list[str]:
        return list(self._by_name)


def parse(origin: str, text: str) -> Statements:
    pieces = _HEAD.split(text)[1:]
    by_name: dict[str, str] = {}
    for name, body in zip(pieces[::2], pieces[1::2], strict=True):
        if name in by_name:
            raise ValueError(f"{origin} names {name} twice")
        lines = body.strip().splitlines()
        while lines and (lines[-1].startswith("--") or not lines[-1].strip()):
            lines.pop()  # the comment above the next statement
        by_name[name] = "\n".join(lines).rstrip(";")
    return Statements(origin, by_name)


@cache
def load(package: str, filename: str) -> Statements:
    return parse(f"{package}/{filename}", files(package).joinpath(filename).read_text("utf-8"))
