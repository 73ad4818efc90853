"""A block's rows as the process that decodes them hands them to the one that stores them: packed in columns.

Everything is a list, a dict or a value that `marshal` writes as it is, which takes a fraction of the time that pickling
a struct per row does. Both processes run the same interpreter and the same release: the bytes are never stored.
"""

import marshal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from icefall.evm.layouts.formulas import StorageLayout
from icefall.evm.model import (
    NO_RAW,
    BlockRow,
    Erc20Delta,
    IdDelta,
    MatchedLogs,
    NativeRow,
    NftOwner,
    NftRange,
    RawRows,
    StoredRaw,
)

Columns = Sequence[Sequence[Any]]
_MARSHAL_VERSION = 2  # later ones look for objects that repeat, which costs more than it saves
NO_ADDRESS = -1  # instead of the place of an address: there is none


class BalanceChanges(msgspec.Struct, frozen=True, gc=False):
    """The changes of a block in token balances and in who owns what."""

    block: BlockRow
    erc20_deltas: tuple[Erc20Delta, ...]
    id_deltas: tuple[tuple[IdDelta, ...], ...]  # of each standard of BY_ID (standards.py)
    nft_owners: tuple[NftOwner, ...]
    nft_ranges: tuple[NftRange, ...] = ()


class PackedBlock(msgspec.Struct, frozen=True, gc=False):
    """The rows of BlockRows. A number that stands for an address is its place in `addresses`."""

    block: BlockRow
    addresses: Sequence[bytes]  # in the order in which new ones get their IDs
    tables: dict[str, bytes]  # the rows of a table: `columns_of` unpacks them, so that those that wait are small
    standards: dict[int, int]  # token, standards as bits
    rereads: Sequence[tuple[int, int, int]]  # token, and the first and last ID whose metadata must be read again
    erc20_deltas: Columns  # as the fields of Erc20Delta
    id_deltas: Sequence[Columns]  # of each standard of BY_ID: as the fields of IdDelta
    nft_owners: Columns
    nft_ranges: Columns  # as the fields of NftRange
    holders_named: Sequence[tuple[int, int]]  # holder and token that a log named without a transfer
    deployed: Sequence[bytes]
    storage_changed_unlogged: Sequence[bytes]  # contracts
    code_changed: Sequence[bytes]  # contracts
    code_changes: Sequence[tuple[bytes, bool | None]]
    native_before: dict[bytes, int]
    native_after: dict[bytes, int]
    native_deltas: dict[bytes, int]
    unknown_native: Sequence[bytes]
    senders: Sequence[int]  # of transactions and transfers, each once, without the zero address
    active: Sequence[int]  # the same with recipients
    creators: Sequence[int]  # one for each contract created
    price_sum: int  # wei per gas, over the transactions
    price_max: int
    transfers: int  # of tokens
    skipped_logs: dict[str, int]  # token events of wrong shape or standard, by event name
    storage: Sequence[tuple[bytes, bytes]] = ()  # contract, and what a transaction changed of its storage, as text
    approvals: Sequence[tuple[bytes, int]] = ()  # contract, and the allowance that a log of it says is stored
    raw: RawRows = NO_RAW

    @property
    def size(self) -> int:
        """The bytes that it takes while it waits to be stored, roughly."""
        raw = sum(map(len, self.raw.calls or ())) + sum(len(row[-1]) for row in self.raw.logs or ())
        raw += len(self.raw.matched.packed) if self.raw.matched is not None else 0
        return sum(map(len, self.tables.values())) + raw

    def resolved(
        self,
        native: tuple[NativeRow, ...],
        code: tuple[tuple[bytes, bool], ...],
        earlier_code: tuple[tuple[bytes, bool], ...] = (),
        slots: "Mapping[bytes, TokenStorage] | None" = None,
        other_storage: Mapping[bytes, Sequence[bytes]] | None = None,
    ) -> "ResolvedBlock":
        """Add what was read from state, and drop the amounts from which `native` follows, and storage that is not a
        token's: thousands of blocks may wait."""
        rows = msgspec.structs.replace(self, native_before={}, native_after={}, native_deltas={}, storage=())
        return ResolvedBlock(rows, native, code, earlier_code, slots or {}, other_storage or {})

    def balance_changes(self) -> BalanceChanges:
        address = self.addresses.__getitem__
        tokens, holders, deltas = self.erc20_deltas
        nfts, nft_ids, owners, owners_before = self.nft_owners
        ranged, logs, first_ids, last_ids, receivers, known = self.nft_ranges
        return BalanceChanges(
            self.block,
            tuple(map(Erc20Delta, map(address, tokens), map(address, holders), deltas)),
            tuple(
                tuple(map(IdDelta, map(address, tokens), map(address, holders), token_ids, deltas))
                for tokens, holders, token_ids, deltas in self.id_deltas
            ),
            tuple(map(NftOwner, map(address, nfts), nft_ids, map(address, owners), map(address, owners_before))),
            tuple(map(NftRange, map(address, ranged), logs, first_ids, last_ids, map(address, receivers), known)),
        )


class TokenStorage(msgspec.Struct, frozen=True, gc=False):
    """What a block changed of a token's storage: the text of each transaction, and the layout by which to read it."""

    layout: StorageLayout
    texts: Sequence[bytes]
    may_lack_words: bool = False  # so many words changed so far that some may have been dropped


class ResolvedBlock(msgspec.Struct, frozen=True, gc=False):
    """A block's rows with the values that had to be read from state."""

    rows: PackedBlock
    native: tuple[NativeRow, ...]
    code: tuple[tuple[bytes, bool], ...]
    earlier_code: tuple[tuple[bytes, bool], ...] = ()  # as of the block before
    slots: Mapping[bytes, TokenStorage] = {}  # of every token whose balances follow from its storage, if it was used
    other_storage: Mapping[bytes, Sequence[bytes]] = {}  # of tokens whose balances do not, as text


def pack_columns(columns: Columns) -> bytes:
    return marshal.dumps(list(columns), _MARSHAL_VERSION)


def columns_of(packed: bytes) -> Columns:
    """The rows of a table, column by column."""
    found: Columns = marshal.loads(packed)  # noqa: S302 - of a process that we started
    return found


def to_bytes(blocks: Iterable[PackedBlock]) -> bytes:
    return marshal.dumps([_values(block) for block in blocks], _MARSHAL_VERSION)


def from_bytes(raw: bytes) -> list[PackedBlock]:
    return [_block(*values) for values in marshal.loads(raw)]  # noqa: S302 - of a process that we started


def _values(block: PackedBlock) -> tuple[Any, ...]:
    head, *values, raw = msgspec.structs.astuple(block)
    stored = None
    if raw is not NO_RAW:
        matched = None if raw.matched is None else msgspec.structs.astuple(raw.matched)
        stored = msgspec.structs.astuple(raw.wanted), raw.logs, raw.calls, matched
    return (msgspec.structs.astuple(head), *values, stored)


def _block(head: Any, *values: Any) -> PackedBlock:
    *others, raw = values
    rows = NO_RAW
    if raw is not None:
        wanted, logs, calls, matched = raw
        rows = RawRows(StoredRaw(*wanted), logs, calls, None if matched is None else MatchedLogs(*matched))
    fields: list[Any] = [BlockRow(*head), *others, rows]
    return PackedBlock(*fields)
