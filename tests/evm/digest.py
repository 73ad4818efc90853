"""A digest of each table of a chain's store that does not depend on the way the rows got there.

Interned numbers are written as the addresses they stand for. Left out is what may differ between correct stores: the
numbers themselves, what was folded for untrusted tokens, at which block all tokens were compared and some disagreed
(that they did is kept), when code was read from state, how far the audit is, the hash of block 0 (unknown while no
upstream sends that block), in which of two forms a transaction is packed, whether a token without a layout was asked
for one, and enrichment.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.store.opened import Tables, tables_of

from icefall.evm.encoding import (
    BITS,
    CALL_TYPES,
    REPEATS_TRANSFER,
    selector_of,
    unpack_data,
    unpack_input,
    unpack_uint,
    unpack_uints,
)
from icefall.evm.storing.rollback import unpack_touched

ENRICHMENT = {"price", "reputation", "listed_token", "name_part"}
WAY_BACK = {"activity", "audit"}  # depends on where batches ended
HOLDERS = {"holder", "holder_total"}  # a running indexer counts them in the background, after the blocks
LEFT_OUT = {
    "address": {"id"},
    "block": {"next_address"},
    "token": {"name", "symbol", "decimals", "read_at", "retry_at", "failures", "metadata_version"},
    "nft_state_owner": {"block"},
    "nft": {"token_uri", "status", "read_at", "retry_at", "failures", "metadata"},
}
INTERNED = {
    "tx": {"sender", "recipient"},
    "native_of": {"address"},
    "touch_of": {"address"},
    "erc20": {"token", "sender", "recipient"},
    "erc20_in": {"token"},
    "erc20_of": {"address"},
    "erc721": {"token", "sender", "recipient"},
    "erc721_of": {"address"},
    "erc1155": {"token", "sender", "recipient"},
    "erc1155_of": {"address"},
    "internal": {"sender", "recipient"},
    "internal_of": {"address"},
    "deployment": {"address", "creator"},
    "deployed_by": {"address"},
    "native_balance": {"address"},
    "erc20_balance": {"holder", "token"},
    "erc20_holding": {"holder", "token"},
    "erc20_holder": {"holder", "token"},
    "erc1155_balance": {"holder", "token"},
    "erc1155_holding": {"holder", "token"},
    "nft_owner": {"token", "owner", "before"},
    "nft_held": {"owner", "token"},
    "nft_range": {"owner", "token"},
    "code": {"address"},
    "token": {"token"},
    "earlier_layout": {"token"},
    "nft": {"token"},
    "nft_state_owner": {"token"},
    "last_activity": {"address"},
    "deployer": {"address"},
    "holder": {"holder", "token"},
    "holder_total": {"token"},
}
FOLDED = {"erc20_balance", "erc1155_balance"}
# By table: columns in which tokens may differ whose balances are read from state.
OF_TRUST = {"token": {"untrusted_since", "differed_at"}, "erc20_holding": {"baseline"}, "erc1155_holding": {"baseline"}}
META = {"has_calls", "has_diffs", "chain_id", "first_block", "blockchain_id", "logs_from", "calls_from"}


def digests(path: Path, from_state: Collection[bytes] = ()) -> dict[str, str]:
    """Return the digest of each table. Two stores that agree in all of them hold the same chain.

    `from_state`: tokens of which one of the stores, at least, reads all balances from state. What is folded of them is
    left out, and since when."""
    with tables_of(path) as tables:
        return digests_of(tables, from_state)


def digests_of(tables: Tables, from_state: Collection[bytes] = ()) -> dict[str, str]:
    return {table: _digest(rows) for table, rows in _logical_rows(tables, from_state)}


def untrusted_tokens(path: Path) -> set[bytes]:
    """The tokens of which all balances are read from state."""
    with tables_of(path) as tables:
        addresses: dict[int, bytes] = dict(tables.rows("address", "id, address")[1])
        return {addresses[token] for token in _untrusted(tables)}


def logical_rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the digests are of: to see where two stores differ."""
    with tables_of(path) as tables:
        return {table: sorted(rows, key=repr) for table, rows in _logical_rows(tables)}


def _logical_rows(
    tables: Tables, from_state: Collection[bytes] = ()
) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    addresses: dict[int, bytes] = dict(tables.rows("address", "id, address")[1])
    untrusted = _untrusted(tables) | {number for number, address in addresses.items() if address in from_state}
    for table in tables.names():
        if table == "code":
            yield table, _code(tables, addresses)
        elif table not in ENRICHMENT | WAY_BACK:
            yield table, _rows(tables, table, addresses, untrusted, from_state)


