"""P and C as followed chains: their containers go into the index, and their exports to X are stored.

Their own state is not kept: nothing is executed here, everything is checked by hash and parent link.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from icefall.db.engine import Store, Transaction
from icefall.node.index import SQL, IndexSeries, append


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

    async def accept(self, containers: Sequence[ForeignContainer], also: Callable[[Transaction], None]) -> None:
        """Stores containers, what `also` writes for them, and the new position in one transaction."""
        last = containers[-1]
        after = StoredPosition(self.position.count + len(containers), last.container_id, last.block_id, last.height)
        now_ns = time.time_ns()

        def change(tx: Transaction) -> None:
            if self._series is not None:
                append(tx, self._series, [(row.container_id, now_ns, None, row.raw) for row in containers])
            also(tx)
            tx.run(SQL.put_followed, {"chain_id": self.chain_id, **msgspec.structs.asdict(after)})

        await self._store.write(change)
        self.position = after
