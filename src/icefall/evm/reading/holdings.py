"""Who held a token throughout some blocks, or at some time in them. Every question reads a bounded number of rows."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from icefall.db.engine import Reader
from icefall.db.statements import Statement
from icefall.errors import BadRequest
from icefall.evm.encoding import block_of, unpack_uint
from icefall.evm.model import ERC20, ZERO_ADDRESS
from icefall.evm.reading.holders import SQL as HOLDERS_SQL
from icefall.evm.reading.moved_nfts import NftMove, OwnedSpans
from icefall.evm.standards import BY_ID, TokenStandard, load_statements

SQL = load_statements("icefall.evm.reading", "holdings.sql")
HOLDERS_MAX = 20_000  # who ever held the token
OWNERS_MAX = 200_000  # changes of owners of NFTs
ADDRESSES_MAX = 100_000  # in the answer to a question about now
_PIECE = 1_000
Owned = dict[int, list[tuple[int, int]]]  # by owner: spans of blocks
_LAST_BALANCE = b"\xff"


class HoldingReader:
    """Holdings of one chain. `blocks`: the first block of the time in question, and the first one behind it. What was
    held before the first block was held in this time too."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def now(self, token: bytes, least: int) -> set[bytes]:
        """Who holds at least so much of an ERC-20 token, as the indexer has counted."""
        found: set[bytes] = set()
        balance, holder = _LAST_BALANCE, 0
        while len(found) <= ADDRESSES_MAX:
            where = {"address": token, "standard": ERC20, "balance": balance, "holder": holder, "limit": _PIECE}
            rows = await self._reader.rows(HOLDERS_SQL.by_balance, where)
            wanted = {address for _, address, held in rows if unpack_uint(held) >= least}
            found |= wanted
            if len(wanted) < _PIECE:
                return found
            holder, _, balance = rows[-1]
            await asyncio.sleep(0)
        raise BadRequest(f"more than {ADDRESSES_MAX:,} addresses hold so much: ask for a larger minBalance")

    async def of_erc20(self, token: bytes, least: int, blocks: range, *, throughout: bool) -> set[bytes]:
        """Who held at least so much of an ERC-20 token throughout the blocks, or at some time in them."""
        found: set[bytes] = set()
        after = read = 0
        while read <= HOLDERS_MAX:
            where = {"address": token, "standard": ERC20, "after": after, "limit": _PIECE}
            rows = await self._reader.rows(HOLDERS_SQL.by_id, where)
            for holder, address, _ in rows:
                held = await self._balances(token, holder, blocks)
                if (all if throughout else any)(balance >= least for balance in held):
                    found.add(address)
                after = holder
            if len(rows) < _PIECE:
                return found
            read += len(rows)
            await asyncio.sleep(0)
        raise BadRequest(f"more than {HOLDERS_MAX:,} addresses have held this token: its history is not searched")

    async def _balances(self, token: bytes, holder: int, blocks: range) -> list[int]:
        """The balance before the first block, and all that follow in the blocks."""
        of = {"holder": holder, "address": token}
        ((before,),) = await self._reader.rows(HOLDERS_SQL.balance_before, {**of, "block": blocks.start})
        found = [unpack_uint(before) if before is not None else 0]
        low = blocks.start
        while True:
            where = {**of, "low": low, "high": blocks.stop, "limit": _PIECE}
            rows = await self._reader.rows(HOLDERS_SQL.balances_between, where)
            found += [unpack_uint(balance) for _, balance in rows]
            if len(rows) < _PIECE:
                return found
            low = rows[-1][0] + 1

    async def of_nfts(self, token: bytes, blocks: range, *, throughout: bool) -> set[bytes]:
        """Who owned an NFT, or an amount of an ID, throughout the blocks, be it one after the other, or at some
        time."""
        if await self._reader.rows(SQL.has_ranges, {"address": token}):
            owned = await self._owned_in_ranges(token, blocks)
        else:
            owned = _owned(await self._owners(token), blocks)
        for standard in BY_ID:
            await self._add_ids(owned, standard, token, blocks)
        numbers = [owner for owner, spans in owned.items() if not throughout or _is_covered(blocks, spans)]
        rows = await self._reader.rows_of_each(SQL.addresses, [(number,) for number in numbers])
        return {address for _, address in rows} - {ZERO_ADDRESS}

    async def _owned_in_ranges(self, token: bytes, blocks: range) -> Owned:
        """The spans of blocks in which each owner had some NFT of a contract that moves ranges: from all its transfers,
        because an ID of a range has no row of its own."""
        spans = _Spans(blocks)
        ids = OwnedSpans(spans.note)
        after, read = -1, 0
        while read <= OWNERS_MAX:
            rows = await self._reader.rows(SQL.moves, {"address": token, "after": after, "limit": _PIECE})
            ids.take(NftMove(block_of(at), sender, to, *_ids(first, last)) for at, sender, to, first, last in rows)
            if len(rows) < _PIECE:
                for owner, since in ids.owners():
                    spans.note(owner, since, spans.end)
                return spans.found
            after, read = rows[-1][0], read + len(rows)
            await asyncio.sleep(0)
        raise BadRequest(f"NFTs of this contract have changed hands more than {OWNERS_MAX:,} times: not searched")

    async def _add_ids(self, owned: Owned, standard: TokenStandard, token: bytes, blocks: range) -> None:
        """Add who had an amount of an ID of the token."""
        holdings = SQL.named(f"holdings_of_{standard.table}")
        balances = SQL.named(f"balances_of_{standard.table}")
        read, place = 0, {"since": -1, "holder": 0, "token_id": b""}
        while read <= OWNERS_MAX:
            rows = await self._reader.rows(holdings, {"address": token, "limit": _PIECE, **place})
            for since, holder, token_id, baseline in rows:
                of = {"address": token, "holder": holder, "token_id": token_id}
                read += 1 + await self._add_id(owned, balances, of, unpack_uint(baseline), blocks)
                place = {"since": since, "holder": holder, "token_id": token_id}
            if len(rows) < _PIECE:
                return
            await asyncio.sleep(0)
        raise BadRequest(f"IDs of this contract have changed hands more than {OWNERS_MAX:,} times: not searched")

    async def _add_id(
        self, owned: Owned, balances: Statement, of: Mapping[str, Any], balance: int, blocks: range
    ) -> int:
        """Add the spans of blocks in which a holder had some of an ID; return how many balances were read."""
        first, end = blocks.start - 1, max(blocks.stop, blocks.start)
        at, read = -1, 0
        while True:
            rows = await self._reader.rows(balances, {**of, "after": at, "end": end, "limit": _PIECE})
            for block, packed in [*rows, *([] if len(rows) == _PIECE else [(end, b"")])]:
                if balance and block > first:
                    owned.setdefault(of["holder"], []).append((max(at, first), block))
                at, balance = block, unpack_uint(packed)
            read += len(rows)
            if len(rows) < _PIECE:
                return read

    async def _owners(self, token: bytes) -> list[tuple[bytes, int, int, int | None]]:
        found: list[tuple[bytes, int, int, int | None]] = []
        token_id, block = b"", -1
        while len(found) <= OWNERS_MAX:
            where = {"address": token, "token_id": token_id, "block": block, "limit": _PIECE}
            rows = await self._reader.rows(SQL.owners, where)
            found += rows
            if len(rows) < _PIECE:
                return found
            token_id, block = rows[-1][:2]
            await asyncio.sleep(0)
        raise BadRequest(f"NFTs of this contract have changed hands more than {OWNERS_MAX:,} times: not searched")


