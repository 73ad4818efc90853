"""Lists read table by table, for servers on which joins are slow: Citus, where its nodes cannot be reached from here.

Citus plans a join anew for every query, which costs several times the query itself; statements with one table cost it
little. Statements that do not depend on each other are sent at the same time.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from icefall.db.engine import Row
from icefall.evm.encoding import BITS
from icefall.evm.enriching.reader import AnswerTokens, TokenDetails, details_of
from icefall.evm.model import ERC20
from icefall.evm.reading.lists.cached import SQL
from icefall.evm.reading.lists.joined import JoinedLists
from icefall.evm.reading.lists.rows import (
    STORED_TRANSFER_IDS,
    STORED_TX_IDS,
    BlockName,
    positions_of_txs,
    stored_transfers,
    stored_txs,
)
from icefall.evm.reading.model import AFTER_ALL, PageRange, TransferRead, TxRead
from icefall.evm.reading.one_history import HistoryChanged
from icefall.evm.standards import BY_NUMBER, STANDARDS

_POSITIONS = {standard.number: SQL.named(f"{standard.table}_positions") for standard in STANDARDS}
_BY_POSITION = {standard.number: SQL.named(f"{standard.table}_at") for standard in STANDARDS}
T = TypeVar("T")


class ListsPerTable(JoinedLists):
    """The lists that are asked for most often are read table by table, the others joined."""

    async def txs_of(self, address: bytes, span: PageRange, limit: int) -> list[TxRead]:
        positions = await self._positions(SQL.tx_positions, address, limit, **span.descending())
        rows = await self._reader.rows(SQL.txs_at, {"positions": positions}) if positions else []
        rows.sort(key=lambda row: row[0], reverse=True)
        blocks, addresses = await asyncio.gather(
            self._blocks(positions), self._addresses(ref for row in rows for ref in row[STORED_TX_IDS])
        )
        return _decoded(lambda: stored_txs(rows, blocks, addresses))

    async def transfers_of(self, standard: int, address: bytes, span: PageRange, limit: int) -> list[TransferRead]:
        bounds = span.inside()
        inside, high = bounds["inside"], bounds["high"]
        rows: list[Row] = []
        if inside and BY_NUMBER[standard].has_batches:  # the remainder of a batch in which the page before ended
            batch = {"low": high, "high": high + 1}
            rows = await self._stored(standard, address, batch, limit, inside)
        if len(rows) < limit:
            rows += await self._stored(standard, address, {"low": bounds["low"], "high": high}, limit - len(rows))
        tx_ats = positions_of_txs(rows)
        blocks, hashes, addresses = await asyncio.gather(
            self._blocks(tx_ats),
            self._by_key(SQL.tx_hashes, "positions", tx_ats),
            self._addresses(ref for row in rows for ref in row[STORED_TRANSFER_IDS]),
        )
        found = (hashes[tx_at][0] for tx_at in tx_ats)
        return _decoded(lambda: stored_transfers(rows, found, blocks, addresses))

    async def erc20_with_tokens(
        self, address: bytes, span: PageRange, limit: int, currency: str
    ) -> tuple[list[TransferRead], AnswerTokens | None]:
        return await self.transfers_of(ERC20, address, span, limit), None

    async def token_details(self, tokens: list[int], currency: str) -> dict[int, TokenDetails]:
        rows, addresses = await asyncio.gather(
            self._reader.rows(SQL.token_details, {"ids": tokens}), self._addresses(tokens)
        )
        of = [addresses[row[0]] for row in rows if row[0] in addresses]
        prices: dict[bytes, str] = {}
        listed: dict[bytes, str] = {}
        keys = [(address, currency, address) for address in of]
        for address, price, details in await self._reader.rows_of_each(SQL.prices_and_listed, keys):
            if details is None:
                prices[address] = price
            else:
                listed[address] = details
        return {
            token: details_of(name, symbol, decimals, prices.get(address), listed.get(address))
            for token, name, symbol, decimals in rows
            for address in (addresses.get(token, b""),)
        }

    async def _stored(
        self, standard: int, address: bytes, bounds: dict[str, int], limit: int, inside: int = AFTER_ALL
    ) -> list[Row]:
        """Read rows of a table of transfers, newest first; of batches, those below `inside`."""
        positions = await self._positions(_POSITIONS[standard], address, limit, **bounds)
        if not positions:
            return []
        where: dict[str, Any] = {"positions": positions}
        if BY_NUMBER[standard].has_batches:
            where |= {"inside": inside, "limit": limit}
        rows = await self._reader.rows(_BY_POSITION[standard], where)
        rows.sort(key=lambda row: row[1:3], reverse=True)
        return rows[:limit]

    async def _positions(self, statement: str, address: bytes, limit: int, *, low: int, high: int) -> list[int]:
        found = await self._reader.rows(SQL.address_id, {"address": address})
        if not found:
            return []
        where = {"id": found[0][0], "low": low, "high": high, "limit": limit}
        return [position for (position,) in await self._reader.rows(statement, where)]

    async def _blocks(self, positions: Sequence[int]) -> dict[int, BlockName]:
        found = await self._by_key(SQL.blocks, "numbers", (position >> BITS for position in positions))
        return {number: (block_hash, time) for number, (block_hash, time) in found.items()}

    async def _addresses(self, ids: Iterable[int]) -> dict[int, bytes]:
        return {ref: address for ref, (address,) in (await self._by_key(SQL.addresses, "ids", ids)).items()}

    async def _by_key(self, statement: str, name: str, keys: Iterable[int]) -> dict[int, Row]:
        """Map the first column of a statement's rows to the others."""
        wanted = sorted(set(keys))
        return {row[0]: row[1:] for row in await self._reader.rows(statement, {name: wanted})} if wanted else {}


def _decoded(decode: Callable[[], list[T]]) -> list[T]:
    """Each statement sees the store as it is then: a rollback in between takes away what a row refers to."""
    try:
        return decode()
    except KeyError:
        raise HistoryChanged from None
