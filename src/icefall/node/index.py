"""The index of accepted containers: five series, each numbered from 0 in the order this node accepted them.

A row commits with the block it describes. The asset chain's rows only point to bytes its own tables hold.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from icefall.db.changes import LastRead, unknown_version
from icefall.db.engine import Reader, Transaction
from icefall.db.statements import load

SQL = load("icefall.node", "index.sql")


class IndexSeries(NamedTuple):
    """`statement` names the query that finds the bytes."""

    number: int
    path: str
    statement: str = "containers"


C_BLOCK, P_BLOCK = IndexSeries(1, "C/block"), IndexSeries(2, "P/block")
X_BLOCK, X_TX = IndexSeries(3, "X/block", "block_containers"), IndexSeries(4, "X/tx", "tx_containers")
X_VTX = IndexSeries(5, "X/vtx")  # of the DAG before block 0: once it is complete, nothing is added
ALL_SERIES = (C_BLOCK, P_BLOCK, X_TX, X_BLOCK, X_VTX)
BLOCKS_OF = {"C": C_BLOCK, "P": P_BLOCK, "X": X_BLOCK}


IndexedContainer = tuple[int, bytes, int, bytes]  # number, container ID, accepted ns, bytes


# -- writing: inside the engine's transaction ----------------------------------------------------------------------


def append(tx: Transaction, series: IndexSeries, rows: Iterable[tuple[bytes, int, int | None, bytes | None]]) -> None:
    """Append rows of (container ID, accepted ns, source, bytes) in the order of acceptance."""
    first = tx.rows(SQL.next_number, (series.number,))[0][0]
    numbered: Sequence[tuple[object, ...]] = [(series.number, number, *row) for number, row in enumerate(rows, first)]
    tx.run_many(SQL.put_container, numbered)


# -- reading -------------------------------------------------------------------------------------------------------


class IndexReader:
    """One series. `x_chain_id` says which asset chain its rows point into; its last number is read once per version of
    the store."""

    def __init__(
        self, reader: Reader, series: IndexSeries, x_chain_id: bytes, version: Callable[[], int] = unknown_version
    ) -> None:
        self._reader = reader
        self._last_number = LastRead(version, self._read_last_number)
        self._series = series
        self._statement: str = getattr(SQL, series.statement)
        self._base = {"series": series.number} | ({"chain_id": x_chain_id} if series.statement != "containers" else {})

    async def last_number(self) -> int | None:
        return await self._last_number.get()

    async def _read_last_number(self) -> int | None:
        rows = await self._reader.rows(SQL.last_number, {"series": self._series.number})
        return int(rows[0][0]) if rows[0][0] is not None else None

    async def number_of(self, container_id: bytes) -> int | None:
        rows = await self._reader.rows(SQL.number_of, {"series": self._series.number, "container_id": container_id})
        return rows[0][0] if rows else None

    async def run(self, start: int, count: int) -> list[IndexedContainer]:
        """Read up to `count` containers from number `start` on."""
        rows: list[Any] = await self._reader.rows(self._statement, {**self._base, "start": start, "count": count})
        return rows

    def stamp(self) -> int | None:
        """What a cache of containers is valid for: a container never changes while the store is open. None on a server:
        after the loss of one, the numbers of its last containers may be given again."""
        return self._reader.generation if self._reader.is_embedded else None
