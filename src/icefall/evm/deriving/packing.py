"""Packs the rows of a block for the writer: see packed.py. Pure."""

from collections.abc import Sequence
from typing import Any

from icefall.evm.model import ZERO_ADDRESS, BlockRows, CallType
from icefall.evm.packed import NO_ADDRESS, Columns, PackedBlock, pack_columns
from icefall.evm.storing.writing import ADDRESSES, INSERTS, TableRows, addresses_in

_CREATION = CallType.CONTRACT_CREATION


def packed(rows: BlockRows) -> PackedBlock:
    addresses = list(addresses_in(rows))
    places = {address: place for place, address in enumerate(addresses)}
    tables = TableRows(places.__getitem__)
    tables.add(rows)
    senders, active = _active(rows)
    prices = [tx.gas_price for tx in rows.txs]
    moves = (rows.erc20_transfers, rows.erc721_transfers, rows.erc1155_transfers)
    return PackedBlock(
        rows.block,
        addresses,
        {table: pack_columns(_columns(table, found)) for table in INSERTS if (found := tables.of_table(table))},
        tables.standards,
        [(places[one.token], one.first_id, one.last_id) for one in rows.metadata_changes],
        _erc20_deltas(rows, places),
        _erc1155_deltas(rows, places),
        _nft_owners(rows, places),
        _named(rows, places),
        [made.address for made in rows.deployments],
        rows.silent_contracts,
        rows.recoded_contracts,
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
        sum(map(len, moves)),
        dict(rows.skipped_logs),
        rows.raw,
    )


def _columns(table: str, rows: Sequence[tuple[Any, ...]]) -> Columns:
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for at in ADDRESSES.get(table, ()):
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


def _erc1155_deltas(rows: BlockRows, places: dict[bytes, int]) -> Columns:
    changes = rows.erc1155_deltas
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


def _named(rows: BlockRows, places: dict[bytes, int]) -> list[tuple[int, int]]:
    named = [one for one in rows.erc20_deltas if not one.delta]  # any other comes from a transfer
    if not named:
        return []
    moved = {(move.token, party) for move in rows.erc20_transfers for party in (move.sender, move.to)}
    return [(places[one.holder], places[one.token]) for one in named if (one.token, one.holder) not in moved]


def _active(rows: BlockRows) -> tuple[set[bytes], set[bytes]]:
    """Who sent something, and who sent or received."""
    senders = {tx.sender for tx in rows.txs}
    active = {tx.to for tx in rows.txs if tx.call_type is not _CREATION}
    for moves in (rows.erc20_transfers, rows.erc721_transfers, rows.erc1155_transfers):
        senders.update([move.sender for move in moves])
        active.update([move.to for move in moves])
    active |= senders
    senders.discard(ZERO_ADDRESS)
    active.discard(ZERO_ADDRESS)
    return senders, active
