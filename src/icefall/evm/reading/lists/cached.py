"""Lists of an embedded store: addresses and blocks come from a cache of the worker instead of a join.

IDs and numbers are reused after a rollback, so the cache is valid for one opening of the store and one rollback count.
Every statement that it completes selects the count in the snapshot that it reads.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from icefall.db.changes import StampedCache
from icefall.db.engine import Reader, Row, StatementParams
from icefall.evm.encoding import BITS
from icefall.evm.enriching.reader import AnswerTokens
from icefall.evm.model import ERC20
from icefall.evm.reading.lists.joined import JoinedLists, page_bounds
from icefall.evm.reading.lists.rows import (
    ERC20_IDS,
    ERC20_LOG_AT,
    STORED_LOG_AT,
    STORED_TRANSFER_IDS,
    STORED_TX_AT,
    STORED_TX_IDS,
    BlockName,
    stored_erc20,
    stored_transfers,
    stored_txs,
    transfers_in_txs,
)
from icefall.evm.reading.model import PageRange, TransferRead, TxRead
from icefall.evm.reading.one_history import HistoryChanged
from icefall.evm.standards import SINGLE, load_statements

SQL = load_statements("icefall.evm.reading.lists", "stored.sql")
ADDRESSES_MAX, BLOCKS_MAX = 50_000, 20_000  # about 10 MB and 5 MB
_OF_ADDRESS = {standard.number: SQL.named(f"{standard.table}_of") for standard in SINGLE}

T = TypeVar("T")


class _Names:
    """Addresses by ID, and blocks by number."""

    __slots__ = ("addresses", "blocks")

    def __init__(self) -> None:
        self.addresses: dict[int, bytes] = {}
        self.blocks: dict[int, BlockName] = {}


class RowCache:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._names = StampedCache(_Names)

    async def decoded(
        self,
        statement: str,
        params: StatementParams,
        decode: Callable[[list[Row], _Names], list[T]],
        position: int,
        ids: slice,
    ) -> list[T]:
        """Read the rows of a statement and decode them with the cached names. Each row has a position in the chain and
        IDs of addresses in these columns, and the rollback count in its last one."""
        rows = await self._reader.rows(statement, params)
        if not rows:
            return []
        rollbacks = rows[0][-1]
        names = self._names.of((self._reader.generation, rollbacks))
        try:
            return decode(rows, names)
        except KeyError:
            refs, numbers = {ref for row in rows for ref in row[ids]}, {row[position] >> BITS for row in rows}
        await self._load(names, refs, numbers, rollbacks)
        try:
            return decode(rows, names)
        except KeyError:  # rows of a store that was opened again meanwhile
            raise HistoryChanged from None

    async def _load(self, names: _Names, ids: Iterable[int], numbers: Iterable[int], rollbacks: str | None) -> None:
        """Add what is missing, and drop others only where it is not needed for these rows."""
        needed_ids, needed_numbers = set(ids), set(numbers)
        missing = [ref for ref in needed_ids if ref not in names.addresses]
        if missing:
            found = await self._reader.rows(SQL.known_addresses, {"ids": missing})
            _check(found, rollbacks)
            _make_room(names.addresses, ADDRESSES_MAX, needed_ids)
            names.addresses.update((ref, address) for ref, address, _ in found)
        missing = [number for number in needed_numbers if number not in names.blocks]
        if missing:
            found = await self._reader.rows(SQL.known_blocks, {"numbers": missing})
            _check(found, rollbacks)
            _make_room(names.blocks, BLOCKS_MAX, needed_numbers)
            names.blocks.update((number, (block_hash, time)) for number, block_hash, time, _ in found)


def _check(found: list[Row], rollbacks: str | None) -> None:
    if not found or found[0][-1] != rollbacks:
        raise HistoryChanged


def _make_room(names: dict[int, Any], limit: int, needed: set[int]) -> None:
    """Drop the older half: seldom enough to cost nothing, and half of what is asked for stays."""
    if len(names) > limit:
        for key in [key for key in islice(names, limit // 2) if key not in needed]:
            del names[key]


class CachedLists(JoinedLists):
    """Lists that are asked for often are completed from the cache, the others are joined."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        self._cache = RowCache(reader)

    async def txs_of(self, address: bytes, span: PageRange, limit: int) -> list[TxRead]:
        return await self._txs(SQL.txs_of, {"address": address, "limit": limit, **span.descending()})

    async def touched_txs(
        self, address: bytes, span: PageRange, limit: int, *, ascending: bool = False
    ) -> list[TxRead]:
        where = {"address": address, "limit": limit, **(span.ascending() if ascending else span.descending())}
        return await self._txs(SQL.touched_ascending if ascending else SQL.touched, where)

    async def _txs(self, statement: str, where: StatementParams) -> list[TxRead]:
        return await self._cache.decoded(statement, where, _txs, STORED_TX_AT, STORED_TX_IDS)

    async def transfers_of(self, standard: int, address: bytes, span: PageRange, limit: int) -> list[TransferRead]:
        statement = _OF_ADDRESS.get(standard)
        if statement is None:
            return await super().transfers_of(standard, address, span, limit)
        bounds = span.inside()
        where = {"address": address, "limit": limit, "low": bounds["low"], "high": bounds["high"]}
        if standard == ERC20:
            return await self._cache.decoded(statement, where, _erc20, ERC20_LOG_AT, ERC20_IDS)
        return await self._cache.decoded(statement, where, _transfers, STORED_LOG_AT, STORED_TRANSFER_IDS)

    async def erc20_with_tokens(
        self, address: bytes, span: PageRange, limit: int, currency: str
    ) -> tuple[list[TransferRead], AnswerTokens | None]:
        """Leave the details to the cache of tokens."""
        return await self.transfers_of(ERC20, address, span, limit), None

    async def transfers_of_page(
        self, address: bytes, txs: Sequence[TxRead], last: TransferRead | None, limit: int
    ) -> tuple[list[TransferRead], bool]:
        where = page_bounds(address, txs, last, limit)
        where["from_log"] = where["low"] if last is None else last.log_at + 1
        locations = {tx.tx_at: tx.location for tx in txs}
        has_internals = True  # as far as no row tells

        def decode(rows: list[Row], names: _Names) -> list[TransferRead]:
            nonlocal has_internals
            has_internals = rows[0][-2] is not None
            return transfers_in_txs(rows, locations, names.addresses)

        found = await self._cache.decoded(SQL.transfers_of_page, where, decode, STORED_LOG_AT, STORED_TRANSFER_IDS)
        return found, has_internals


def _txs(rows: list[Row], names: _Names) -> list[TxRead]:
    return stored_txs(rows, names.blocks, names.addresses)


def _erc20(rows: list[Row], names: _Names) -> list[TransferRead]:
    return stored_erc20(rows, names.blocks, names.addresses)


def _transfers(rows: list[Row], names: _Names) -> list[TransferRead]:
    """The hash of the transaction is the column before the rollback count."""
    return stored_transfers(rows, [row[-2] for row in rows], names.blocks, names.addresses)
