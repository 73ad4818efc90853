"""Vertices in the store: those of X's DAG, in the order of the upstream's index, and the lists of them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from icefall.db.engine import BlockingReader, Reader, Transaction
from icefall.db.statements import load
from icefall.wire.container.vertex import Vertex
from icefall.wire.ids import hash256

SQL = load("icefall.xchain", "vertices.sql")
_ID_SIZE = 32


class StoredVertex(msgspec.Struct, frozen=True, gc=False):
    """A vertex. `number` is its position in the index that it was read from."""

    number: int
    vertex_id: bytes
    height: int
    parents: bytes  # the IDs of all, one after the other
    size: int

    @property
    def parent_ids(self) -> list[bytes]:
        return [self.parents[at : at + _ID_SIZE] for at in range(0, len(self.parents), _ID_SIZE)]


class VertexOfTx(msgspec.Struct, frozen=True, gc=False):
    """A vertex that a transaction is in."""

    vertex_id: bytes
    height: int


# -- writing: inside the engine's transaction -------------------------------------------------------------------------


def put_vertices(tx: Transaction, chain_id: bytes, first: int, vertices: Sequence[Vertex]) -> None:
    """Store vertices from position `first` on. Their parents and transactions are stored already, or are among them."""
    numbered = list(enumerate(vertices, first))
    tx.run_many(
        SQL.put_vertex,
        [(number, one.vertex_id, one.height, b"".join(one.parents), one.size) for number, one in numbered],
    )
    tx.run_many(
        SQL.put_vertex_tx, [(number, chain_id, txid) for number, one in numbered for txid in map(hash256, one.txs)]
    )
    tx.run_many(SQL.mark_parent, [(parent,) for one in vertices for parent in one.parents])


def forget_vertices(tx: Transaction, series: int) -> None:
    """Delete all vertices, and their containers in the index."""
    tx.run(SQL.forget_vertices)
    tx.run(SQL.forget_vertex_txs)
    tx.run(SQL.forget_vertex_containers, {"series": series})


def count_of(store: BlockingReader) -> int:
    """How many vertices are stored."""
    return int(store.read(SQL.next_vertex)[0][0])


def number_of(store: BlockingReader, vertex_id: bytes) -> int | None:
    """The position of a stored vertex."""
    rows = store.read(SQL.number_of_vertex, {"vertex_id": vertex_id})
    return int(rows[0][0]) if rows else None


def childless(tx: Transaction) -> list[bytes]:
    """Find at most two vertices that no stored one names as its parent."""
    return [bytes(row[0]) for row in tx.rows(SQL.childless)]


def are_accepted(store: BlockingReader, chain_id: bytes, txids: Sequence[bytes]) -> bool:
    """Whether all of these transactions are stored."""
    keys = [{"chain_id": chain_id, "txid": txid} for txid in txids]
    return all(rows[0][0] for rows in store.read_each(SQL.is_accepted, keys))


# -- reading ----------------------------------------------------------------------------------------------------------


class VertexLists:
    """The vertices of X, page by page."""

    def __init__(self, reader: Reader, chain_id: bytes) -> None:
        self._reader = reader
        self._chain_id = chain_id

    async def newest(self, below: int, limit: int) -> list[StoredVertex]:
        """Vertices before a position, newest first."""
        return await self._vertices(SQL.vertices, {"below": below, "limit": limit})

    async def at_height(self, height: int, low: int, below: int, limit: int, *, upwards: bool) -> list[StoredVertex]:
        """Vertices of a height between two positions, by position."""
        statement = SQL.vertices_at_up if upwards else SQL.vertices_at_down
        return await self._vertices(statement, {"height": height, "low": low, "below": below, "limit": limit})

    async def vertex(self, vertex_id: bytes) -> StoredVertex | None:
        found = await self._vertices(SQL.vertex_by_id, {"vertex_id": vertex_id})
        return found[0] if found else None

    async def txids(self, vertices: Sequence[StoredVertex]) -> dict[int, list[bytes]]:
        """The transactions of vertices, by the number of the vertex, in the order of their IDs as in the vertex."""
        keys = [(self._chain_id, one.number) for one in vertices]
        found: dict[int, list[bytes]] = {one.number: [] for one in vertices}
        for number, txid in await self._reader.rows_of_each(SQL.txs_of_vertex, keys) if keys else []:
            found[number].append(bytes(txid))
        return {number: sorted(txids) for number, txids in found.items()}

    async def of_txs(self, seqs: Sequence[int]) -> dict[int, list[VertexOfTx]]:
        """The vertices that transactions are in, by the number of the transaction, lowest first."""
        found: dict[int, list[VertexOfTx]] = {seq: [] for seq in seqs}
        for seq, vertex_id, height in await self._reader.rows_of_each(SQL.vertices_of_tx, [(one,) for one in seqs]):
            found[seq].append(VertexOfTx(bytes(vertex_id), height))
        return {seq: sorted(rows, key=lambda one: (one.height, one.vertex_id)) for seq, rows in found.items()}

    async def _vertices(self, statement: str, key: dict[str, Any]) -> list[StoredVertex]:
        return [StoredVertex(*row) for row in await self._reader.rows(statement, key)]
