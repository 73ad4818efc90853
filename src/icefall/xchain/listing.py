"""Lists of X for a worker: blocks and transactions, read page by page and never further."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from icefall.db.engine import Reader, Row, StoreError
from icefall.db.statements import load
from icefall.xchain.store import NEWEST

SQL = load("icefall.xchain", "listing.sql")


class AssetChainBlock(msgspec.Struct, frozen=True, gc=False):
    """An accepted block. `container` holds the block's own bytes at `inner_at`; block 0 has no other bytes."""

    height: int
    block_id: bytes
    container: bytes
    inner_at: int
    inner_size: int

    @property
    def inner(self) -> bytes:
        return self.container[self.inner_at : self.inner_at + self.inner_size]


class AssetChainTx(msgspec.Struct, frozen=True, gc=False):
    """An accepted transaction with its block. `is_linear`: it is in a block, or of the genesis."""

    seq: int
    txid: bytes
    height: int
    raw: bytes
    block_id: bytes
    time: int
    is_linear: bool


async def first_at(low: int, count: int, time_at: Callable[[int], Awaitable[int]], time: int) -> int:
    """The first of the numbers from `low` to `count` whose time is not before `time`, by halving: times never fall."""
    high = count
    while low < high:
        middle = (low + high) // 2
        if await time_at(middle) < time:
            low = middle + 1
        else:
            high = middle
    return low


class AssetChainLists:
    """The lists of one asset chain in a store."""

    def __init__(self, reader: Reader, chain_id: bytes) -> None:
        self._reader = reader
        self._chain_id = chain_id
        self._ledger: tuple[int, int] | None = None
        self._block_0_time: int | None = None

    async def _of(self) -> tuple[int, int]:
        """The chain's number in the store, and how many transactions its genesis has; neither ever changes."""
        if self._ledger is None:
            rows = await self._reader.rows(SQL.ledger, {"chain_id": self._chain_id})
            if not rows:
                raise StoreError("the X-Chain is not in the store")
            self._ledger = int(rows[0][0]), int(rows[0][1])
        return self._ledger

    async def counts(self) -> tuple[int, int]:
        """How many blocks there are, with block 0, and how many transactions."""
        rows = await self._reader.rows(SQL.counts, {"chain": (await self._of())[0]})
        return int(rows[0][0]), int(rows[0][1])

    # -- blocks ---------------------------------------------------------------------------------------------------

    async def blocks(self, low: int, below: int, limit: int) -> list[AssetChainBlock]:
        """Blocks of a range of heights, newest first."""
        key = {"chain": (await self._of())[0], "low": low, "below": below, "limit": limit}
        return [AssetChainBlock(*row) for row in await self._reader.rows(SQL.blocks, key)]

    async def block(self, which: int | bytes) -> AssetChainBlock | None:
        """A block by its height or its ID."""
        if isinstance(which, int):
            found = await self.blocks(which, which + 1, 1) if which < NEWEST else []
        else:
            key = {"chain": (await self._of())[0], "block_id": which}
            found = [AssetChainBlock(*row) for row in await self._reader.rows(SQL.block_by_id, key)]
        return found[0] if found else None

    async def blocks_at(self, heights: list[int]) -> list[AssetChainBlock]:
        """Blocks of given heights, newest first."""
        chain, _ = await self._of()
        keys = [(chain, height) for height in heights]
        rows = await self._reader.rows_of_each(SQL.block_of, keys) if keys else []
        return sorted((AssetChainBlock(*row) for row in rows), key=lambda one: -one.height)

    async def block_0_time(self) -> int:
        """The time of block 0, which is that of all before it too; it never changes."""
        if self._block_0_time is None:
            self._block_0_time = await self._time(SQL.block_time, {"height": 0})
        return self._block_0_time

    async def first_height(self, time: int, count: int) -> int:
        """The first of `count` heights whose block is not earlier than `time`."""
        return await first_at(0, count, lambda height: self._time(SQL.block_time, {"height": height}), time)

    async def _time(self, statement: str, key: dict[str, int]) -> int:
        rows = await self._reader.rows(statement, {"chain": (await self._of())[0], **key})
        return int.from_bytes(rows[0][0], "big")

    # -- transactions ---------------------------------------------------------------------------------------------

    async def first_seq(self, time: int, count: int) -> int:
        """The number of the first transaction whose block is not earlier than `time`."""
        return await first_at(0, count, lambda seq: self._time(SQL.tx_time, {"seq": seq}), time)

    async def txs(self, low: int, below: int, limit: int, *, upwards: bool) -> list[AssetChainTx]:
        """Transactions of a range of numbers, in their order or newest first."""
        return await self._txs(SQL.txs_up if upwards else SQL.txs_down, low, below, limit, {})

    async def txs_of(
        self, addresses: Iterable[bytes], low: int, below: int, limit: int, *, upwards: bool
    ) -> list[AssetChainTx]:
        """Transactions that took from one of the addresses or gave to it."""
        statement = SQL.txs_of_address_up if upwards else SQL.txs_of_address_down
        found: dict[int, AssetChainTx] = {}
        for address in addresses:
            rows = await self._txs(statement, low, below, limit, {"address": address})
            found.update((one.seq, one) for one in rows)
        return [found[seq] for seq in sorted(found, reverse=not upwards)][:limit]

    async def txs_of_asset(self, asset: bytes, low: int, below: int, limit: int) -> list[AssetChainTx]:
        """Transactions that consumed or made some of an asset, newest first."""
        return await self._txs(SQL.txs_of_asset, low, below, limit, {"asset": asset})

    async def tx(self, txid: bytes) -> AssetChainTx | None:
        found = await self._decoded(SQL.tx_of, {"txid": txid})
        return found[0] if found else None

    async def raw_txs(self, txids: Sequence[bytes]) -> list[bytes]:
        """The bytes of transactions, in any order."""
        keys = [((await self._of())[0], txid) for txid in txids]
        return [bytes(raw) for (raw,) in await self._reader.rows_of_each(SQL.tx_bytes, keys)] if keys else []

    async def _txs(self, statement: str, low: int, below: int, limit: int, key: dict[str, bytes]) -> list[AssetChainTx]:
        return await self._decoded(statement, {"low": low, "below": below, "limit": limit, **key})

    async def _decoded(self, statement: str, key: dict[str, Any]) -> list[AssetChainTx]:
        chain, genesis_txs = await self._of()
        rows: list[Row] = await self._reader.rows(statement, {"chain": chain, **key})
        return [
            AssetChainTx(seq, txid, height, raw, block_id, int.from_bytes(time, "big"), height > 0 or seq < genesis_txs)
            for seq, txid, height, raw, block_id, time in rows
        ]
