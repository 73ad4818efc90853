"""Blocks and transactions of one chain. Lists are newest first."""

from collections.abc import Sequence
from typing import NamedTuple

from icefall.db.engine import Reader, Row
from icefall.db.statements import load
from icefall.evm.encoding import REPEATS_TRANSFER, above, position_of, unpack_data, unpack_input, unpack_uint
from icefall.evm.reading.lists.rows import TX_COLUMNS, tx_of
from icefall.evm.reading.model import AFTER_ALL, BlockRead, FullTxRead, TxRead

SQL = load("icefall.evm.reading", "chain.sql")
FULL_TX_COLUMNS = (*TX_COLUMNS, "input", "base_fee", "transfer_sender", "transfer_recipient", "transfer_value")
SEARCH_MAX = 5_000  # transactions read to find those of a status
SHARES_MAX = 6  # steps of a search by time after which it is no longer guessed where the block should be


class TxPlace(NamedTuple):
    """A transaction that was found by the beginning of its hash."""

    tx_hash: bytes
    block_number: int
    time: int


class ChainReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._tip: BlockRead | None = None
        self._tip_at: int | None = None  # the version of the store that it was read from

    # -- blocks ------------------------------------------------------------------------------------------------

    async def tip(self) -> BlockRead | None:
        """The newest block, read again when the store has changed."""
        version = self._reader.version()
        if version is None or version != self._tip_at:
            self._tip, self._tip_at = _first_block(await self._reader.rows(SQL.tip)), version
        return self._tip

    async def lowest(self) -> int | None:
        """The number of the first indexed block."""
        rows = await self._reader.rows(SQL.lowest)
        return rows[0][0] if rows else None

    async def block(self, which: int | bytes) -> BlockRead | None:
        """Find a block by its number or its hash."""
        if isinstance(which, int):
            return _first_block(await self._reader.rows(SQL.block, {"number": min(which, AFTER_ALL)}))
        return _first_block(await self._reader.rows(SQL.block_by_hash, {"hash": which}))

    async def hashes_of(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the hashes of blocks by number; those that are not indexed are left out."""
        return dict(await self._reader.rows_of_each(SQL.block_hash_of, [(number,) for number in numbers]))

    async def page(self, before: int | None, limit: int) -> list[BlockRead]:
        """Read the blocks with a number below `before`, or the newest ones."""
        where = {"before": AFTER_ALL if before is None else before, "limit": limit}
        return [_block(row) for row in await self._reader.rows(SQL.blocks, where)]

    async def at_or_before(self, time: int) -> BlockRead | None:
        """The newest block that is not later than a Unix time. Times never decrease and mostly grow evenly: it is first
        looked for where it would be if they did, and after a few steps by halves."""
        tip, lowest = await self.tip(), await self._reader.rows(SQL.lowest)
        if tip is None or not lowest or tip.time <= time:
            return tip
        (low, low_time), high, high_time, found = lowest[0], tip.number, tip.time, None
        if low_time > time:
            return None
        steps = 0
        while (span := high - low) > 1:
            steps += 1
            by_share = steps % 3 and steps <= SHARES_MAX
            ahead = span * (time - low_time) // (high_time - low_time) if by_share else span // 2
            block = await self.block(low + min(max(ahead, 1), span - 1))
            if block is None:  # rolled back meanwhile
                break
            if block.time <= time:
                found, low, low_time = block, block.number, block.time
            else:
                high, high_time = block.number, block.time
        return found or await self.block(low)

    async def meta(self, name: str) -> str | None:
        """A value of the meta table, written by the indexer."""
        rows = await self._reader.rows(SQL.meta, {"name": name})
        return rows[0][0] if rows else None

    # -- transactions ------------------------------------------------------------------------------------------

    async def tx(self, txid: bytes) -> FullTxRead | None:
        return _first_full(await self._reader.rows(SQL.tx, {"hash": txid}))

    async def full_tx_at(self, tx_at: int) -> FullTxRead | None:
        return _first_full(await self._reader.rows(SQL.tx_at, {"tx_at": tx_at}))

    async def txs_of_block(self, number: int, before_index: int | None, limit: int) -> list[TxRead]:
        """Read the transactions with an index below `before_index`, highest first."""
        high = above(number) if before_index is None else position_of(number, before_index)
        where = {"low": position_of(number, 0), "high": high, "limit": limit}
        return [tx_of(row) for row in await self._reader.rows(SQL.txs, where)]

    async def newest_txs(
        self, before_at: int | None, limit: int, status: int | None = None
    ) -> tuple[list[TxRead], int | None]:
        """Return a page and where the next one begins; None after the last.

        At most SEARCH_MAX transactions are read for a status: with a rare one a page may be short or empty although
        more follow.
        """
        where = {"low": 0, "high": AFTER_ALL if before_at is None else before_at, "limit": limit + 1}
        end = None
        if status is None:
            rows = await self._reader.rows(SQL.txs, where)
        else:
            found = await self._reader.rows(SQL.search_end, {"high": where["high"], "read_max": SEARCH_MAX - 1})
            where["low"] = end = found[0][0] if found else 0
            rows = await self._reader.rows(SQL.txs_with_status, {**where, "status": status})
        txs = [tx_of(row) for row in rows[:limit]]
        return txs, txs[-1].tx_at if len(rows) > limit else end or None

    async def blocks_between(self, first: bytes, last: bytes, limit: int) -> list[BlockRead]:
        """Return blocks whose hash is not before the first and not after the last, in the order of hashes."""
        where = {"low": first, "high": last, "limit": limit}
        return [_block(row) for row in await self._reader.rows(SQL.blocks_between, where)]

    async def txs_between(self, first: bytes, last: bytes, limit: int) -> list[TxPlace]:
        """Return transactions whose hash is not before the first and not after the last, in the order of hashes."""
        where = {"low": first, "high": last, "limit": limit}
        return sorted(TxPlace(*row) for row in await self._reader.rows(SQL.txs_between, where))

    async def is_known(self, address: bytes) -> bool:
        """Whether the address occurs anywhere in the index."""
        return bool(await self._reader.rows(SQL.is_known, {"address": address}))


def _block(row: Row) -> BlockRead:
    number, block_hash, parent_hash, time, tx_count, base_fee, gas_used, gas_limit, gas_cost, fees_spent, *others = row
    total, fee_recipient, size, fees_burned = others
    return BlockRead(
        number,
        block_hash,
        parent_hash,
        time,
        tx_count,
        unpack_uint(base_fee),
        unpack_uint(gas_used),
        unpack_uint(gas_limit),
        unpack_uint(gas_cost),
        unpack_uint(fees_spent),
        total,
        fee_recipient,
        size,
        None if fees_burned is None else unpack_uint(fees_burned),
    )


def _first_block(rows: list[Row]) -> BlockRead | None:
    return _block(rows[0]) if rows else None


def _first_full(rows: list[Row]) -> FullTxRead | None:
    return full_tx_of(rows[0]) if rows else None


def full_tx_of(found: Row) -> FullTxRead:
    """Decode a row of full_tx_view."""
    *row, packed, base_fee, sender, recipient, value = found
    tx = tx_of(tuple(row))
    if packed.startswith(REPEATS_TRANSFER):
        arguments = unpack_input(packed, sender, recipient, unpack_uint(value))
    else:
        arguments = unpack_data(packed)
    return FullTxRead(tx, tx.selector + arguments, unpack_uint(base_fee))
