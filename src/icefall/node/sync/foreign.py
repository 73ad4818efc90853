"""P and C as followed chains: their containers are stored, and what they export reaches X.

Imports of X wait here until P or C has passed the point at which the export must have been seen.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from icefall.db.engine import Store, Transaction
from icefall.node.index import SQL, IndexSeries, append
from icefall.node.sync.upstreams import NodeUpstreams
from icefall.node.sync.verify import ChainStopped, FollowedChain
from icefall.upstream.client import UpstreamError
from icefall.upstream.node import UpstreamNode


class ForeignContainer(NamedTuple):
    container_id: bytes
    raw: bytes
    block_id: bytes
    height: int


class StoredPosition(msgspec.Struct, frozen=True):
    """The position after `count` containers, the last of which was this one."""

    count: int
    container_id: bytes
    block_id: bytes
    height: int


class ForeignChain:
    """`series` is None when the index is off: the chain is followed all the same, its bytes are not kept."""

    def __init__(self, store: Store, name: str, chain_id: bytes, genesis_id: bytes, series: IndexSeries | None) -> None:
        self.name = name
        self.chain_id = chain_id
        self._store = store
        self._series = series
        rows = store.read(SQL.followed, {"chain_id": chain_id})
        self.position = StoredPosition(*rows[0]) if rows else StoredPosition(0, genesis_id, genesis_id, 0)

    @property
    def height(self) -> int:
        return self.position.height

    @property
    def last_container_id(self) -> bytes:
        return self.position.container_id

    def container_id_at(self, number: int) -> bytes | None:
        """The ID of a container, from the index; None if that does not hold them all."""
        if self._series is None:
            return None
        of = {"series": self._series.number}
        if self._store.read(SQL.last_number, of)[0][0] != self.position.count - 1:
            return None
        rows = self._store.read(SQL.container_id_at, {**of, "number": number})
        return rows[0][0] if rows else None

    def stored(self, start: int, count: int) -> list[tuple[int, bytes, bytes]]:
        """Containers from number `start` on that the index holds: number, ID and bytes."""
        if self._series is None:
            return []
        rows = self._store.read(SQL.containers, {"series": self._series.number, "start": start, "count": count})
        return [(number, container_id, raw) for number, container_id, _, raw in rows if raw is not None]

    @property
    def is_indexed(self) -> bool:
        return self._series is not None

    def appended(self, containers: Sequence[ForeignContainer]) -> tuple[StoredPosition, Callable[[Transaction], None]]:
        """The position after these containers, and what stores them with it."""
        last = containers[-1]
        after = StoredPosition(self.position.count + len(containers), last.container_id, last.block_id, last.height)
        now_ns = time.time_ns()

        def put(tx: Transaction) -> None:
            if self._series is not None:
                append(tx, self._series, [(row.container_id, now_ns, None, row.raw) for row in containers])
            tx.run(SQL.put_followed, {"chain_id": self.chain_id, **msgspec.structs.asdict(after)})

        return after, put

    async def accept(self, containers: Sequence[ForeignContainer], also: Callable[[Transaction], None]) -> None:
        """Stores containers, what `also` writes for them, and the new position in one transaction."""
        after, put = self.appended(containers)

        def change(tx: Transaction) -> None:
            put(tx)
            also(tx)

        await self._store.write(change)
        self.position = after


class Exporter(Protocol):
    """The follower of a chain that exports to ours. `why` is set when it has stopped."""

    why: str | None

    @property
    def name(self) -> str: ...

    @property
    def chain(self) -> FollowedChain: ...


class ImportWaiter:
    """`waiting` is what it waits for, while it does."""

    def __init__(self, exporters: Sequence[Exporter], upstreams: NodeUpstreams, poll_s: float) -> None:
        self.waiting: str | None = None
        self._exporters = tuple(exporters)
        self._upstreams = upstreams
        self._poll_s = poll_s

    async def wait(self, node: UpstreamNode, what: str) -> None:
        """Wait until the chains we import from are where `node` has them now, which is after it accepted the import."""
        try:
            for other in self._exporters:
                self.waiting = f"{what}: waits until {node.name} has bootstrapped {other.name}"
                while not await has_bootstrapped(node, other.name):  # before that its chains differ in progress
                    await self._pause(node)
                tip = await node.last_accepted(other.name)
                count = 0 if tip is None else tip.number + 1
                self.waiting = f"{what}: waits for {other.name} to reach {count} containers"
                while other.chain.count < count and other.why is None:
                    await self._pause(node)
                if other.why is not None:  # the export may be in a block that is stored and cannot be read
                    raise ChainStopped(f"{self.waiting}, which has stopped: {other.why}")
        finally:
            self.waiting = None

    async def _pause(self, node: UpstreamNode) -> None:
        self._upstreams.require(node)
        await self._upstreams.clock.sleep(self._poll_s)


async def has_bootstrapped(node: UpstreamNode, chain: str) -> bool:
    """A node that does not answer this counts as bootstrapped: what it lacks then is treated as invalid data."""
    try:
        return await node.is_bootstrapped(chain)
    except UpstreamError:
        return True
