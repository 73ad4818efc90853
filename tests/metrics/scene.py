"""A chain's store with rollups, filled by the writer of blocks itself."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.evm.reading_scene import now as at_once
from tests.store.opened import on_postgres, open_reader, open_store

from icefall.evm.deriving.packing import packed
from icefall.evm.model import BlockRows
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.store import PACKAGE, ChainStore
from icefall.metrics.catalogue import METRICS
from icefall.metrics.reader import MetricsReader, SeriesPage
from icefall.metrics.rollup import SPAN_NAMES
from icefall.metrics.rows import unpack_earlier, unpack_fresh
from icefall.metrics.store import RollupWriter

METRIC_BY_NAME = {metric.name: metric for metric in METRICS}
NOW = 1_800_000_000
TABLES = ("rollup", "activity", "last_activity", "deployer", "block_price")
KEPT_MAX = 10_000
_kept: dict[int, tuple[BlockRows, ResolvedBlock]] = {}


def _block_of(rows: BlockRows) -> ResolvedBlock:
    """Kept by the identity of its rows: a recorded block is put by many tests, and packing it takes longer."""
    if len(_kept) > KEPT_MAX:
        _kept.clear()
    if id(rows) not in _kept:
        _kept[id(rows)] = rows, ResolvedBlock(packed(rows), (), ())
    return _kept[id(rows)][1]


class Scene:
    def __init__(self, path: Path, offset: int = 0) -> None:
        self.store = open_store(path, PACKAGE)
        self.chain = ChainStore(self.store, [RollupWriter(lambda: NOW)], offset)
        self.file = open_reader(path)
        self.reader = MetricsReader(self.file)
        self._run: Any = asyncio.run if on_postgres(path) else at_once  # a file is written without waiting

    def put(self, run: Sequence[BlockRows]) -> None:
        self._run(self.chain.commit([_block_of(rows) for rows in run]))

    def tip(self) -> int:
        tip = self.chain.tip()
        return tip.number if tip else -1

    def roll_back(self, ancestor: int) -> None:
        asyncio.run(self.chain.roll_back(ancestor))

    def page(self, metric: str, interval: str, **params: Any) -> SeriesPage:
        given = {"start": None, "end": None, "before": None, "limit": 100_000, **params}
        return at_once(self.reader.series(METRIC_BY_NAME[metric], SPAN_NAMES.index(interval), **given))

    def series(self, metric: str, interval: str) -> list[tuple[int, int | float]]:
        return [(point.timestamp, point.value) for point in self.page(metric, interval).points]

    def rolling(self, metric: str, now: int) -> dict[str, int | float]:
        return at_once(self.reader.rolling(METRIC_BY_NAME[metric], now))

    def tables(self) -> dict[str, Any]:
        """All rows; the activity of an hour as one entry, however many commits wrote it."""
        found: dict[str, Any] = {table: self.store.read(f"select * from {table} order by 1, 2") for table in TABLES}
        by_hour: dict[int, tuple[list[Any], list[Any]]] = {}
        for hour, _, fresh, earlier in found["activity"]:
            entry = by_hour.setdefault(hour, ([], []))
            entry[0].extend(unpack_fresh(fresh))
            entry[1].extend(unpack_earlier(earlier))
        found["activity"] = {hour: (sorted(fresh), sorted(earlier)) for hour, (fresh, earlier) in by_hour.items()}
        return found

    def close(self) -> None:
        self.chain.close()
        self.file.close()
