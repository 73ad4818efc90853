"""X's vertices as the follower stores them: in their own tables, and in the index of containers where one is kept."""

import time
from collections.abc import Sequence

from icefall.db.engine import Store, Transaction
from icefall.node.index import X_VTX, append
from icefall.wire.container.vertex import Vertex
from icefall.xchain import vertices as stored


class XVertices:
    """The stored vertices of X. `indexed`: their bytes go into the index X/vtx."""

    name = "X"

    def __init__(self, store: Store, chain_id: bytes, stop_vertex_id: bytes, *, indexed: bool) -> None:
        self.chain_id = chain_id
        self.stop_vertex_id = stop_vertex_id
        self._store = store
        self._indexed = indexed

    @property
    def count(self) -> int:
        return stored.count_of(self._store)

    def number_of(self, vertex_id: bytes) -> int | None:
        return stored.number_of(self._store, vertex_id)

    def are_accepted(self, txids: Sequence[bytes]) -> bool:
        return stored.are_accepted(self._store, self.chain_id, txids)

    async def put(self, vertices: Sequence[Vertex], raws: Sequence[bytes]) -> bool:
        now_ns = time.time_ns()

        def change(tx: Transaction) -> bool:
            stored.put_vertices(tx, self.chain_id, int(tx.rows(stored.SQL.next_vertex)[0][0]), vertices)
            if self._indexed:
                rows = zip(vertices, raws, strict=True)
                append(tx, X_VTX, [(one.vertex_id, now_ns, None, raw) for one, raw in rows])
            if any(one.is_stop for one in vertices) and stored.childless(tx) != [self.stop_vertex_id]:
                stored.forget_vertices(tx, X_VTX.number)
                return False
            return True

        return await self._store.write(change)
