"""A chain is moved to another node of Citus while it is indexed and read: the writer and the readers follow.

The lock of its writer is a lock of the writer's session at the coordinator, so a move does not touch it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.evm.digest import digests_of
from tests.evm.recordings import derived
from tests.postgres.citus import citus_nodes
from tests.postgres.server import new_prefix
from tests.store.opened import FileTables, SchemaTables

from icefall.compose.stores import Stores
from icefall.db.engine import StoreInUse
from icefall.db.postgres import PostgresReader
from icefall.db.postgres_pool import ServerPool
from icefall.evm.deriving.packing import packed
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.store import ChainStore, store_path

CHAIN = "7"
FIRST, LEAST_AFTER = 20, 20  # blocks that are stored before the move, and after it


def blocks() -> Iterator[ResolvedBlock]:
    for one in derived("geth-1"):
        yield ResolvedBlock(packed(one.rows), (), ())


def move(url: str, schema: str, port: int) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("select citus_schema_move(%s, '127.0.0.1', %s::int, 'force_logical')", (schema, port))


async def index(store: ChainStore, reader: PostgresReader, url: str, schema: str, port: int, refused: Stores) -> int:
    """Store one block after the other and read after each; the number of those that were stored during the move."""
    during, newest = 0, -1
    moving: asyncio.Task[None] | None = None
    for stored, block in enumerate(blocks()):
        if stored == FIRST:
            moving = asyncio.create_task(asyncio.to_thread(move, url, schema, port))
        await store.commit([block])
        during += moving is not None and not moving.done()
        ((found,),) = await reader.rows("select max(number) from block")
        assert found == block.rows.block.number > newest
        newest = found
        if moving is not None and during == 1:
            with pytest.raises(StoreInUse):
                refused.chain_store(CHAIN)
        if stored + 1 == FIRST + LEAST_AFTER and moving is not None:
            await moving  # the others are stored at the new place
    return during


def test_a_chain_is_moved_while_it_is_indexed_and_read(tmp_path: Path) -> None:
    nodes, prefix = citus_nodes(), new_prefix()
    schema = f"{prefix}_chain_{CHAIN}"
    with (
        closing(Stores(tmp_path / "none", nodes[0], prefix)) as stores,
        closing(Stores(tmp_path / "none", nodes[0], prefix)) as others,
        closing(ServerPool(nodes[1])) as pool,
    ):
        with closing(ChainStore(stores.chain_store(CHAIN))) as store:
            before = stores.chain_location(CHAIN)[0]
            target = next(url for url in nodes[1:] if str(urlsplit(url).port) not in before)
            reader = PostgresReader(pool, schema)
            port = urlsplit(target).port or 0
            assert asyncio.run(index(store, reader, nodes[0], schema, port, others)) > 0, "it was not indexed meanwhile"
            assert stores.chain_location(CHAIN)[0] == f"127.0.0.1:{port}" != before
        others.chain_store(CHAIN).close()  # the lock is free again
    path = store_path(tmp_path, CHAIN)
    with closing(Stores(tmp_path)) as files, closing(ChainStore(files.chain_store(CHAIN))) as embedded:
        for block in blocks():
            asyncio.run(embedded.commit([block]))
    with closing(SchemaTables(nodes[0], schema)) as moved, closing(FileTables(path)) as kept:
        assert digests_of(moved) == digests_of(kept)
