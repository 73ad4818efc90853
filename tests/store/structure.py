"""The tables, views, indexes and triggers of a store, for comparing stores that were made in different ways."""

import re
from collections.abc import Mapping

from icefall.db.engine import BlockingReader
from icefall.db.sqlite import SqliteReader

# Of a table not its text: `alter table` writes another than `create table`, for the same columns.
SQLITE = {
    "tables": """select t.name, t.wr, t.strict, c.cid, c.name, c.type, c."notnull", c.dflt_value, c.pk
        from sqlite_master m join pragma_table_list(m.name) t join pragma_table_xinfo(m.name) c
        where m.type in ('table', 'view')""",
    "constraints": """select m.name, i."unique", i.origin, i.partial, c.seqno, c.name, c.desc, c.coll
        from sqlite_master m join pragma_index_list(m.name) i join pragma_index_xinfo(i.name) c
        where m.type = 'table'""",
    "others": "select type, name, tbl_name, sql from sqlite_master where type <> 'table' and sql is not null",
}
POSTGRES = {
    "tables": """select table_name, column_name, ordinal_position, data_type, is_nullable, column_default,
        collation_name from information_schema.columns where table_schema = current_schema""",
    "views": "select viewname, definition from pg_views where schemaname = current_schema",
    "indexes": "select tablename, indexdef from pg_indexes where schemaname = current_schema",
    "constraints": """select conrelid::regclass::text, contype::text, pg_get_constraintdef(oid)
        from pg_constraint where connamespace = current_schema::regnamespace""",
    "triggers": """select c.relname, pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where not t.tgisinternal and c.relnamespace = current_schema::regnamespace""",
}


def structure(store: BlockingReader) -> Mapping[str, list[str]]:
    if isinstance(store, SqliteReader):
        return {what: sorted(normalised(repr(row)) for row in store.read(query)) for what, query in SQLITE.items()}
    found = {what: [repr(row) for row in store.read(query)] for what, query in POSTGRES.items()}
    ((own,),) = store.read("select current_schema::text")
    return {what: sorted(row.replace(f"{own}.", "") for row in rows) for what, rows in found.items()}


def normalised(sql: str) -> str:
    """Without comments, quotes around names, and white space that means nothing."""
    plain = re.sub(r"\s+", " ", re.sub(r"--[^\n]*|\"", "", sql.replace("\\n", "\n")))
    return re.sub(r" ?([(),;]) ?", r"\1", plain).strip().lower()
