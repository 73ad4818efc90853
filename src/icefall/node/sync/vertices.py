"""X's DAG as it was made of vertices, read from an upstream's X/vtx index once the DAG's transactions are all here.

Nothing waits for vertices, and nothing is executed with them: they say which transactions came together. So an upstream
that has none, or wrong ones, is not used for them, and stays usable for all else. They are proven by hashes: block 0
names the last vertex, and every other one is an ancestor of it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from icefall.db.engine import StoreError
from icefall.node.sync.follower import POLL_S, RangeFetcher, handle_failure
from icefall.node.sync.upstreams import NodeUpstreams
from icefall.observe.log import Log
from icefall.upstream.client import UpstreamFailure
from icefall.upstream.node import RANGE_MAX, FetchedContainer, IndexOff, UpstreamNode
from icefall.upstream.pool import NoUpstreamLeft
from icefall.wire.container.vertex import Vertex, unpack_vertex
from icefall.wire.errors import WireError
from icefall.wire.ids import hash256, id_text

_HEIGHT_MAX = (1 << 63) - 1


class UnfitForVertices(Exception):
    """An upstream whose X/vtx index is missing, incomplete or wrong."""


class VertexChain(Protocol):
    """The stored vertices of X. Their positions are those of the index that they were read from."""

    name: str
    chain_id: bytes
    stop_vertex_id: bytes

    @property
    def count(self) -> int: ...

    def number_of(self, vertex_id: bytes) -> int | None: ...

    def are_accepted(self, txids: Sequence[bytes]) -> bool:
        """Whether all of these transactions are stored."""
        ...

    async def put(self, vertices: Sequence[Vertex], raws: Sequence[bytes]) -> bool:
        """Store vertices behind those that are stored. False if the last one is there now and another stored one is no
        ancestor of it: then all of them are deleted."""
        ...


class VertexFollower:
    """`run` reads all vertices, then waits for ever, as it does if no upstream has them."""

    def __init__(
        self,
        chain: VertexChain,
        is_due: Callable[[], bool],
        upstreams: NodeUpstreams,
        log: Log,
        *,
        run_max: int = RANGE_MAX,
    ) -> None:
        """`is_due`: whether all transactions of the DAG are stored."""
        self.unfit: dict[UpstreamNode, str] = {}
        self._chain = chain
        self._is_due = is_due
        self._upstreams = upstreams
        self._log = log
        self._runs = RangeFetcher(chain.name, run_max, "vtx")

    @property
    def is_complete(self) -> bool:
        """Whether the last vertex is stored, and so all of them."""
        return self._chain.number_of(self._chain.stop_vertex_id) is not None

    async def run(self) -> None:
        try:
            await self._read_all()
        except NoUpstreamLeft:
            self._log.warn("vertices are not complete: no upstream is left", stored=self._chain.count)
        await asyncio.Event().wait()

    async def _read_all(self) -> None:
        while not self._is_due():
            await self._upstreams.clock.sleep(POLL_S)
        node: UpstreamNode | None = None
        move_on = False
        while not self.is_complete:
            if all(one in self.unfit or self._upstreams.is_disabled(one) for one in self._upstreams.members):
                self._log.warn(
                    "vertices are not complete: no upstream has the others",
                    stored=self._chain.count,
                    reasons=list(self.unfit.values()),
                )
                return
            node = await self._upstreams.pick(node, move_on=move_on)
            move_on = await self._turn(node)

    async def _turn(self, node: UpstreamNode) -> bool:
        """Store what `node` has and we have not. True if another upstream should be used next."""
        if node in self.unfit:
            await self._upstreams.clock.sleep(POLL_S)
            return True
        try:
            await self._advance(node)
            self._upstreams.mark_ok(node)
            self._runs.failures = 0
        except UnfitForVertices as unfit:
            self.unfit[node] = f"{node.name}: {unfit}"
            self._log.warn("upstream is not used for vertices", upstream=node.name, error=str(unfit))
            return True
        except (UpstreamFailure, StoreError) as failure:
            return await handle_failure(failure, node, self._upstreams, self._runs, self._log, "vertices")
        self._log.info("vertices complete", upstream=node.name, vertices=self._chain.count)
        return True

    async def _advance(self, node: UpstreamNode) -> None:
        """Store all that `node` has; its last vertex must be the one that block 0 names."""
        try:
            tip = await node.last_accepted(self._chain.name, "vtx")
        except IndexOff as off:
            raise UnfitForVertices(str(off)) from off
        if tip is None:
            raise UnfitForVertices("its X/vtx index is empty")
        await self._take(node, await self._start(node, tip.number + 1), tip.number + 1)
        if not self.is_complete:
            raise UnfitForVertices("its X/vtx index ends before the vertex that block 0 names")

    async def _start(self, node: UpstreamNode, length: int) -> int:
        """Find where to continue in the upstream's index: after our last one if it has the same number there, else at
        the beginning."""
        count = self._chain.count
        if not 0 < count < length:
            return 0
        theirs = await node.container(self._chain.name, count - 1, "vtx")
        return count if self._chain.number_of(hash256(theirs.raw)) == count - 1 else 0

    async def _take(self, node: UpstreamNode, start: int, length: int) -> None:
        fetch = self._runs.begin(node, start, length - 1)
        try:
            while True:
                fetched = await fetch
                vertices = self._verified(start, fetched)
                start += len(fetched)
                if start < length:
                    fetch = self._runs.begin(node, start, length - 1)
                await self._commit(vertices)
                if start >= length:
                    return
        finally:
            fetch.cancel()
            await asyncio.gather(fetch, return_exceptions=True)

    def _verified(self, start: int, batch: Sequence[FetchedContainer]) -> list[tuple[Vertex, bytes]]:
        """The vertices of X/vtx from `start` on that are not stored yet."""
        found: list[tuple[Vertex, bytes]] = []
        ours: set[bytes] = set()
        for number, fetched in enumerate(batch, start):
            what = f"X/vtx container {number}"
            if fetched.number != number:
                raise UnfitForVertices(f"expected X/vtx container {number}, got {fetched.number}: the index has a gap")
            try:
                vertex = unpack_vertex(fetched.raw)
            except WireError as error:
                raise UnfitForVertices(f"{what} holds no vertex: {error}") from error
            if id_text(vertex.vertex_id) != fetched.id_text:
                raise UnfitForVertices(f"{what} is labelled {fetched.id_text[:80]}, which is not the ID of its bytes")
            if vertex.chain_id != self._chain.chain_id or vertex.height > _HEIGHT_MAX:
                raise UnfitForVertices(f"{what} is of another chain, or of no possible height")
            if vertex.is_stop != (vertex.vertex_id == self._chain.stop_vertex_id):
                raise UnfitForVertices(f"{what} is a last vertex that block 0 does not name")
            if vertex.vertex_id in ours or self._chain.number_of(vertex.vertex_id) is not None:
                continue
            for parent in vertex.parents:
                if parent not in ours and self._chain.number_of(parent) is None:
                    raise UnfitForVertices(f"{what} names the parent {id_text(parent)}, which the index does not hold")
            if not self._chain.are_accepted([hash256(one) for one in vertex.txs]):
                raise UnfitForVertices(f"{what} holds a transaction that was never accepted")
            ours.add(vertex.vertex_id)
            found.append((vertex, fetched.raw))
        return found

    async def _commit(self, found: Sequence[tuple[Vertex, bytes]]) -> None:
        if found and not await self._chain.put([vertex for vertex, _ in found], [raw for _, raw in found]):
            raise UnfitForVertices("its X/vtx index holds vertices that are no ancestors of the last one")
