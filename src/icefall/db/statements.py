"""SQL lives in `.sql` files; this reads them.

A file is a list of statements, each headed `-- name: its_name`. The comment lines above a statement say what a row
means and which endpoints use it. One text serves both engines wherever that is natural: parameters are `:name` or `?`,
bytes are `x'00'`, and a list is given as `in (select value from json_each(:name))`. Where PostgreSQL needs another, it
follows the first one, headed `-- postgres: its_name`. Where it has nothing to do, that text is empty.

Statements that differ only in the table they are about are written once: `-- name: drop_{standard}_of` is read once for
each row that the caller gives for `standard`, with the fields of the row in the place of every `{field}`.

What several statements of a file repeat, as the columns that one decoder reads, is written once: a text headed
`-- fragment: its_name` takes the place of `{its_name}` in the statements and fragments below it. A fragment may be
about a table too, as `-- fragment: {standard}_of_tx`; then `{union {standard}_of_tx}` stands for those of all rows,
with `union all` between them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files

Repeated = Mapping[str, Sequence[Mapping[str, str]]]  # by the placeholder in a name: the rows it is read for
_HEAD = re.compile(r"^-- (name|postgres|fragment): *([a-z{][a-z0-9_{}]*) *$", re.MULTILINE)
_TOKEN = re.compile(
    r"\bx'(?P<bytes>[0-9a-f]*)'"
    r"|(?P<kept>'(?:[^']|'')*'|--[^\n]*|::)"
    r"|in \(\w+ \w+ \w+ json_each\(:(?P<list>[a-z_]\w*)\)\)"
    r"|:(?P<name>[a-z_]\w*)|(?P<next>\?)|(?P<percent>%)"
)
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_TEMPLATE_USE = re.compile(r"\{(union )?((?:[a-z0-9_]*)\{[a-z][a-z0-9_]*\}[a-z0-9_]*)\}")
# An insert of one row that ends after its values: table, columns, values. Engines have faster ways for many of them.
PLAIN_INSERT = re.compile(r"\s*insert\s+into (\w+) \(([^)]*)\)\s*values\s*\(([^)]*)\)\s*", re.IGNORECASE)


class Statement(str):
    """A statement as SQLite takes it; `postgres` is the same for psycopg."""

    postgres: str


class Statements:
    """The statements of one file, as attributes."""

    def __init__(self, origin: str, by_name: dict[str, Statement], repeated: dict[str, list[str]]) -> None:
        self._origin = origin
        self._by_name = by_name
        self._repeated = repeated
        vars(self).update(by_name)

    def __getattr__(self, name: str) -> Statement:
        raise AttributeError(f"{self._origin} has no statement named {name}")

    def names(self) -> list[str]:
        return list(self._by_name)

    def named(self, name: str) -> Statement:
        """The statement of a name that is put together when the program runs."""
        return self._by_name[name]

    def each(self, name: str) -> list[Statement]:
        """The statements that were read from one text, by the name it has in the file, such as `drop_{standard}`."""
        return [self._by_name[filled] for filled in self._repeated[name]]


def parse(origin: str, text: str, repeated: Repeated | None = None) -> Statements:
    pieces = _HEAD.split(text)[1:]
    by_name: dict[str, Statement] = {}
    variants: set[str] = set()
    fragments: dict[str, str] = {}
    names: dict[str, list[str]] = {}
    for head, written, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        text_of_head = _with_fragments(origin, _sql(body), fragments, repeated or {}, is_template="{" in written)
        if head == "fragment":
            if written in fragments:
                raise ValueError(f"{origin} has the fragment {written} twice")
            fragments[written] = text_of_head
            continue
        filled = list(_filled(origin, written, text_of_head, repeated or {}))
        if head == "name":
            names[written] = [name for name, _ in filled]
        for name, sql in filled:
            if head == "name":
                if name in by_name:
                    raise ValueError(f"{origin} names {name} twice")
                by_name[name] = Statement(sql)
                by_name[name].postgres = translated(by_name[name])
            elif name not in by_name or name in variants:
                raise ValueError(f"{origin}: the variant of {name} must follow its statement, once")
            else:
                variants.add(name)
                by_name[name].postgres = translated(sql)
    return Statements(origin, by_name, names)


def _filled(origin: str, name: str, sql: str, repeated: Repeated) -> Iterator[tuple[str, str]]:
    """A statement with its name, once for each row of the placeholder in the name; itself where there is none."""
    placeholder = _PLACEHOLDER.search(name)
    if placeholder is None:
        yield name, sql
    elif placeholder[1] not in repeated:
        raise ValueError(f"{origin}: nothing is given for {placeholder[0]} of {name}")
    else:
        for row in repeated[placeholder[1]]:
            yield name.format_map(row), sql.format_map(row)


def _sql(body: str) -> str:
    lines = body.strip().splitlines()
    while lines and (lines[-1].startswith("--") or not lines[-1].strip()):
        lines.pop()  # the comment above the next statement
    return "\n".join(lines).rstrip(";")


def _with_fragments(origin: str, sql: str, fragments: dict[str, str], repeated: Repeated, *, is_template: bool) -> str:
    """The text with its fragments. Other braces of a template are those of the rows it is read for."""

    def text_of(found: re.Match[str]) -> str:
        if found[1] not in fragments and not is_template:
            raise ValueError(f"{origin} has no fragment {found[1]} above its use")
        return fragments.get(found[1], found[0])

    def template_of(found: re.Match[str]) -> str:
        if found[2] not in fragments:
            raise ValueError(f"{origin} has no fragment {found[2]} above its use")
        text = fragments[found[2]]
        return "\nunion all\n".join(one for _, one in _filled(origin, found[2], text, repeated)) if found[1] else text

    return _PLACEHOLDER.sub(text_of, _TEMPLATE_USE.sub(template_of, sql)) if fragments else sql


def for_postgres(statement: str) -> str:
    return statement.postgres if isinstance(statement, Statement) else translated(statement)


@lru_cache(maxsize=512)
def translated(statement: str) -> str:
    """Translate a statement to the placeholders of psycopg."""
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
    return load_repeated(package, filename, {})


def load_repeated(package: str, filename: str, repeated: Repeated) -> Statements:
    """The statements of a file, those with a placeholder in their name once for each of its rows."""
    return parse(f"{package}/{filename}", files(package).joinpath(filename).read_text("utf-8"), repeated)
