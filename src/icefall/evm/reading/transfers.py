"""Transfers, internal transactions and deployments. Lists are newest first, the parts of a transaction ascend."""

from collections.abc import Iterable, Sequence

from icefall.db.engine import Reader, Row
from icefall.db.statements import load
from icefall.errors import BadRequest
from icefall.evm.amounts import unpack_uint
from icefall.evm.positions import BITS, PER_BLOCK, above, block_of, inside_of, place
from icefall.evm.reading.model import (
    DeploymentRead,
    Erc20Read,
    Erc721Read,
    Erc1155Read,
    InternalRead,
    MessageRead,
    Parts,
    Span,
    TxPlace,
    TxRead,
)
from icefall.evm.storing.writing import ERC20, ERC721

SQL = load("icefall.evm.reading", "transfers.sql")
PARTS_MAX = 20_000  # of one kind, in the transactions of a page
_NO_LIMIT = -1
_BLOCK_BITS = ~(PER_BLOCK - 1)

Transfer = Erc20Read | Erc721Read | Erc1155Read


class TransferReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    # -- lists of an address -----------------------------------------------------------------------------------

    async def erc20_of(self, address: bytes, span: Span, limit: int) -> list[Erc20Read]:
        where = {"address": address, "limit": limit, **span.descending()}
        return _erc20(await self._reader.rows(SQL.erc20_of, where))

    async def erc721_of(self, address: bytes, span: Span, limit: int) -> list[Erc721Read]:
        where = {"address": address, "limit": limit, **span.descending()}
        return _erc721(await self._reader.rows(SQL.erc721_of, where))

    async def erc1155_of(self, address: bytes, span: Span, limit: int) -> list[Erc1155Read]:
        """A cursor may lie inside a batch: its rest comes first."""
        where = {"address": address, "limit": limit, **span.inside()}
        rows = []
        if where.pop("inside"):
            assert span.before is not None
            rows = await self._reader.rows(SQL.erc1155_rest, {**where, "inside": span.before[1]})
            where["limit"] = limit - len(rows)
        if len(rows) < limit:
            rows += await self._reader.rows(SQL.erc1155_of, where)
        return _erc1155(rows)

    async def internals_of(self, address: bytes, span: Span, limit: int) -> list[InternalRead]:
        where = {"address": address, "limit": limit, **span.inside()}
        return _internals(await self._reader.rows(SQL.internals_of, where))

    async def in_token(self, token: bytes, span: Span, limit: int) -> list[Transfer]:
        """What a contract logged, of whichever standards, in log order."""
        where = {"address": token, "limit": limit, **span.inside()}
        rows = await self._reader.rows(SQL.in_token, where)
        found: list[Transfer] = []
        for at, position, standard, *rest in rows:
            index, *middle, amount, second, token_ref, sender_ref, to_ref = rest
            refs = token_ref, sender_ref, to_ref
            if standard == ERC20:
                found += _erc20([(at, index, *middle, amount, *refs)])
            elif standard == ERC721:
                found += _erc721([(at, index, *middle, amount, *refs)])
            else:
                found += _erc1155([(at, position, index, *middle, amount, second, *refs)])
        return found

    # -- parts of transactions ---------------------------------------------------------------------------------

    async def parts_of_tx(self, tx_at: int) -> Parts:
        """Everything inside one transaction."""
        block, rows = block_of(tx_at), self._reader.rows
        where = {"low": place(block, 0), "high": above(block), "tx_index": inside_of(tx_at)}
        return Parts(
            _erc20(await rows(SQL.erc20_of_tx, where)),
            _erc721(await rows(SQL.erc721_of_tx, where)),
            _erc1155(await rows(SQL.erc1155_of_tx, where)),
            _internals(await rows(SQL.internals_of_tx, {"tx_at": tx_at})),
        )

    async def parts_of_page(self, address: bytes, txs: Sequence[TxRead]) -> dict[int, Parts]:
        """By tx_at, what inside these transactions the address is a party of. They are a page of its list, whole: what
        the address did between the first and the last of them is in one of them."""
        if not txs:
            return {}
        ends = sorted((txs[0].tx_at, txs[-1].tx_at))
        where: dict[str, int | bytes] = {
            "address": address,
            "low": place(block_of(ends[0]), 0),
            "high": above(block_of(ends[1])),
            "first_tx": ends[0],
            "last_tx": ends[1],
            "limit": PARTS_MAX + 1 if len(txs) > 1 else _NO_LIMIT,
        }
        wanted: dict[int, Parts] = {tx.tx_at: Parts() for tx in txs}
        for transfer in _erc20(await self._page_rows(SQL.erc20_of_page, where)):
            if transfer.tx_at in wanted:
                wanted[transfer.tx_at].erc20.append(transfer)
        for nft in _erc721(await self._page_rows(SQL.erc721_of_page, where)):
            if nft.tx_at in wanted:
                wanted[nft.tx_at].erc721.append(nft)
        for part in _erc1155(await self._page_rows(SQL.erc1155_of_page, where)):
            if part.tx_at in wanted:
                wanted[part.tx_at].erc1155.append(part)
        for call in _internals(await self._page_rows(SQL.internals_of_page, where)):
            if call.tx_at in wanted:
                wanted[call.tx_at].internals.append(call)
        return wanted

    async def _page_rows(self, statement: str, where: dict[str, int | bytes]) -> list[Row]:
        rows = await self._reader.rows(statement, where)
        if len(rows) > PARTS_MAX and where["limit"] != _NO_LIMIT:
            raise BadRequest(f"the transactions of this page hold more than {PARTS_MAX} transfers: lower pageSize")
        return rows

    # -- deployments and messages ------------------------------------------------------------------------------

    async def deployment(self, address: bytes) -> DeploymentRead | None:
        """The latest successful creation at the address."""
        rows = await self._reader.rows(SQL.deployment, {"address": address})
        return DeploymentRead(*rows[0]) if rows else None

    async def deployed_by(self, address: bytes, span: Span, limit: int) -> list[DeploymentRead]:
        """Contracts made by its transactions, or by itself if it is a contract."""
        where = {"address": address, "limit": limit, **span.inside()}
        return [DeploymentRead(*row) for row in await self._reader.rows(SQL.deployed_by, where)]

    async def message(self, tx_at: int) -> MessageRead | None:
        rows = await self._reader.rows(SQL.message, {"tx_at": tx_at})
        return MessageRead(rows[0][0], rows[0][1], bool(rows[0][2])) if rows else None


