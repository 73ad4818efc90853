"""Forward-only numbered migrations: `migrations/NNNN_what.<engine>.sql`, applied in order, each with its number in one
transaction. A store written by a newer program is refused, untouched.
"""

import re
from importlib.resources import files
from typing import NamedTuple

from icefall.db.engine import StoreError

_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.(\w+)\.sql$")


class Migration(NamedTuple):
    number: int
    name: str
    script: str


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


def pending(known: list[Migration], at: int, where: str) -> list[Migration]:
    """The migrations that a store at number `at` still needs."""
    if at > len(known):
        raise StoreError(
            f"{where} was written by a newer Icefall (schema {at}, this program knows {len(known)}): "
            "upgrade Icefall, or use another --data-dir"
        )
    return known[at:]