class _Spans:
    """The spans of blocks in which each owner had some NFT, as far as they meet `blocks`. A span begins right after its
    first block and ends with its last one."""

    def __init__(self, blocks: range) -> None:
        self.found: Owned = {}
        self.first, self.end = blocks.start - 1, max(blocks.stop, blocks.start)

    def note(self, owner: int | None, since: int, until: int) -> None:
        if owner is not None and since < self.end and until > self.first:
            self.found.setdefault(owner, []).append((max(since, self.first), min(until, self.end)))


def _owned(rows: Iterable[tuple[bytes, int, int, int | None]], blocks: range) -> Owned:
    """The spans of blocks by owner. Rows are in the order of IDs and blocks."""
    spans = _Spans(blocks)
    last: tuple[bytes, int, int] | None = None
    for token_id, block, owner, before in rows:
        if last is not None and last[0] == token_id:
            spans.note(last[2], last[1], block)
        else:
            if last is not None:
                spans.note(last[2], last[1], spans.end)
            spans.note(before, -1, block)
        last = token_id, block, owner
    if last is not None:
        spans.note(last[2], last[1], spans.end)
    return spans.found


def _ids(first: bytes, last: bytes | None) -> tuple[int, int]:
    token_id = unpack_uint(first)
    return token_id, token_id if last is None else unpack_uint(last)


def _is_covered(blocks: range, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether the spans leave nothing out of the blocks, from the state before the first one on."""
    at = blocks.start - 1
    for since, until in sorted(spans):
        if since > at:
            return False
        at = max(at, until)
    return at >= max(blocks.stop, blocks.start)
