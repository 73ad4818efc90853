"""The commands of docs/operating.md that back up a PostgreSQL server and delete a chain there, run as they are written:
only the address and the prefix of the schemas are this test's own."""

import os
import re
import subprocess
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from tests.api.data_scene import chain_id, put_chains
from tests.counterparts import missing
from tests.postgres.server import new_prefix, programs, server_url
from tests.tidy.source import ROOT
from tests.waiting import LIMIT_S

from icefall.cli import main

CHAIN = "geth-1"
PAGE = (ROOT / "docs" / "operating.md").read_text()
DUMP, RESTORE = re.findall(r"^```sh\n(.*?)\n```\n", PAGE, re.MULTILINE | re.DOTALL)
[FORGET] = re.findall(r"^```sql\n(.*?)\n```\n", PAGE, re.MULTILINE | re.DOTALL)
RESTORED = "restored"


def run(command: str, folder: Path) -> None:
    found = programs()
    if found is None:
        missing("PostgreSQL")
    environment = {**os.environ, "PATH": f"{found}:{os.environ['PATH']}"}  # the tools of the server's own version
    done = subprocess.run(
        ["/bin/sh", "-ec", command],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr


def rows(url: str, schema: str) -> dict[str, int]:
    """How many rows each table of a schema has."""
    with psycopg.connect(url) as session:
        found = session.execute("select tablename from pg_tables where schemaname = %s", (schema,)).fetchall()
        counts = {}
        for (table,) in found:
            query = sql.SQL("select count(*) from {}").format(sql.Identifier(schema, table))
            counted = session.execute(query).fetchone()
            assert counted
            counts[table] = int(counted[0])
    return counts


@pytest.fixture
def empty_database() -> str:
    url = server_url()
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(RESTORED)))
        session.execute(sql.SQL("create database {}").format(sql.Identifier(RESTORED)))
    return re.sub(r"/\w+$", f"/{RESTORED}", url)


def test_a_dump_is_restored_and_a_chain_is_deleted(tmp_path: Path, empty_database: str) -> None:
    put_chains(tmp_path, {CHAIN: "http://127.0.0.1:1"})
    prefix, url = new_prefix(), server_url()
    assert main(["copy", str(tmp_path / "data"), url, f"--store-prefix={prefix}"]) == 0
    dumped = DUMP.replace("postgresql://user@host/icefall", url).replace("'icefall_*'", f"'{prefix}_*'")
    restored = RESTORE.replace("postgresql://user@host/restored", empty_database)
    for command in (dumped, restored):
        assert "user@host" not in command
        run(command, tmp_path)
    schema = f"{prefix}_chain_{chain_id(CHAIN)}"
    before = rows(url, schema)
    assert before["tx"] > 100
    assert rows(empty_database, schema) == before
    settings = [f"--config-file={tmp_path / 'icefall.toml'}", f"--data-dir={tmp_path / 'other'}"]
    assert main(["migrate", f"--store={empty_database}", f"--store-prefix={prefix}", *settings]) == 0
    with psycopg.connect(empty_database) as session:
        access = sql.Identifier(f"{prefix}_access", "chain_config")
        put = sql.SQL("insert into {} (chain_id, position, config) values ('43114', 0, '{{}}')").format(access)
        session.execute(put)
        forget = FORGET.replace("icefall_access", f"{prefix}_access").replace("icefall_chain_43114", schema)
        for statement in forget.split(";")[:-1]:
            session.execute(statement.encode())
        assert session.execute(sql.SQL("select chain_id from {}").format(access)).fetchall() == []
