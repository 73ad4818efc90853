"""Amounts that contracts or long waits can make large must stay cheap, and within the time limit of a query."""

from typing import Any

import msgspec
from tests.evm.recordings import derived

from icefall.evm.deriving.packing import packed
from icefall.evm.model import MetadataChange
from icefall.evm.storing.writing import SQL, BatchRows

LAST = 120


class _Written:
    """A transaction that only records the ranges."""

    def __init__(self) -> None:
        self.ranges: list[Any] = []

    def run_many(self, statement: str, params: list[Any]) -> None:
        self.ranges += params if statement == SQL.reread_nfts else []


def test_repeated_metadata_changes_are_written_once() -> None:
    """Each range costs a read of every token in it."""
    rows = derived("geth-1")[50].rows
    token, last = rows.txs[0].sender, 2**256 - 1
    ranges = [(0, last), (5, 9), (0, last - 1)] * 1000
    gathered, written = BatchRows(), _Written()
    for changes in ([MetadataChange(token, *one) for one in ranges], [MetadataChange(token, 3, 3)]):
        block = packed(msgspec.structs.replace(rows, metadata_changes=tuple(changes)))
        gathered.add(block, [7] * len(block.addresses))
    list(gathered.write(written))  # type: ignore[arg-type]
    assert len(written.ranges) == 1


def test_ranges_apart_stay_apart() -> None:
    rows = derived("geth-1")[50].rows
    changes = tuple(MetadataChange(rows.txs[0].sender, first, first + 1) for first in (40, 0, 10, 11))
    gathered, written = BatchRows(), _Written()
    block = packed(msgspec.structs.replace(rows, metadata_changes=changes))
    gathered.add(block, [7] * len(block.addresses))
    list(gathered.write(written))  # type: ignore[arg-type]
    assert len(written.ranges) == 3
