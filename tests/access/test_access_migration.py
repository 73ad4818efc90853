"""An access store of the release before is migrated when it is opened, and keeps its keys and its secret."""

import asyncio
import sqlite3
from pathlib import Path

from icefall.access.store import PACKAGE, AccessReader, key_hash, page_token_secret, store_path
from icefall.access.usage_store import UsageReader
from icefall.compose.stores import Stores
from icefall.db.migrate import migrations
from icefall.db.wal import APPLICATION_ID

FIRST_RELEASE = 1  # migrations


def test_a_store_of_the_release_before_is_migrated(tmp_path: Path) -> None:
    connection = sqlite3.connect(store_path(tmp_path))
    for migration in migrations(PACKAGE, "sqlite")[:FIRST_RELEASE]:
        for statement in migration.statements():
            connection.execute(statement)
    connection.execute(f"pragma user_version = {FIRST_RELEASE}")
    connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute("insert into api_key values (?, 'wallet', 'pro', 1, null)", [key_hash("ice_old")])
    connection.execute("insert into secret values ('page_tokens', x'0102')")
    connection.commit()
    connection.close()

    stores = Stores(tmp_path)
    stores.access_writer().ensure()
    reader = stores.access_reader()
    try:
        key = asyncio.run(AccessReader(reader).key("ice_old"))
        assert key is not None
        assert (key.name, key.tier) == ("wallet", "pro")
        assert page_token_secret(reader) == b"\x01\x02"
        assert asyncio.run(UsageReader(reader).between(0, 10**6)) == []
    finally:
        reader.close()
