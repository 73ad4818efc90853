"""Forward-only numbered migrations: `migrations/NNNN_what.<engine>.sql`, applied in order, each with its number in one
transaction. A store written by a newer program is refused, untouched.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from sqlite3 import complete_statement
from typing import NamedTuple

from icefall.db.engine import StoreError

_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.(\w+)\.sql$")


class Migration(NamedTuple):
    number: int
    name: str
    script: str

    def statements(self) -> Iterator[str]:
        """One by one; the last may be without a semicolon."""
        buffer = ""
        for line in self.script.splitlines(keepends=True):
            buffer += line
            if complete_statement(buffer):
                yield buffer
                buffer = ""
        if any(not line.startswith("--") for line in buffer.split("\n") if line.strip()):
            yield buffer


def migrations(package: str, engine: str) -> list[Migration]:
    found = []
    for entry in files(package).joinpath("migrations").iterdir():
        match = _NAME.match(entry.name)
        if match and match[2] == engine:
            found.append(Migration(int(match[1]), entry.name, entry.read_text("utf-8")))
    found.sort()
    numbers = [m.number for m in found]
    if numbers != list(range(1, len(found) + 1)):
        raise ValueError(f"migrations of {package} for {engine} are not numbered 1..n: {numbers}")
    return found


def newest(package: str, engine: str) -> int:
    """The number of the last migration that this program knows."""
    return len(migrations(package, engine))


def pending(known: list[Migration], at: int, where: str) -> list[Migration]:
    """The migrations that a store at number `at` still needs."""
    if at > len(known):
        raise StoreError(
            f"{where} was written by a newer Icefall (schema {at}, this program knows {len(known)}): "
            "upgrade Icefall, or use another --data-dir"
        )
    return known[at:]
