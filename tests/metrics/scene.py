"""A chain's file with rollups in it, filled by the writer of blocks itself."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from icefall.db.sqlite import SqliteReader, SqliteStore
from icefall.evm.following.settling import SettledBlock
from icefall.evm.model import BlockRows
from icefall.evm.storing.store import PACKAGE, ChainStore
from icefall.metrics.catalogue import BY_NAME
from icefall.metrics.periods import SPAN_NAMES
from icefall.metrics.reader import MetricsReader, SeriesPage
from icefall.metrics.store import RollupWriter

NOW = 1_800_000_000
TABLES = ("rollup", "activity", "last_activity", "deployer", "block_price")


class Scene:
    def __init__(self, path: Path, offset: int = 0) -> None:
        self.store = SqliteStore(path, PACKAGE)
        self.chain = ChainStore(self.store, [RollupWriter(lambda: NOW)], offset)
        self.file = SqliteReader(path)
        self.reader = MetricsReader(self.file)

    def put(self, run: Sequence[BlockRows]) -> None:
        asyncio.run(self.chain.commit([SettledBlock(rows, (), ()) for rows in run]))

    def tip(self) -> int:
        tip = self.chain.tip()
        return tip.number if tip else -1

    def undo(self, ancestor: int) -> None:
        asyncio.run(self.chain.roll_back(ancestor))

    def page(self, metric: str, interval: str, **asked: Any) -> SeriesPage:
        given = {"start": None, "end": None, "before": None, "limit": 100_000, **asked}
        return asyncio.run(self.reader.series(BY_NAME[metric], SPAN_NAMES.index(interval), **given))

    def series(self, metric: str, interval: str) -> list[tuple[int, int | float]]:
        return [(point.timestamp, point.value) for point in self.page(metric, interval).points]

    def rolling(self, metric: str, now: int) -> dict[str, int | float]:
        return asyncio.run(self.reader.rolling(BY_NAME[metric], now))

    def tables(self) -> dict[str, Any]:
        """All rows; the notes of an hour in one, whichever runs they came by."""
        found: dict[str, Any] = {table: self.store.read(f"select * from {table} order by 1, 2") for table in TABLES}
        notes: dict[int, tuple[list[Any], list[Any]]] = {}
        for hour, _, fresh, earlier in found["activity"]:
            note = notes.setdefault(hour, ([], []))
            note[0].extend(msgspec.msgpack.decode(fresh))
            note[1].extend(msgspec.msgpack.decode(earlier))
        found["activity"] = {hour: (sorted(fresh), sorted(earlier)) for hour, (fresh, earlier) in notes.items()}
        return found

    def close(self) -> None:
        self.chain.close()
        self.file.close()
