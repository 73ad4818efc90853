"""Every statement of every `.sql` file is understood by PostgreSQL, in the schema it belongs to."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.postgres.server import new_prefix, shared_server

import icefall
from icefall.db.postgres import PostgresStore
from icefall.db.postgres_pool import ServerPool
from icefall.evm.standards import load_statements as load  # of every package: no other has templates

SOURCE = Path(icefall.__file__).parent
SCHEMA_OF = {"access": "icefall.access", "node": "icefall.node", "xchain": "icefall.node"}
SCHEMA_OF |= {"pchain": "icefall.node", "primary": "icefall.node"}
SCHEMA_OF |= {"evm": "icefall.evm", "metrics": "icefall.evm", "webhooks": "icefall.evm", "exports": "icefall.evm"}
EMBEDDED_ONLY = ("recent.sql",)  # about tables that are in two parts there


def statement_files() -> dict[str, list[tuple[str, str]]]:
    """Every `.sql` file that is no schema, no migration and not about an engine, by the package of its tables."""
    found: dict[str, list[tuple[str, str]]] = {package: [] for package in dict.fromkeys(SCHEMA_OF.values())}
    for path in sorted(SOURCE.rglob("*.sql")):
        folder = path.relative_to(SOURCE).parent
        if path.name.startswith("schema.") or path.name in EMBEDDED_ONLY:
            continue
        if folder.name != "migrations" and folder.parts[0] != "db":
            found[SCHEMA_OF[folder.parts[0]]].append((".".join(("icefall", *folder.parts)), path.name))
    return found


FILES = statement_files()
STATEMENTS = [
    pytest.param(schema, getattr(load(*file), name).postgres, id=f"{'/'.join(file)}:{name}")
    for schema, files in FILES.items()
    for file in files
    for name in load(*file).names()
]


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[str, psycopg.Connection[tuple[object, ...]]]]:
    prefix, pool = new_prefix(), ServerPool(shared_server().url)
    opened = {}
    for package in FILES:
        schema = f"{prefix}_{package.partition('.')[2]}"
        PostgresStore(pool, schema, package).close()
        opened[package] = psycopg.Connection.connect(pool.url, autocommit=True, options=f"-c search_path={schema}")
    yield opened
    for session in opened.values():
        session.close()
    pool.close()


@pytest.mark.parametrize(("package", "statement"), STATEMENTS)
def test_it_is_understood(
    package: str, statement: str, sessions: dict[str, psycopg.Connection[tuple[object, ...]]]
) -> None:
    numbers: list[str] = []

    def placeholder(found: re.Match[str]) -> str:
        if not found[1] or found[1] not in numbers:
            numbers.append(found[1])
        return f"${numbers.index(found[1]) + 1 if found[1] else len(numbers)}"

    text = re.sub(r"%(?:\((\w+)\))?s", placeholder, statement).replace("%%", "%")
    text = re.sub(r"unnest\(([^)]*)\)", _typed_arrays, text)
    text = re.sub(r"substr\((\$\d)", r"substr(\1::bytea", text)
    result = sessions[package].pgconn.prepare(b"", text.encode())
    assert not result.error_message, (result.error_message.decode(), text)


def _typed_arrays(found: re.Match[str]) -> str:
    """psycopg sends the types of its parameters; a statement that is only prepared does not know them."""
    if "::" in found[1]:
        return found[0]
    named = found.string[found.end() :].partition("k(")[2].partition(")")[0].split(", ")
    kinds = ["bytea" if name in ("address", "token_id", "key", "message_id") else "bigint" for name in named]
    arrays = found[1].split(", ")
    return f"unnest({', '.join(f'{one}::{kind}[]' for one, kind in zip(arrays, kinds, strict=True))})"


def test_no_parameter_has_a_number() -> None:
    """`?1` counts as a name: Python 3.14 refuses to take its value from a sequence."""
    assert not [path for path in SOURCE.rglob("*.sql") if re.search(r"\?\d", path.read_text())]
