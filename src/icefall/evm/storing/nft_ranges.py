"""The folding of ranges of NFTs (ERC-2309), inside the writer's transaction.

A log that moves the IDs from a first to a last one is a row of `erc721`, and the first ID is folded like any other.
The others are one row of `nft_range`, however many they are: it says who owns every ID in it that has no row in
`nft_owner`. A later transfer of one of them gives that ID its own row, which counts from then on, and is counted in
`moved`.

Such a range is right for IDs that nothing was known of, as contracts mint them. Where a log moves a range of which an
ID is known already, the token becomes untrusted: its owners are read from state, with the ranges as what to ask for.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from icefall.db.engine import Transaction
from icefall.evm.deriving.nft_ranges import IdSpans
from icefall.evm.deriving.packing import Ids, Row
from icefall.evm.encoding import pack_uint, position_of, unpack_uint
from icefall.evm.packed import BalanceChanges
from icefall.evm.storing.writing import SQL


class _NewRange(msgspec.Struct, gc=False):
    """A range of this batch."""

    log_at: int
    last_id: int
    owner: int
    token_address: bytes
    moved: int = 0


class RangeFolding:
    """The ranges of one batch of blocks, and those stored that its transfers take IDs from."""

    def __init__(self, tx: Transaction, ids: Ids) -> None:
        self._tx = tx
        self._ids = ids
        self._stored: set[int] = set()  # tokens of the batch that have stored ranges
        self._known: dict[int, IdSpans] = {}  # by token with new ranges: the IDs that the batch has named so far
        self._spans: dict[int, IdSpans] = {}  # by token: the new ranges
        self._new: dict[tuple[int, int], _NewRange] = {}  # by token and first ID
        self._overlapping: list[Row] = []
        self._moved: Counter[tuple[int, bytes, int]] = Counter()  # by the key of a stored range

    def load(self, batch: Sequence[BalanceChanges], first_new: int) -> None:
        """Find out which tokens of the batch have ranges. IDs of tokens from `first_new` on are new."""
        ids = self._ids
        with_new = {ids(one.token) for rows in batch for one in rows.nft_ranges}
        self._known = {token: IdSpans() for token in with_new}
        tokens = {ids(one.token) for rows in batch for one in rows.nft_owners} | with_new
        keys = [(token,) for token in sorted(tokens) if token < first_new]
        self._stored = {token for (token,) in self._tx.rows_of_each(SQL.ranged_tokens, keys)}

    def add(self, rows: BalanceChanges) -> Iterator[int]:
        """Add the ranges of the next block, before its other transfers, and yield the tokens of those that are not
        new."""
        for one in rows.nft_ranges:
            token, first = self._ids(one.token), one.first_id
            log_at = position_of(rows.block.number, one.log_index)
            row = _NewRange(log_at, one.last_id, self._ids(one.owner), one.token)
            if one.is_known or self._is_known(token, first - 1, one.last_id):
                self._overlapping.append(_row(token, first, row))
                yield token
            else:
                self._spans.setdefault(token, IdSpans()).add(first, one.last_id)
                self._new[token, first] = row
        for one in rows.nft_ranges:
            self._known[self._ids(one.token)].add(one.first_id, one.last_id)
        for moved in rows.nft_owners if self._known else ():
            known = self._known.get(self._ids(moved.token))
            if known is not None:
                known.add(moved.token_id, moved.token_id)

    def _is_known(self, token: int, first: int, last: int) -> bool:
        """Tell whether an owner of any of these IDs was known before this block."""
        if self._known[token].overlaps(first, last):
            return True
        packed_first, packed_last = pack_uint(first), pack_uint(last)
        if self._tx.rows(SQL.owner_between, (token, packed_first, packed_last)):
            return True
        return any(row[2] >= packed_first for row in self._tx.rows(SQL.range_before, (token, packed_last)))

    def take(self, token: int, token_id: int) -> int | None:
        """Take an ID that gets a row of its own out of its range. Return who owned it; None if it is in no range."""
        spans = self._spans.get(token)
        first = spans.start_of(token_id) if spans is not None else None
        if first is not None:
            found = self._new[token, first]
            found.moved += 1
            return found.owner
        packed_id = pack_uint(token_id)
        for first_id, log_at, last_id, owner in (
            self._tx.rows(SQL.range_before, (token, packed_id)) if token in self._stored else ()
        ):
            if last_id >= packed_id:
                self._moved[token, first_id, log_at] += 1
                return int(owner)
        return None

    def rows(self) -> list[Row]:
        """The rows of the new ranges."""
        return [_row(token, first, one) for (token, first), one in self._new.items()] + self._overlapping

    def write_moved(self) -> None:
        """Count what was taken out of stored ranges."""
        self._tx.run_many(SQL.add_moved, [(count, *key) for key, count in self._moved.items()])


def _row(token: int, first: int, one: _NewRange) -> Row:
    return (token, pack_uint(first), one.log_at, pack_uint(one.last_id), one.owner, one.token_address, one.moved)


def count_of(ranges: Iterable[tuple[bytes, bytes, int]]) -> int:
    """How many IDs belong to the owner of ranges, of (first ID, last ID, moved)."""
    return sum(unpack_uint(last) - unpack_uint(first) + 1 - moved for first, last, moved in ranges)