# -- rows to structs: the shortest way, this is most of what a list costs ---------------------------------------------


def _erc20(rows: Iterable[Row]) -> list[Erc20Read]:
    return [
        Erc20Read(
            TxPlace(at >> BITS, block_hash, time, txid), at, at & _BLOCK_BITS | index, token, sender, to,
            unpack_uint(value), token_ref, sender_ref, to_ref,
        )
        for at, index, block_hash, time, txid, token, sender, to, value, token_ref, sender_ref, to_ref in rows
    ]  # fmt: skip


def _erc721(rows: Iterable[Row]) -> list[Erc721Read]:
    return [
        Erc721Read(
            TxPlace(at >> BITS, block_hash, time, txid), at, at & _BLOCK_BITS | index, token, sender, to,
            unpack_uint(token_id), token_ref, sender_ref, to_ref,
        )
        for at, index, block_hash, time, txid, token, sender, to, token_id, token_ref, sender_ref, to_ref in rows
    ]  # fmt: skip


def _erc1155(rows: Iterable[Row]) -> list[Erc1155Read]:
    return [
        Erc1155Read(
            TxPlace(at >> BITS, block_hash, time, txid), at, position, at & _BLOCK_BITS | index, token, sender, to,
            unpack_uint(token_id), unpack_uint(value), token_ref, sender_ref, to_ref,
        )
        for at, position, index, block_hash, time, txid, token, sender, to, token_id, value, token_ref, sender_ref,
        to_ref in rows
    ]  # fmt: skip


def _internals(rows: Iterable[Row]) -> list[InternalRead]:
    return [
        InternalRead(
            TxPlace(at >> BITS, block_hash, time, txid), at, frame, kind, sender, to or b"", unpack_uint(value),
            unpack_uint(gas_limit), unpack_uint(gas_used), bool(is_reverted), sender_ref, to_ref or 0,
        )
        for at, frame, block_hash, time, txid, kind, sender, to, value, gas_limit, gas_used, is_reverted, sender_ref,
        to_ref in rows
    ]  # fmt: skip
