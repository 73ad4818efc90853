"""What the exported tables of P and X have in common: their blocks are final, and their transactions are numbered."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from icefall.db.engine import BlockingReader, Row
from icefall.db.statements import load
from icefall.exports.tables import Table
from icefall.wire.ids import id_text
from icefall.wire.text import bech32

SQL = load("icefall.primary", "exported.sql")


class StoredAssetChain(NamedTuple):
    """The X-Chain of a store, and what its genesis created first: AVAX."""

    number: int
    height: int
    tx_count: int
    fee_asset_id: bytes
    chain_id: bytes


def asset_chain(reader: BlockingReader) -> StoredAssetChain:
    (found,) = reader.read(SQL.x_chain)
    return StoredAssetChain(*found)


def addresses_text(hrp: str, addresses: Sequence[bytes]) -> str:
    """Addresses with spaces between them, each without the name of a chain."""
    return " ".join(bech32.address_text("", hrp, one)[1:] for one in addresses)


class FinalChainTables(ABC):
    """The tables of a chain whose blocks are never replaced."""

    name: str
    tables: Sequence[Table]

    def __init__(self, reader: BlockingReader) -> None:
        self._reader = reader

    @abstractmethod
    def _last(self) -> tuple[int, int] | None:
        """The height of the last block whose transactions are known, and how many transactions there are; None if there
        is no block."""

    @abstractmethod
    def _block(self, number: int) -> tuple[bytes, int] | None:
        """The ID and the time of a block."""

    @abstractmethod
    def _height_of_tx(self, seq: int) -> int: ...

    @abstractmethod
    def pieces(self, table: Table, first: int, last: int) -> Iterator[list[Row]]:
        """The rows of a table in these blocks, or as they were after the last of them, a piece at a time."""

    def span(self) -> tuple[int, int] | None:
        last = self._last()
        return None if last is None else (0, last[0])

    def stored_from(self, _: Table) -> int | None:
        return 0

    def history(self) -> str:
        return ""  # accepted blocks are final

    def block_hash(self, number: int) -> str:
        found = self._block(number)
        return "" if found is None else id_text(found[0])

    def block_time(self, number: int) -> int:
        found = self._block(number)
        assert found is not None
        return found[1]

    def first_block_since(self, after: int, last: int, time: int) -> int | None:
        found = _first(after + 1, last + 1, lambda number: self.block_time(number) >= time)
        return found if found <= last else None

    def first_tx(self, height: int) -> int:
        """The number of the first transaction that is not in a block below `height`."""
        last = self._last()
        return _first(0, last[1] if last else 0, lambda seq: self._height_of_tx(seq) >= height)


def _first(low: int, end: int, holds: Callable[[int], bool]) -> int:
    """The first number from `low` for which something holds that holds for all behind it; `end` if for none."""
    while low < end:
        middle = (low + end) // 2
        if holds(middle):
            end = middle
        else:
            low = middle + 1
    return low


def by_ids(read: Callable[[bytes], list[Row]]) -> Iterator[list[Row]]:
    """Read rows in pieces in the order of their first column, an ID; `read` begins behind one."""
    after = b""
    while rows := read(after):
        yield rows
        after = rows[-1][0]
