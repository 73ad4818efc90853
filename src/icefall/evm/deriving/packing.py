"""Packs the rows of a block for the process that stores them: the values of every table, with places of addresses
instead of IDs (see packed.py). Pure.

`TableRows` makes the rows of tables, `packed` the whole of a block.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from icefall.evm.deriving.messages import messenger_row
from icefall.evm.encoding import BITS, PackedUints, pack_input, pack_kind, pack_uint
from icefall.evm.model import ERC20, ZERO_ADDRESS, BlockRows, CallType, Erc20Delta, IdDelta, TransferRow
from icefall.evm.packed import NO_ADDRESS, Columns, PackedBlock, pack_columns
from icefall.evm.standards import BY_ID, STANDARDS, TokenStandard

HASH_PREFIX = 4  # bytes of a transaction's hash by which its block is found
_CREATION = CallType.CONTRACT_CREATION
Row = tuple[Any, ...]
Ids = Callable[[bytes], int]

# The transfers of a block, in the order of the standards.
_transfers: Callable[[BlockRows], tuple[Sequence[TransferRow], ...]]
_transfers = attrgetter(*(f"{standard.table}_transfers" for standard in STANDARDS))
# The fields with the changes of balances of IDs, in the order of BY_ID.
_ID_DELTAS = tuple(f"{standard.table}_deltas" for standard in BY_ID)
_PARTIES = ("token", "sender", "recipient")
# The tables that blocks are written to, in that order, and which values of a row are addresses.
ADDRESSES: dict[str, tuple[int, ...]] = {
    "tx": (2, 3),
    "tx_by_hash": (),
    "native_of": (0,),
    "touch_of": (0,),
    **{standard.table: tuple(map(standard.columns.index, _PARTIES)) for standard in STANDARDS},
    **{f"{standard.table}_of": (0,) for standard in STANDARDS},
    "erc20_in": (0,),
    "nft": (0,),
    "internal": (3, 4),
    "internal_of": (0,),
    "deployment": (0, 3),
    "deployed_by": (0,),
    "message": (),
    "messenger_event": (),
}


def addresses_in(rows: BlockRows) -> Iterable[bytes]:
    """Every address in the rows of a block, in a fixed order."""
    seen: dict[bytes, None] = {}
    for tx in rows.txs:
        seen[tx.sender] = seen[tx.to] = None
    for moves in _transfers(rows):
        for move in moves:
            seen[move.token] = seen[move.sender] = seen[move.to] = None
    for call in rows.internals:
        seen[call.sender] = seen[call.to] = None
    for made in rows.deployments:
        seen[made.address] = seen[made.creator] = None
    changes: Sequence[Sequence[Erc20Delta | IdDelta]] = (rows.erc20_deltas, *_id_deltas(rows))
    for deltas in changes:
        for held in deltas:
            seen[held.token] = seen[held.holder] = None
    for nft in rows.nft_owners:
        seen[nft.token] = seen[nft.owner] = seen[nft.owner_before] = None
    for change in rows.metadata_changes:
        seen[change.token] = None
    seen.pop(b"", None)
    return seen


class TableRows:
    """The rows of tables, gathered over blocks. `ids` gives the ID, or the place, of an address."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._packed = PackedUints()
        self._rows: dict[str, list[Row]] = {table: [] for table in ADDRESSES}
        self.standards: dict[int, int] = {}  # by token, as bits

    def of_table(self, table: str) -> list[Row]:
        return self._rows[table]

    def add(self, rows: BlockRows) -> None:
        base = rows.block.number << BITS
        self._add_txs(rows, base)
        self._add_erc20(rows, base)
        for standard, moves in zip(STANDARDS, _transfers(rows), strict=True):
            if moves and standard.has_ids:
                self._add_with_ids(standard, moves, rows.block.number)
        self._add_internals(rows, base)
        self._add_deployments(rows, base)
        self._rows["message"].extend(
            (base | one.tx_index, one.message_id, one.peer_blockchain_id, one.is_source) for one in rows.messages
        )
        self._rows["messenger_event"].extend(messenger_row(rows.block.number, one) for one in rows.messenger_events)

    def _add_txs(self, rows: BlockRows, base: int) -> None:
        ids, txs, direct, packed = self._ids, self._rows["tx"], self._rows["native_of"], self._packed
        parties = []
        prefixes: dict[bytes, None] = {}  # of hashes, each once
        transfers = {move.tx_index: move for move in reversed(rows.erc20_transfers)}  # the first one of each
        for tx in rows.txs:
            at, sender, to = base | tx.tx_index, ids(tx.sender), ids(tx.to)
            kind, selector = pack_kind(tx)
            txs.append(
                (
                    at,
                    tx.tx_hash,
                    sender,
                    to,
                    kind,
                    packed[tx.value]
                    + packed[tx.nonce]
                    + packed[tx.gas_limit]
                    + packed[tx.gas_used]
                    + packed[tx.gas_price]
                    + packed[tx.max_fee]
                    + packed[tx.max_priority_fee],
                    selector,
                    pack_input(tx.input[len(tx.selector) :], transfers.get(tx.tx_index)),
                )
            )
            prefixes[tx.tx_hash[:HASH_PREFIX]] = None
            direct.append((sender, at))
            if to != sender:
                direct.append((to, at))
            parties.append((sender, to))
        self._rows["tx_by_hash"].extend([(prefix, rows.block.number) for prefix in prefixes])
        touched = self._rows["touch_of"]
        for one in rows.participants:  # each address once per transaction
            address, tx_index = ids(one.address), one.tx_index
            if address not in parties[tx_index]:
                touched.append((address, base | tx_index))

    def _add_erc20(self, rows: BlockRows, base: int) -> None:
        ids, transfers, by_address = self._ids, self._rows["erc20"], self._rows["erc20_of"]
        first_logs: dict[int, int] = {}  # by token
        last_logs: dict[int, int] = {}
        for move in rows.erc20_transfers:
            at, token, sender, to = base | move.log_index, ids(move.token), ids(move.sender), ids(move.to)
            transfers.append((at, move.tx_index, token, sender, to, pack_uint(move.value)))
            last_logs[token] = move.log_index
            first_logs.setdefault(token, move.log_index)
            by_address.append((sender, at))
            if to != sender:
                by_address.append((to, at))
        self._rows["erc20_in"].extend(
            [(token, rows.block.number, first, last_logs[token]) for token, first in first_logs.items()]
        )
        for address in {held.token for held in rows.erc20_deltas}:  # Deposit and Withdrawal make a token too
            self._add_standard(ids(address), ERC20)

    def _add_with_ids(self, standard: TokenStandard, moves: Sequence[Any], number: int) -> None:
        """Add the transfers of a standard whose tokens have IDs; their rows have the fields that its columns name."""
        ids, base, nfts = self._ids, number << BITS, self._rows["nft"]
        transfers, by_address = self._rows[standard.table], dict[tuple[int, int], None]()
        has_position, has_value = "position" in standard.columns, "value" in standard.columns
        has_ranges = "last_id" in standard.columns
        for move in moves:
            at, token, sender, to = base | move.log_index, ids(move.token), ids(move.sender), ids(move.to)
            token_id = pack_uint(move.token_id)
            position = (move.position,) if has_position else ()
            value = (pack_uint(move.value),) if has_value else ()
            last_id = (None if move.last_id is None else pack_uint(move.last_id),) if has_ranges else ()
            transfers.append((at, *position, move.tx_index, token, sender, to, token_id, *value, *last_id))
            by_address[sender, at] = by_address[to, at] = None  # once for a batch
            self._add_standard(token, standard.number)
            nfts.append((token, token_id, number))
        self._rows[f"{standard.table}_of"].extend(by_address)

    def _add_internals(self, rows: BlockRows, base: int) -> None:
        ids, calls, by_address = self._ids, self._rows["internal"], self._rows["internal_of"]
        for call in rows.internals:
            at, sender = base | call.tx_index, ids(call.sender)
            to = ids(call.to) if call.to else None
            value, limit, used = pack_uint(call.value), pack_uint(call.gas_limit), pack_uint(call.gas_used)
            calls.append((at, call.frame, call.kind, sender, to, value, limit, used, call.is_reverted))
            by_address.append((sender, at, call.frame))
            if to is not None and to != sender:
                by_address.append((to, at, call.frame))

    def _add_deployments(self, rows: BlockRows, base: int) -> None:
        ids, by_address = self._ids, set()
        for made in rows.deployments:
            at, creator = base | made.tx_index, ids(made.creator)
            self._rows["deployment"].append((ids(made.address), at, made.frame, creator))
            by_address |= {(creator, at, made.frame), (ids(rows.txs[made.tx_index].sender), at, made.frame)}
        self._rows["deployed_by"].extend(by_address)

    def _add_standard(self, token: int, standard: int) -> None:
        self.standards[token] = self.standards.get(token, 0) | standard


