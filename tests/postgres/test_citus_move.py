"""A chain is moved to another node of Citus while it is indexed and read: the writer and the readers follow.

The lock of its writer is a lock of a session at the coordinator, so a move does not touch it. Rows are written in
another session, at the node that holds the chain: a writer that has lost its lock commits nothing there.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
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
from icefall.db import citus, postgres_writer
from icefall.db.citus import CitusNodeChoice, CitusNodeReader
from icefall.db.engine import Reader, Store, StoreInUse, StoreLost
from icefall.db.postgres import PostgresReader, PostgresStore
from icefall.db.postgres_pool import ServerPool
from icefall.evm.deriving.packing import packed
from icefall.evm.packed import ResolvedBlock
from icefall.evm.reading.one_history import CheckedReader, Standbys, in_one_history
from icefall.evm.storing.store import ChainStore, store_path

CHAIN = "7"
FIRST, LEAST_AFTER = 10, 15  # blocks that are stored before the move, and after it


def blocks() -> Iterator[ResolvedBlock]:
    for one in islice(derived("geth-1"), 2 * FIRST + LEAST_AFTER):
        yield ResolvedBlock(packed(one.rows), (), ())


def move(url: str, schema: str, port: int) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("select citus_schema_move(%s, '127.0.0.1', %s::int, 'force_logical')", (schema, port))


async def index(store: ChainStore, readers: Sequence[Reader], url: str, schema: str, port: int, refused: Stores) -> int:
    """Store one block after the other and read after each; the number of those that were stored during the move."""
    during, newest = 0, -1
    moving: asyncio.Task[None] | None = None
    for stored, block in enumerate(blocks()):
        if stored == FIRST:
            moving = asyncio.create_task(asyncio.to_thread(move, url, schema, port))
        await store.commit([block])
        during += moving is not None and not moving.done()
        for reader in readers:
            ((found,),) = await in_one_history(reader.rows, "select max(number) from block")
            assert found == block.rows.block.number > newest
        newest = block.rows.block.number
        if moving is not None and during == 1:
            with pytest.raises(StoreInUse):
                refused.chain_store(CHAIN)
        if stored + 1 == FIRST + LEAST_AFTER and moving is not None:
            await moving  # the others are stored at the new place
    return during


def written_at(store: Store) -> int:
    """The port of the server to which a writer sends its rows."""
    assert isinstance(store, PostgresStore)
    return store._sessions.writing.info.port


def other_node(nodes: list[str], place: str) -> int:
    """The port of a node besides the coordinator that does not hold the chain."""
    return next(port for url in nodes[1:] if str(port := urlsplit(url).port or 0) not in place)


def test_a_chain_is_moved_while_it_is_indexed_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_writer, "FOLLOW_EVERY_S", 0.0)
    monkeypatch.setattr(citus, "LOOK_EVERY_S", 0.0)
    nodes, prefix = citus_nodes(), new_prefix()
    schema = f"{prefix}_chain_{CHAIN}"
    with (
        closing(Stores(tmp_path / "none", nodes[0], prefix)) as stores,
        closing(Stores(tmp_path / "none", nodes[0], prefix)) as others,
        ExitStack() as pools,
    ):

        def pool_of(info: str) -> ServerPool:
            return pools.enter_context(closing(ServerPool(info)))

        schema_store = stores.chain_store(CHAIN)
        with closing(ChainStore(schema_store)) as store:
            before = stores.chain_location(CHAIN)[0]
            assert before == f"127.0.0.1:{written_at(schema_store)}"
            plain, node = PostgresReader(pool_of(nodes[1]), schema), CitusNodeReader(pool_of(nodes[0]), schema, pool_of)
            standbys = Standbys([node], CitusNodeChoice(node), can_lose=True)
            port = other_node(nodes, before)
            readers = (plain, CheckedReader(plain, standbys))
            during = asyncio.run(index(store, readers, nodes[0], schema, port, others))
            assert during > 0, "it was not indexed meanwhile"
            assert node.node == ("127.0.0.1", port)
            node.close()
            assert stores.chain_location(CHAIN)[0] == f"127.0.0.1:{port}" != before
            assert written_at(schema_store) == port
        others.chain_store(CHAIN).close()  # the lock is free again
    path = store_path(tmp_path, CHAIN)
    with closing(Stores(tmp_path)) as files, closing(ChainStore(files.chain_store(CHAIN))) as embedded:
        for block in blocks():
            asyncio.run(embedded.commit([block]))
    with closing(SchemaTables(nodes[0], schema)) as moved, closing(FileTables(path)) as kept:
        assert digests_of(moved) == digests_of(kept)


def test_a_writer_that_lost_its_lock_commits_nothing_at_the_node(tmp_path: Path) -> None:
    """Its session with the rows goes on, also through a move of the chain: only the lock's session was ended."""
    nodes, prefix = citus_nodes(), new_prefix()
    with closing(Stores(tmp_path / "none", nodes[0], prefix)) as stores:
        first = stores.chain_store(CHAIN)
        assert isinstance(first, PostgresStore)
        put = "insert into meta (name, value) values (?, 'a')"
        first.write_here(lambda tx: tx.run(put, ("kept",)))
        with psycopg.connect(nodes[0], autocommit=True) as admin:
            admin.execute(
                "select pg_terminate_backend(%s::int, 10000::bigint)", (first._sessions.locking.info.backend_pid,)
            )
        with closing(stores.chain_store(CHAIN)) as second:
            with pytest.raises(StoreLost):
                first.write_here(lambda tx: tx.run(put, ("lost",)))
            move(nodes[0], f"{prefix}_chain_{CHAIN}", other_node(nodes, stores.chain_location(CHAIN)[0]))
            with pytest.raises(StoreLost):
                first.write_here(lambda tx: tx.run(put, ("lost",)))
            second.write_here(lambda tx: tx.run(put, ("second",)))
            assert second.read("select name from meta order by name") == [("kept",), ("second",)]
        first.close()
