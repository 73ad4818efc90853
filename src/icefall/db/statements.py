"""SQL lives in `.sql` files; this reads them.

A file is a list of statements, each headed `-- name: its_name`. The comment lines above a statement say what a row
means and which endpoints use it. One text serves both engines wherever that is natural: parameters are `:name` or `?`,
bytes are `x'00'`, and a list is given as `in (select value from json_each(:name))`. Where PostgreSQL needs another, it
follows the first one, headed `-- postgres: its_name`.

What several statements of a file repeat, as the columns that one decoder reads, is written once: a text headed
`-- fragment: its_name` takes the place of `{its_name}` in the statements and fragments below it.
"""

import re
from functools import cache, lru_cache
from importlib.resources import files

_HEAD = re.compile(r"^-- (name|postgres|fragment): *([a-z][a-z0-9_]*) *$", re.MULTILINE)
_TOKEN = re.compile(
    r"\bx'(?P<bytes>[0-9a-f]*)'"
    r"|(?P<kept>'(?:[^']|'')*'|--[^\n]*|::)"
    r"|in \(\w+ \w+ \w+ json_each\(:(?P<list>[a-z_]\w*)\)\)"
    r"|:(?P<name>[a-z_]\w*)|(?P<next>\?)|(?P<percent>%)"
)
_FRAGMENT = re.compile(r"\{([a-z][a-z0-9_]*)\}")
# An insert of one row that ends after its values: table, columns, values. Engines have faster ways for many of them.
PLAIN_INSERT = re.compile(r"\s*insert\s+into (\w+) \(([^)]*)\)\s*values\s*\(([^)]*)\)\s*", re.IGNORECASE)


class Statement(str):
    """A statement as SQLite takes it; `postgres` is the same for psycopg."""

    postgres: str


class Statements:
    """The statements of one file, as attributes."""

    def __init__(self, origin: str, by_name: dict[str, Statement]) -> None:
        self._origin = origin
        self._by_name = by_name
        vars(self).update(by_name)

    def __getattr__(self, name: str) -> Statement:
        raise AttributeError(f"{self._origin} has no statement named {name}")

    def names(self) -> list[str]:
        return list(self._by_name)


def parse(origin: str, text: str) -> Statements:
    pieces = _HEAD.split(text)[1:]
    by_name: dict[str, Statement] = {}
    variants: set[str] = set()
    fragments: dict[str, str] = {}
    for head, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        sql = _with_fragments(origin, _sql(body), fragments)
        if head == "fragment":
            if name in fragments:
                raise ValueError(f"{origin} has the fragment {name} twice")
            fragments[name] = sql
        elif head == "name":
            if name in by_name:
                raise ValueError(f"{origin} names {name} twice")
            by_name[name] = Statement(sql)
            by_name[name].postgres = translated(by_name[name])
        elif name not in by_name or name in variants:
            raise ValueError(f"{origin}: the variant of {name} must follow its statement, once")
        else:
            variants.add(name)
            by_name[name].postgres = translated(sql)
    return Statements(origin, by_name)


def _sql(body: str) -> str:
    lines = body.strip().splitlines()
    while lines and (lines[-1].startswith("--") or not lines[-1].strip()):
        lines.pop()  # the comment above the next statement
    return "\n".join(lines).rstrip(";")


def _with_fragments(origin: str, sql: str, fragments: dict[str, str]) -> str:
    """The text with its fragments. Without any, braces are those of a template that the caller fills."""

    def text_of(found: re.Match[str]) -> str:
        if found[1] not in fragments:
            raise ValueError(f"{origin} has no fragment {found[1]} above its use")
        return fragments[found[1]]

    return _FRAGMENT.sub(text_of, sql) if fragments else sql


def for_postgres(statement: str) -> str:
    return statement.postgres if isinstance(statement, Statement) else translated(statement)


@lru_cache(maxsize=512)
def translated(statement: str) -> str:
    """With the placeholders of psycopg."""
    return _TOKEN.sub(_translate_token, statement)


def _translate_token(found: re.Match[str]) -> str:
    if found["kept"]:
        return found["kept"].replace("%", "%%")
    if found["bytes"] is not None:
        return rf"'\x{found['bytes']}'::bytea"
    if found["list"]:
        return f"= any(%({found['list']})s)"
    if found["name"]:
        return f"%({found['name']})s"
    return "%s" if found["next"] else "%%"


@cache
def load(package: str, filename: str) -> Statements:
    return parse(f"{package}/{filename}", files(package).joinpath(filename).read_text("utf-8"))