def packed(rows: BlockRows) -> PackedBlock:
    """The whole of a block as it goes to the writer."""
    addresses = list(addresses_in(rows))
    places = {address: place for place, address in enumerate(addresses)}
    tables = TableRows(places.__getitem__)
    tables.add(rows)
    senders, active = _active(rows)
    prices = [tx.gas_price for tx in rows.txs]
    return PackedBlock(
        rows.block,
        addresses,
        {table: pack_columns(_columns(table, found)) for table in ADDRESSES if (found := tables.of_table(table))},
        tables.standards,
        [(places[one.token], one.first_id, one.last_id) for one in rows.metadata_changes],
        _erc20_deltas(rows, places),
        [_id_columns(changes, places) for changes in _id_deltas(rows)],
        _nft_owners(rows, places),
        _nft_ranges(rows, places),
        _holders_named(rows, places),
        [made.address for made in rows.deployments],
        rows.storage_changed_unlogged,
        rows.code_changed,
        [(change.address, change.has_code) for change in rows.code_changes],
        {one.address: one.balance for one in rows.native_before},
        {one.address: one.balance for one in rows.native_after},
        {one.address: one.delta for one in rows.native_deltas},
        rows.unknown_native,
        sorted(places[address] for address in senders),
        sorted(places[address] for address in active),
        [places[made.creator] for made in rows.deployments],
        sum(prices),
        max(prices, default=0),
        sum(map(len, _transfers(rows))),
        dict(rows.skipped_logs),
        rows.storage,
        rows.approvals,
        rows.raw,
    )


