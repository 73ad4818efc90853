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
X_VTX = IndexSeries(5, "X/vtx")  # frozen: what it held stays readable, nothing is added
ALL_SERIES = (C_BLOCK, P_BLOCK, X_TX, X_BLOCK, X_VTX)
BLOCKS_OF = {"C": C_BLOCK, "P": P_BLOCK, "X": X_BLOCK}


IndexedContainer = tuple[int, bytes, int, bytes]  # number, container ID, accepted ns, bytes
KEPT_SIZE_MAX = 4 << 20  # bytes of a series in a worker
_KEPT_OVERHEAD = 200  # of each besides its text, roughly


# -- writing: inside the engine's transaction ----------------------------------------------------------------------


def append(tx: Transaction, series: IndexSeries, rows: Iterable[tuple[bytes, int, int | None, bytes | None]]) -> None:
    """(container ID, accepted ns, source, bytes) in the order of acceptance."""
    first = tx.rows(SQL.next_number, (series.number,))[0][0]
    numbered: Sequence[tuple[object, ...]] = [(series.number, number, *row) for number, row in enumerate(rows, first)]
    tx.run_many(SQL.put_container, numbered)


# -- reading -------------------------------------------------------------------------------------------------------


class KeptContainers:
    """What a worker has made of containers, by number and encoding: a container never changes, and clients that follow
    a chain all ask for the newest ones. The older half makes room."""

    def __init__(self, size_max: int = KEPT_SIZE_MAX) -> None:
        self._size_max = size_max
        self._size = 0
        self._opening: int | None = None
        self._texts: dict[tuple[str, int], bytes] = {}

    def belong_to(self, opening: int | None) -> None:
        """Drops what was read from another opening of the store."""
        if opening != self._opening:
            self._opening, self._size, self._texts = opening, 0, {}

    def find(self, encoding: str, numbers: Sequence[int]) -> list[bytes] | None:
        """None if not all of them are kept."""
        try:
            return [self._texts[encoding, number] for number in numbers]
        except KeyError:
            return None

    def keep(self, encoding: str, numbered: Iterable[tuple[int, bytes]]) -> None:
        if self._opening is None:
            return  # on a server: after the loss of one, the numbers of its last containers may be given again
        for number, text in numbered:
            if self._texts.setdefault((encoding, number), text) is text:
                self._size += len(text) + _KEPT_OVERHEAD
        if self._size > self._size_max:
            for key in list(self._texts):
                if self._size <= self._size_max // 2:
                    break
                self._size -= len(self._texts.pop(key)) + _KEPT_OVERHEAD


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
        self._kept = KeptContainers()
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
        """Up to `count` containers from number `start` on."""
        rows: list[Any] = await self._reader.rows(self._statement, {**self._base, "start": start, "count": count})
        return rows

    def kept(self) -> KeptContainers:
        """What was made of containers of this series, for callers to use and to add to."""
        self._kept.belong_to(self._reader.opening)
        return self._kept
