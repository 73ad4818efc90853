"""A chain's store with rollups, filled by the writer of blocks itself."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.store.opened import open_reader, open_store

from icefall.evm.model import BlockRows
from icefall.evm.packed import ResolvedBlock
from icefall.evm.storing.packing import packed
from icefall.evm.storing.store import PACKAGE, ChainStore
from icefall.metrics.catalogue import METRICS
from icefall.metrics.periods import SPAN_NAMES
from icefall.metrics.reader import MetricsReader, SeriesPage
from icefall.metrics.store import RollupWriter

METRIC_BY_NAME = {metric.name: metric for metric in METRICS}
NOW = 1_800_000_000
TABLES = ("rollup", "activity", "last_activity", "deployer", "block_price")


class Scene:
    def __init__(self, path: Path, offset: int = 0) -> None:
        self.store = open_store(path, PACKAGE)
        self.chain = ChainStore(self.store, [RollupWriter(lambda: NOW)], offset)
        self.file = open_reader(path)
        self.reader = MetricsReader(self.file)

    def put(self, run: Sequence[BlockRows]) -> None:
        asyncio.run(self.chain.commit([ResolvedBlock(packed(rows), (), ()) for rows in run]))

    def tip(self) -> int:
        tip = self.chain.tip()
        return tip.number if tip else -1

    def roll_back(self, ancestor: int) -> None:
        asyncio.run(self.chain.roll_back(ancestor))

    def page(self, metric: str, interval: str, **params: Any) -> SeriesPage:
        given = {"start": None, "end": None, "before": None, "limit": 100_000, **params}
        return asyncio.run(self.reader.series(METRIC_BY_NAME[metric], SPAN_NAMES.index(interval), **given))

    def series(self, metric: str, interval: str) -> list[tuple[int, int | float]]:
        return [(point.timestamp, point.value) for point in self.page(metric, interval).points]

    def rolling(self, metric: str, now: int) -> dict[str, int | float]:
        return asyncio.run(self.reader.rolling(METRIC_BY_NAME[metric], now))

    def tables(self) -> dict[str, Any]:
        """All rows; the activity of an hour as one entry, however many commits wrote it."""
        found: dict[str, Any] = {table: self.store.read(f"select * from {table} order by 1, 2") for table in TABLES}
        by_hour: dict[int, tuple[list[Any], list[Any]]] = {}
        for hour, _, fresh, earlier in found["activity"]:
            entry = by_hour.setdefault(hour, ([], []))
            entry[0].extend(msgspec.msgpack.decode(fresh))
            entry[1].extend(msgspec.msgpack.decode(earlier))
        found["activity"] = {hour: (sorted(fresh), sorted(earlier)) for hour, (fresh, earlier) in by_hour.items()}
        return found

    def close(self) -> None:
        self.chain.close()
        self.file.close()
