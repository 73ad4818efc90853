"""The NFTs of ranges (ERC-2309), which have no rows of their own: IDs are made when a page needs them, never more than
it reads."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from icefall.db.engine import Reader
from icefall.db.statements import load
from icefall.evm.encoding import pack_uint, unpack_uint

SQL = load("icefall.evm.reading", "nft_ranges.sql")
_PIECE = 200  # IDs looked up before other requests can run, about 5 ms


class RangeOwner(NamedTuple):
    token_ref: int
    owner: bytes
    is_untrusted: bool


class HeldCandidate(NamedTuple):
    """An ID of a range, as a row of the list of NFTs with one column more: whether it has an owner of its own."""

    token: bytes
    token_id: bytes  # packed
    token_ref: int
    is_untrusted: bool
    has_own_owner: bool


class NftRangeReader:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def owner(self, token: bytes, token_id: int) -> RangeOwner | None:
        """Who was given an ID as part of a range; None: it is in none. It may have an owner of its own since."""
        where = {"token": token, "token_id": pack_uint(token_id)}
        rows = await self._reader.rows(SQL.range_of_nft, where)
        if not rows:
            return None
        ref, last_id, owner, is_untrusted = rows[0]
        if last_id >= where["token_id"] or (is_untrusted and await self._reader.rows(SQL.any_range_of_nft, where)):
            return RangeOwner(ref, owner, bool(is_untrusted))
        return None

    async def held(
        self, address: bytes, after: tuple[bytes, bytes], last_token: bytes, count: int
    ) -> list[HeldCandidate]:
        """The next IDs of ranges that the address was given, by token address and ID, behind a packed ID."""
        where = {"address": address, "token": after[0], "token_id": after[1], "last_token": last_token, "limit": count}
        ranges = await self._reader.rows(SQL.ranges_of_owner, where)
        found: list[tuple[bytes, bytes, int, bool]] = []
        for token, first_id, last_id, ref, is_untrusted in ranges:
            ids = _ids(first_id, last_id, after[1] if token == after[0] else b"")
            found += [(token, pack_uint(one), ref, is_untrusted) for one in islice(ids, count - len(found))]
        moved: set[tuple[int, bytes]] = set()
        keys = [(ref, token_id) for _, token_id, ref, _ in found]
        for start in range(0, len(keys), _PIECE):
            if start:
                await asyncio.sleep(0)
            moved.update(await self._reader.rows_of_each(SQL.own_owner, keys[start : start + _PIECE]))
        return [HeldCandidate(*row, (row[2], row[1]) in moved) for row in found]

    async def of_contract(self, contract: bytes, after: bytes, count: int) -> list[tuple[int, int]]:
        """The next IDs of ranges of a contract, each with the ID of the contract, behind a packed ID."""
        where = {"address": contract, "after": after, "limit": count + 1}  # the first may end before it
        found: list[tuple[int, int]] = []
        for ref, first_id, last_id in await self._reader.rows(SQL.ranges_of_contract, where):
            found += [(ref, one) for one in islice(_ids(first_id, last_id, after), count - len(found))]
        return found


def _ids(first_id: bytes, last_id: bytes, after: bytes) -> Iterator[int]:
    """The IDs of a range behind a packed one; empty: all."""
    first = unpack_uint(first_id)
    if after:
        first = max(first, unpack_uint(after) + 1)
    last = unpack_uint(last_id)
    while first <= last:
        yield first
        first += 1
