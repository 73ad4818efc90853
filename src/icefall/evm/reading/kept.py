"""Addresses by ID and blocks by number, kept in a worker: lists of an embedded store are not joined with them.

Both stay the same until blocks are rolled back, and IDs are given again. So every statement of kept.sql selects how
often that has happened in the snapshot that it reads: what is kept is never used with rows of another history.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar

from icefall.db.engine import Reader, Row, StatementParams, StoreBusy
from icefall.db.statements import load
from icefall.evm.encoding import BITS
from icefall.evm.reading.model import BlockRead

SQL = load("icefall.evm.reading", "kept.sql")
ADDRESSES_MAX, BLOCKS_MAX, WHOLE_BLOCKS_MAX = 50_000, 20_000, 2_000  # about 10 MB, 5 MB and 2 MB
_TRIES_MAX = 5  # each ends with a rollback while it reads

T = TypeVar("T")
BlockName = tuple[int, bytes, int]  # number, hash and time


class KeptRows:
    """`addresses` and `blocks` are those of the rows that were read last, and of many before."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._history: tuple[int | None, str | None] = (None, None)  # the opening of the store, and its rollbacks
        self.addresses: dict[int, bytes] = {}
        self.blocks: dict[int, BlockName] = {}
        self._whole_blocks: dict[int, BlockRead] = {}
        self._texts: dict[int, Any] = {}

    async def decoded(
        self,
        statement: str,
        params: StatementParams,
        decode: Callable[[list[Row]], list[T]],
        position: int,
        ids: slice,
    ) -> list[T]:
        """The rows of a statement, as `decode` makes them with `addresses` and `blocks`. Each has a position in the
        chain and IDs of addresses in these columns, and the rollbacks in its last one."""
        for _ in range(_TRIES_MAX):
            rows = await self._reader.rows(statement, params)
            if not rows:
                return []
            self._belong_to(rows[0][-1])
            try:
                return decode(rows)
            except KeyError:
                refs, numbers = {ref for row in rows for ref in row[ids]}, {row[position] >> BITS for row in rows}
            if await self._load(refs, numbers):
                with suppress(KeyError):  # making room may have dropped others
                    return decode(rows)
        raise StoreBusy("blocks were rolled back while they were read")

    async def newest_blocks(
        self, where: dict[str, int], read: Callable[[], Awaitable[list[BlockRead]]]
    ) -> list[BlockRead]:
        """The page that is asked for again and again; `read` reads it where not all of its blocks are kept."""
        rows = await self._reader.rows(SQL.block_numbers, where)
        if not rows:
            return []
        self._belong_to(rows[0][-1])
        try:
            return [self._whole_blocks[number] for number, _ in rows]
        except KeyError:
            found = await read()
        if await self._is_still(rows[0][-1]):
            _make_room(self._whole_blocks, WHOLE_BLOCKS_MAX)
            self._whole_blocks.update((block.number, block) for block in found)
        else:
            self._drop()
        return found

    def texts_of_blocks(self) -> dict[int, Any]:
        _make_room(self._texts, WHOLE_BLOCKS_MAX)
        return self._texts

    def _belong_to(self, rollbacks: str | None) -> None:
        """Drops what is of another history than the rows that were just read."""
        if (self._reader.opening, rollbacks) != self._history:
            self._drop()
            self._history = (self._reader.opening, rollbacks)

    def _drop(self) -> None:
        self._history = (None, None)
        self.addresses, self.blocks, self._whole_blocks, self._texts = {}, {}, {}, {}

    async def _load(self, ids: Iterable[int], numbers: Iterable[int]) -> bool:
        """Keeps what is not kept yet; False if blocks were rolled back meanwhile."""
        missing = [ref for ref in ids if ref not in self.addresses]
        if missing:
            addresses = await self._reader.rows(SQL.addresses, {"ids": missing})
            if not self._is_of_history(addresses):
                return False
            _make_room(self.addresses, ADDRESSES_MAX)
            self.addresses.update((ref, address) for ref, address, _ in addresses)
        missing = [number for number in numbers if number not in self.blocks]
        if missing:
            blocks = await self._reader.rows(SQL.blocks, {"numbers": missing})
            if not self._is_of_history(blocks):
                return False
            _make_room(self.blocks, BLOCKS_MAX)
            self.blocks.update((row[0], row[:3]) for row in blocks)
        return True

    def _is_of_history(self, rows: list[Row]) -> bool:
        """Whether what was just read may be kept with the rest."""
        return bool(rows) and (self._reader.opening, rows[0][-1]) == self._history

    async def _is_still(self, rollbacks: str | None) -> bool:
        ((now,),) = await self._reader.rows(SQL.rollbacks)
        return bool(now == rollbacks)


def _make_room(kept: dict[int, Any], limit: int) -> None:
    """The older half goes: seldom enough to cost nothing, and half of what is asked for stays."""
    if len(kept) > limit:
        for key in list(islice(kept, limit // 2)):
            del kept[key]
