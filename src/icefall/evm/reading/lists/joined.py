"""Lists in one statement with joins: for servers, where every statement is a round trip and joins cost little."""

from collections.abc import Sequence
from typing import Any

from icefall.db.engine import Reader
from icefall.evm.encoding import above, block_of, position_of
from icefall.evm.enriching.reader import AnswerTokens, TokenDetails, details_of
from icefall.evm.reading.lists.rows import transfers_of, transfers_with_tokens, tx_of
from icefall.evm.reading.model import PageRange, TransferRead, TxRead
from icefall.evm.standards import BATCHED, STANDARDS, load_statements

SQL = load_statements("icefall.evm.reading.lists", "joined.sql")
_OF_ADDRESS = {standard.number: SQL.named(f"{standard.table}_of") for standard in STANDARDS}
_REST = {standard.number: SQL.named(f"{standard.table}_rest") for standard in BATCHED}


def page_bounds(address: bytes, txs: Sequence[TxRead], last: TransferRead | None, limit: int) -> dict[str, int | bytes]:
    """The parameters of a statement that reads the transfers of a page of transactions."""
    first, final = sorted((txs[0].tx_at, txs[-1].tx_at))
    low, inside = (position_of(block_of(first), 0), -1) if last is None else (last.log_at, last.position)
    span = {"low": low, "inside": inside, "high": above(block_of(final))}
    return {"address": address, "first_tx": first, "last_tx": final, "limit": limit, **span}


class JoinedLists:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def txs_of(self, address: bytes, span: PageRange, limit: int) -> list[TxRead]:
        where = {"address": address, "limit": limit, **span.descending()}
        return [tx_of(row) for row in await self._reader.rows(SQL.txs_of, where)]

    async def touched_txs(
        self, address: bytes, span: PageRange, limit: int, *, ascending: bool = False
    ) -> list[TxRead]:
        where = {"address": address, "limit": limit, **(span.ascending() if ascending else span.descending())}
        rows = await self._reader.rows(SQL.touched_ascending if ascending else SQL.touched, where)
        return [tx_of(row) for row in rows]

    async def transfers_of(self, standard: int, address: bytes, span: PageRange, limit: int) -> list[TransferRead]:
        bounds = span.inside()
        inside = bounds.pop("inside")
        where: dict[str, Any] = {"address": address, "limit": limit, **bounds}
        rows = []
        if inside and standard in _REST:
            rows = await self._reader.rows(_REST[standard], {**where, "inside": inside})
            where["limit"] = limit - len(rows)
        if len(rows) < limit:
            rows += await self._reader.rows(_OF_ADDRESS[standard], where)
        return transfers_of(rows)

    async def erc20_with_tokens(
        self, address: bytes, span: PageRange, limit: int, currency: str
    ) -> tuple[list[TransferRead], AnswerTokens | None]:
        bounds = span.inside()
        del bounds["inside"]
        where = {"address": address, "limit": limit, "currency": currency, **bounds}
        return transfers_with_tokens(await self._reader.rows(SQL.erc20_of_with_tokens, where))

    async def transfers_of_page(
        self, address: bytes, txs: Sequence[TxRead], last: TransferRead | None, limit: int
    ) -> tuple[list[TransferRead], bool]:
        where = page_bounds(address, txs, last, limit)
        return transfers_of(await self._reader.rows(SQL.transfers_of_page, where)), True

    async def token_details(self, tokens: list[int], currency: str) -> dict[int, TokenDetails]:
        rows = await self._reader.rows(SQL.priced_tokens, {"tokens": tokens, "currency": currency})
        return {
            token: details_of(name, symbol, decimals, price, listed)
            for token, name, symbol, decimals, price, listed in rows
        }