def _columns(table: str, rows: Sequence[tuple[Any, ...]]) -> Columns:
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for at in ADDRESSES[table]:
        if None in columns[at]:  # a creation that failed
            columns[at] = [NO_ADDRESS if place is None else place for place in columns[at]]
    return columns


def _erc20_deltas(rows: BlockRows, places: dict[bytes, int]) -> Columns:
    changes = rows.erc20_deltas
    return (
        [places[one.token] for one in changes],
        [places[one.holder] for one in changes],
        [one.delta for one in changes],
    )


def _id_deltas(rows: BlockRows) -> list[Sequence[IdDelta]]:
    return [getattr(rows, name) for name in _ID_DELTAS]


def _id_columns(changes: Sequence[IdDelta], places: dict[bytes, int]) -> Columns:
    return (
        [places[one.token] for one in changes],
        [places[one.holder] for one in changes],
        [one.token_id for one in changes],
        [one.delta for one in changes],
    )


def _nft_owners(rows: BlockRows, places: dict[bytes, int]) -> Columns:
    moved = rows.nft_owners
    return (
        [places[one.token] for one in moved],
        [one.token_id for one in moved],
        [places[one.owner] for one in moved],
        [places[one.owner_before] for one in moved],
    )


def _nft_ranges(rows: BlockRows, places: dict[bytes, int]) -> Columns:
    moved = rows.nft_ranges
    return (
        [places[one.token] for one in moved],
        [one.log_index for one in moved],
        [one.first_id for one in moved],
        [one.last_id for one in moved],
        [places[one.owner] for one in moved],
        [one.is_known for one in moved],
    )


def _holders_named(rows: BlockRows, places: dict[bytes, int]) -> list[tuple[int, int]]:
    named = [one for one in rows.erc20_deltas if not one.delta]  # any other comes from a transfer
    if not named:
        return []
    moved = {(move.token, party) for move in rows.erc20_transfers for party in (move.sender, move.to)}
    return [(places[one.holder], places[one.token]) for one in named if (one.token, one.holder) not in moved]


def _active(rows: BlockRows) -> tuple[set[bytes], set[bytes]]:
    """The addresses that sent something, and those that sent or received."""
    senders = {tx.sender for tx in rows.txs}
    active = {tx.to for tx in rows.txs if tx.call_type is not _CREATION}
    for moves in _transfers(rows):
        senders.update([move.sender for move in moves])
        active.update([move.to for move in moves])
    active |= senders
    senders.discard(ZERO_ADDRESS)
    active.discard(ZERO_ADDRESS)
    return senders, active
