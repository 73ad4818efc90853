"""The schema of a store and its number: how a new store is created, and an older one brought to the same schema.

`schema.<engine>.sql` says what the tables are, and creates a new store. `migrations/NNNN_what.<engine>.sql` brings a
store from the number before to NNNN, in one transaction together with that number. So a change of the schema edits the
first and adds one of the second. A store of a newer program is refused, untouched.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from icefall.db.engine import StoreOfOtherRelease
from icefall.db.schema_file import expanded, split_statements

# The number of the first schema. Lower ones are those of development versions, whose stores nothing can read any more.
FIRST = 101
_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.(\w+)\.sql$")


class Migration(NamedTuple):
    """A script that ends with the schema of this number."""

    number: int
    name: str
    script: str

    def statements(self) -> Iterator[str]:
        return split_statements(self.script)


class Schema(NamedTuple):
    """What this program knows of the stores of one package on one engine."""

    creation: Migration  # creates an empty store, at the newest number
    migrations: tuple[Migration, ...]

    @property
    def number(self) -> int:
        return self.creation.number

    def pending(self, at: int, where: str) -> list[Migration]:
        """What a store at number `at` still needs. 0: it is empty."""
        if at == 0:
            return [self.creation]
        if at < FIRST:
            raise StoreOfOtherRelease(
                f"{development_text(where)}. Use another --data-dir (on a server, another --store-prefix), or move the "
                "store away, and start again; nothing in it was changed"
            )
        if at > self.number:
            raise StoreOfOtherRelease(
                f"{where} was written by a newer Icefall (schema {at}, this program knows {self.number}): "
                "upgrade Icefall, or use another --data-dir"
            )
        return list(self.migrations[at - FIRST :])


def development_text(where: str) -> str:
    return f"{where} was made by a development version: index again"


@cache
def load_schema(package: str, engine: str) -> Schema:
    name = f"schema.{engine}.sql"
    known = _migrations(package, engine)
    creation = Migration(FIRST + len(known), name, expanded(files(package).joinpath(name).read_text("utf-8")))
    return Schema(creation, known)


def _migrations(package: str, engine: str) -> tuple[Migration, ...]:
    found = []
    folder = files(package).joinpath("migrations")
    for entry in folder.iterdir() if folder.is_dir() else ():
        match = _NAME.match(entry.name)
        if match and match[2] == engine:
            found.append(Migration(int(match[1]), entry.name, expanded(entry.read_text("utf-8"))))
    found.sort()
    numbers = [one.number for one in found]
    if numbers != list(range(FIRST + 1, FIRST + 1 + len(found))):
        raise ValueError(f"migrations of {package} for {engine} are not numbered from {FIRST + 1} on: {numbers}")
    return tuple(found)
