"""A node store of the first release is migrated when it is opened, and keeps its rows."""

import asyncio
import sqlite3
from pathlib import Path

from icefall.db.migrate import migrations
from icefall.db.sqlite import SqliteStore
from icefall.db.wal import APPLICATION_ID
from icefall.node.store import PACKAGE, NodeReader, read_meta, store_path

FIRST_RELEASE = 3  # migrations


def test_a_store_of_the_first_release_is_migrated(tmp_path: Path) -> None:
    connection = sqlite3.connect(store_path(tmp_path))
    for step in migrations(PACKAGE, "sqlite")[:FIRST_RELEASE]:
        connection.executescript(step.script)
    connection.execute(f"pragma user_version = {FIRST_RELEASE}")
    connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute("insert into fact values ('network_id', '12345')")
    connection.execute("insert into chain_alias values ('second', x'01', 2), ('first', x'01', 1)")
    connection.commit()
    connection.close()

    store = SqliteStore(store_path(tmp_path), PACKAGE)
    try:
        assert read_meta(store, "network_id") == "12345"
        assert asyncio.run(NodeReader(store).aliases_of(b"\x01")) == ["first", "second"]
    finally:
        store.close()
