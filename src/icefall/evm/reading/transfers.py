"""Transfers, internal transactions and deployments. Lists are newest first, the parts of a transaction ascend.

How many answers with thousands of rows a worker makes at once is limited here too. Each of them holds megabytes from
its first row until it is encoded. Requests take turns, so without a limit all that have come would be half done at the
same time: 250 of them took a worker from 70 to 650 MiB of memory, and with the limit to 170.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from icefall.db.engine import Reader, Row
from icefall.evm.encoding import BITS, above, block_of, index_of, position_of, unpack_uint
from icefall.evm.reading.lists.rows import AddressLists, transfers_of
from icefall.evm.reading.model import (
    AFTER_ALL,
    DeploymentRead,
    InternalRead,
    MessageRead,
    PageRange,
    TransferRead,
    TxLocation,
    TxParts,
    TxRead,
)
from icefall.evm.standards import load_statements

AT_ONCE_MAX = 8


class LargeAnswers:
    """The places for large answers of a worker. Whether an answer is large is known when its first rows are read."""

    def __init__(self, at_once_max: int = AT_ONCE_MAX) -> None:
        self._places = asyncio.Semaphore(at_once_max)

    @asynccontextmanager
    async def place(self) -> AsyncIterator["Place"]:
        """Give back the place that was taken meanwhile, if any, at the end of the block."""
        place = Place(self._places)
        try:
            yield place
        finally:
            place.give_back()


class Place:
    """The place of one answer, which is taken at most once."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._is_taken = False

    async def take(self) -> None:
        """Wait until fewer large answers are made, unless this one is among them already."""
        if not self._is_taken:
            await self._places.acquire()
            self._is_taken = True

    def give_back(self) -> None:
        if self._is_taken:
            self._places.release()
            self._is_taken = False


SQL = load_statements("icefall.evm.reading", "transfers.sql")
# The columns of the views, in the order in which `internals_read` and DeploymentRead take them.
INTERNAL_COLUMNS = (
    "tx_at", "frame", "block_hash", "time", "tx_hash", "kind", "sender_address", "recipient_address", "value",
    "gas_limit", "gas_used", "is_reverted", "sender", "recipient",
)  # fmt: skip
DEPLOYMENT_COLUMNS = ("address", "tx_at", "frame", "creator_address", "tx_hash", "sender_address")
PARTS_MAX = 2_000  # token transfers of one transaction, or of a page of them, and as many internal transactions
READ_PIECE = 500  # rows read at a time, about 5 ms; other requests can run in between
DEPLOYMENTS_MAX = 5_000  # read to find those that are the latest of their address
T = TypeVar("T", TransferRead, InternalRead)


class TransferReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    # -- lists ---------------------------------------------------------------------------------------------------

    async def in_token(self, token: bytes, span: PageRange, limit: int) -> list[TransferRead]:
        """The transfers a contract logged, of all standards, in log order."""
        where = {"address": token, "limit": limit, **span.inside()}
        return transfers_of(await self._reader.rows(SQL.in_token, where))

    async def internals_of(self, address: bytes, span: PageRange, limit: int) -> list[InternalRead]:
        where = {"address": address, "limit": limit, **span.inside()}
        return internals_read(await self._reader.rows(SQL.internals_of, where))

    # -- parts of transactions ---------------------------------------------------------------------------------

    async def of_tx(self, tx_at: int, after: tuple[int, ...] | None, limit: int) -> list[TransferRead]:
        """Token transfers of one transaction in log order, behind the cursor of another."""
        block = block_of(tx_at)
        low, inside = (position_of(block, 0) - 1, 0) if after is None else (after[0], after[1] if after[1:] else 0)
        where = {"low": low, "inside": inside, "high": above(block), "tx_index": index_of(tx_at), "limit": limit}
        return transfers_of(await self._reader.rows(SQL.transfers_of_tx, where))

    async def internals_of_tx(self, tx_at: int, after: int, limit: int) -> list[InternalRead]:
        """Internal transactions of one transaction in their order, behind the frame `after`."""
        where = {"tx_at": tx_at, "after": after, "limit": limit}
        return internals_read(await self._reader.rows(SQL.internals_of_tx, where))

    async def parts_of_tx(self, tx_at: int, place: Place | None = None) -> TxParts:
        """What is inside one transaction: the first PARTS_MAX transfers and internal transactions. `place` is taken
        before more than READ_PIECE of either are read."""

        async def transfers(last: TransferRead | None, limit: int) -> list[TransferRead]:
            return await self.of_tx(tx_at, last.cursor if last else None, limit)

        async def internals(last: InternalRead | None, limit: int) -> list[InternalRead]:
            return await self.internals_of_tx(tx_at, last.frame if last else -1, limit)

        return _limited(await _in_pieces(transfers, place), await _in_pieces(internals, place))

    async def parts_of_page(self, lists: AddressLists, address: bytes, txs: Sequence[TxRead]) -> dict[int, TxParts]:
        """Return the transfers and internal transactions that the address is a party of, by tx_at. `txs` must be
        consecutive in the list of the address: its rows between the first and the last then belong to one of them.

        If there are more than PARTS_MAX, only some of the first transactions are in the result; of a single
        transaction, the first PARTS_MAX."""
        count = len(txs)
        while count:
            transfers, internals = await self._parts_between(lists, address, txs[:count])
            if count == 1:
                return {txs[0].tx_at: _limited(transfers, internals)}
            if len(transfers) <= PARTS_MAX and len(internals) <= PARTS_MAX:
                return _by_tx(txs[:count], transfers, internals)
            count //= 2
        return {}

    async def _parts_between(
        self, lists: AddressLists, address: bytes, txs: Sequence[TxRead]
    ) -> tuple[list[TransferRead], list[InternalRead]]:
        """Read all of them, or more than PARTS_MAX transfers or internal transactions."""
        first, last = sorted((txs[0].tx_at, txs[-1].tx_at))
        where: dict[str, int | bytes] = {"address": address, "last_tx": last}
        has_internals = True

        async def transfers(row: TransferRead | None, limit: int) -> list[TransferRead]:
            nonlocal has_internals
            found, has_internals = await lists.transfers_of_page(address, txs, row, limit)
            return found

        async def internals(row: InternalRead | None, limit: int) -> list[InternalRead]:
            after = {"low": first, "inside": -1} if row is None else {"low": row.tx_at, "inside": row.frame}
            return internals_read(await self._reader.rows(SQL.internals_of_page, {**where, **after, "limit": limit}))

        return await _in_pieces(transfers), await _in_pieces(internals) if has_internals else []

    # -- deployments and messages ------------------------------------------------------------------------------

    async def deployment(self, address: bytes) -> DeploymentRead | None:
        """The latest successful creation at the address."""
        rows = await self._reader.rows(SQL.deployment, {"address": address})
        return DeploymentRead(*rows[0]) if rows else None

    async def deployed_by(
        self, address: bytes, before: tuple[int, ...] | None, limit: int
    ) -> tuple[list[DeploymentRead], tuple[int, ...] | None]:
        """Return contracts whose latest creation was by its transactions, or by itself if it is a contract: each
        address once. And the cursor of the next page; None after the last.

        At most DEPLOYMENTS_MAX creations are read: where contracts were deployed again many times, a page may be short
        or empty although more follow.
        """
        high, inside = before or (AFTER_ALL, 0)
        where: dict[str, int | bytes] = {"address": address, "high": high, "inside": inside}
        found = await self._reader.rows(SQL.deployed_by_end, {**where, "read_max": DEPLOYMENTS_MAX - 1})
        end = tuple(found[0]) if found else None
        low, low_frame = end or (0, 0)
        where |= {"low": low, "low_frame": low_frame, "limit": limit + 1}
        rows = [DeploymentRead(*row) for row in await self._reader.rows(SQL.deployed_by, where)]
        return rows[:limit], rows[limit - 1].cursor if len(rows) > limit else end

    async def message(self, tx_at: int) -> MessageRead | None:
        rows = await self._reader.rows(SQL.message, {"tx_at": tx_at})
        return MessageRead(rows[0][0], rows[0][1], bool(rows[0][2])) if rows else None


async def _in_pieces(read: Callable[[T | None, int], Awaitable[list[T]]], place: Place | None = None) -> list[T]:
    """PARTS_MAX + 1 rows at most. `read` returns up to a limit of rows behind the last one of the piece before."""
    rows = await read(None, READ_PIECE)
    size = len(rows)
    if place is not None and size == READ_PIECE:
        await place.take()
    while size == READ_PIECE:
        await asyncio.sleep(0)
        piece = await read(rows[-1], min(READ_PIECE, PARTS_MAX + 1 - len(rows)))
        rows += piece
        size = len(piece)
    if len(rows) > READ_PIECE:
        await asyncio.sleep(0)
    return rows


def _limited(transfers: list[TransferRead], internals: list[InternalRead]) -> TxParts:
    truncated = len(transfers) > PARTS_MAX or len(internals) > PARTS_MAX
    return TxParts(transfers[:PARTS_MAX], internals[:PARTS_MAX], truncated)


def _by_tx(txs: Sequence[TxRead], transfers: list[TransferRead], internals: list[InternalRead]) -> dict[int, TxParts]:
    parts = {tx.tx_at: TxParts([], []) for tx in txs}
    for transfer in transfers:
        of_tx = parts.get(transfer.tx_at)
        if of_tx is not None:
            of_tx.transfers.append(transfer)
    for call in internals:
        of_tx = parts.get(call.tx_at)
        if of_tx is not None:
            of_tx.internals.append(call)
    return parts


# -- rows to structs: most of what a list costs, so without a detour -------------------------------------------------


def internals_read(rows: Iterable[Row]) -> list[InternalRead]:
    return [
        InternalRead(
            TxLocation(at >> BITS, block_hash, time, txid), at, frame, kind, sender, to or b"", unpack_uint(value),
            unpack_uint(gas_limit), unpack_uint(gas_used), bool(is_reverted), sender_ref, to_ref or 0,
        )
        for at, frame, block_hash, time, txid, kind, sender, to, value, gas_limit, gas_used, is_reverted, sender_ref,
        to_ref in rows
    ]  # fmt: skip