def _untrusted(tables: Tables) -> set[int]:
    rows = tables.rows("token", "token, untrusted_since, differed_at")[1]
    return {token for token, *since in rows if any_known(since)}


def any_known(values: Iterable[Any]) -> bool:
    return any(value is not None for value in values)


def _digest(rows: Iterable[tuple[Any, ...]]) -> str:
    lines = sorted(map(repr, rows))
    return f"{len(lines)} rows {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:16]}"


def _rows(
    tables: Tables, table: str, addresses: dict[int, bytes], untrusted: set[int], from_state: Collection[bytes]
) -> Iterable[tuple[Any, ...]]:
    """Column by column: a row is looked at only where it may be left out."""
    names, stored = tables.rows(table)
    if table in FOLDED:
        token = names.index("token")
        stored = [row for row in stored if row[token] not in untrusted]
    if table == "meta":
        named = names.index("name")
        stored = [row for row in stored if row[named] in META]
    columns = dict(zip(names, zip(*stored, strict=True), strict=False))
    for name in INTERNED.get(table, set()) & columns.keys():
        columns[name] = tuple(addresses.get(number, number) for number in columns[name])
    if table == "token" and columns:
        both = zip(columns["untrusted_since"], columns["differed_at"], strict=True)
        columns["differed_at"] = tuple(map(any_known, both))
        columns["layout"] = tuple(layout or None for layout in columns["layout"])
    if from_state and columns:
        for name in OF_TRUST.get(table, ()):
            values = zip(columns["token"], columns[name], strict=True)
            columns[name] = tuple(None if token in from_state else value for token, value in values)
    if table == "tx" and columns:
        kinds = columns["kind"]
        columns["kind"] = tuple((kind >> 2, CALL_TYPES[kind & 3]) for kind in kinds)
        columns["selector"] = tuple(map(selector_of, kinds, columns["selector"]))
        columns["amounts"] = tuple(map(tuple, map(unpack_uints, columns["amounts"])))
        columns["input"] = tuple(plain_inputs(tables, zip(columns["tx_at"], columns["input"], strict=True)))
    if table == "block" and columns:
        columns["touched"] = tuple(_touched(raw, addresses) for raw in columns["touched"])
    left_out = LEFT_OUT.get(table, set())
    return zip(*(column for name, column in columns.items() if name not in left_out), strict=True)


def plain_inputs(tables: Tables, packed_at: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """What follows the selector of transactions. `packed_at`: by position, as stored."""
    addresses: dict[int, bytes] = dict(tables.rows("address", "id, address")[1])
    transfers: dict[int, tuple[Any, ...]] = {}
    for log_at, tx_index, *moved in tables.rows("erc20", "log_at, tx_index, sender, recipient, value", "log_at")[1]:
        transfers.setdefault(log_at >> BITS << BITS | tx_index, tuple(moved))
    for tx_at, packed in packed_at:
        if packed.startswith(REPEATS_TRANSFER):
            sender, recipient, value = transfers[tx_at]
            yield unpack_input(packed, addresses[sender], addresses[recipient], unpack_uint(value))
        else:
            yield unpack_data(packed)


def _code(tables: Tables, addresses: dict[int, bytes]) -> Iterator[tuple[Any, ...]]:
    code: dict[int, list[tuple[int, int]]] = {}
    for number, block, has_code in tables.rows("code", "address, block, has_code")[1]:
        code.setdefault(number, []).append((block, has_code))
    for number, rows in code.items():
        if changes := _changes(sorted(rows)):
            yield addresses[number], changes


def _changes(rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where code was set and removed. When it was read, and that there was none then, does not matter."""
    found: list[tuple[int, int]] = []
    for block, has_code in rows:
        if (found and found[-1][1] != has_code) or (not found and has_code):
            found.append((block if found else -1, has_code))
    return found


def _touched(raw: bytes, addresses: dict[int, bytes]) -> Any:
    """Not the changes without a log: which contracts were known as tokens depends on where a batch began."""
    touched = unpack_touched(raw)
    native = sorted(addresses[one] for one in touched.native)
    return native, sorted((addresses[holder], addresses[token]) for holder, token in touched.holders_named)
