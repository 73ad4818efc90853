"""The atomic side of the C-Chain in the node's store: its blocks, and the transactions that import and export."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from icefall.db.engine import Reader, Row, Transaction
from icefall.db.statements import load
from icefall.wire.container.core_txs import CoreTx

SQL = load("icefall.node", "core_chain.sql")


class CoreBlock(msgspec.Struct, frozen=True, gc=False):
    """A block of C. `container` is None where the index of containers was off."""

    height: int
    block_id: bytes
    time: int
    container: bytes | None


class StoredCoreTx(msgspec.Struct, frozen=True, gc=False):
    """An atomic transaction with its block."""

    seq: int
    txid: bytes
    height: int
    raw: bytes
    block_id: bytes
    time: int


def put_core_blocks(tx: Transaction, blocks: Sequence[Row]) -> None:
    """Store blocks: height, hash, time, and the number of the container."""
    tx.run_many(SQL.put_block, blocks)


def put_core_txs(tx: Transaction, txs: Iterable[tuple[int, CoreTx, Iterable[bytes]]]) -> None:
    """Store atomic transactions: each with its height and the addresses that it concerns."""
    seq = int(tx.rows(SQL.next_seq)[0][0])
    rows: list[Row] = []
    touched: list[Row] = []
    for number, (height, one, addresses) in enumerate(txs, seq):
        rows.append((number, one.txid, height, one.raw))
        touched += [(address, number) for address in dict.fromkeys(addresses)]
    tx.run_many(SQL.put_tx, rows)
    tx.run_many(SQL.put_address_tx, touched)


class CoreChainLists:
    """The lists of C for a worker, read page by page and never further. `first_at` is the search for a time."""

    def __init__(
        self, reader: Reader, first_at: Callable[[int, int, Callable[[int], Awaitable[int]], int], Awaitable[int]]
    ) -> None:
        self._reader = reader
        self._first_at = first_at

    async def _number(self, statement: str, key: dict[str, int] | None = None) -> int:
        return int((await self._reader.rows(statement, key or {}))[0][0])

    # -- blocks ---------------------------------------------------------------------------------------------------

    async def blocks(self, low: int, below: int, limit: int) -> list[CoreBlock]:
        """Blocks of a range of heights, newest first."""
        key = {"low": low, "below": below, "limit": limit}
        return [CoreBlock(*row) for row in await self._reader.rows(SQL.blocks, key)]

    async def block(self, which: int | bytes) -> CoreBlock | None:
        """A block by its height or its hash."""
        if isinstance(which, int):
            found = await self.blocks(which, which + 1, 1) if which < 1 << 63 else []
        else:
            found = [CoreBlock(*row) for row in await self._reader.rows(SQL.block_by_id, {"block_id": which})]
        return found[0] if found else None

    async def blocks_at(self, heights: list[int]) -> list[CoreBlock]:
        """Blocks of given heights, newest first."""
        rows = await self._reader.rows_of_each(SQL.block_of, [(height,) for height in heights]) if heights else []
        return sorted((CoreBlock(*row) for row in rows), key=lambda one: -one.height)

    async def block_count(self) -> int:
        """The height after the last block."""
        return await self._number(SQL.block_count)

    async def first_height(self, time: int, count: int) -> int:
        """The first height before `count` whose block is not earlier than `time`."""
        low = min(await self._number(SQL.first_block), count)
        return await self._first_at(low, count, lambda height: self._number(SQL.block_time, {"height": height}), time)

    # -- transactions ---------------------------------------------------------------------------------------------

    async def tx_count(self) -> int:
        return await self._number(SQL.next_seq)

    async def first_seq(self, time: int, count: int) -> int:
        """The number of the first transaction whose block is not earlier than `time`."""
        return await self._first_at(0, count, lambda seq: self._number(SQL.tx_time, {"seq": seq}), time)

    async def txs(self, low: int, below: int, limit: int, *, upwards: bool) -> list[StoredCoreTx]:
        """Transactions of a range of numbers, in their order or newest first."""
        key = {"low": low, "below": below, "limit": limit}
        return _txs(await self._reader.rows(SQL.txs_up if upwards else SQL.txs_down, key))

    async def txs_of(
        self, addresses: Iterable[bytes], low: int, below: int, limit: int, *, upwards: bool
    ) -> list[StoredCoreTx]:
        """Transactions that took from one of the addresses or gave to it."""
        statement = SQL.txs_of_address_up if upwards else SQL.txs_of_address_down
        found: dict[int, StoredCoreTx] = {}
        for address in addresses:
            key = {"address": address, "low": low, "below": below, "limit": limit}
            found.update((one.seq, one) for one in _txs(await self._reader.rows(statement, key)))
        return [found[seq] for seq in sorted(found, reverse=not upwards)][:limit]

    async def raw_txs(self, txids: Sequence[bytes]) -> list[bytes]:
        """The bytes of transactions, in any order."""
        rows = await self._reader.rows_of_each(SQL.tx_bytes, [(one,) for one in txids]) if txids else []
        return [bytes(raw) for (raw,) in rows]

    async def tx(self, txid: bytes) -> StoredCoreTx | None:
        found = _txs(await self._reader.rows(SQL.tx_of, {"txid": txid}))
        return found[0] if found else None


def _txs(rows: Iterable[Row]) -> list[StoredCoreTx]:
    return [StoredCoreTx(*row) for row in rows]
