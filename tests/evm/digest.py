"""A digest of each table of a chain's store that does not depend on the way the rows got there.

Interned numbers are written as the addresses they stand for. Left out is what may differ between correct stores: the
numbers themselves, since when a token is untrusted (that it is, is kept) and what was folded for it meanwhile, when
code was read from state, how far the audit is, the hash of block 0 (unknown while no upstream sends that block), and
enrichment.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.store.opened import Tables, tables_of

from icefall.evm.storing.journal import unpack_touched

ENRICHMENT = {"price", "reputation"}
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
    "code": {"address"},
    "token": {"token"},
    "nft": {"token"},
    "nft_state_owner": {"token"},
    "last_activity": {"address"},
    "deployer": {"address"},
    "holder": {"holder", "token"},
    "holder_total": {"token"},
}
FOLDED = {"erc20_balance", "erc1155_balance"}
META = {"has_calls", "has_diffs", "chain_id", "first_block", "blockchain_id", "logs_from", "calls_from"}


def digests(path: Path) -> dict[str, str]:
    """By table. Two stores that agree in all of them hold the same chain."""
    with tables_of(path) as tables:
        return digests_of(tables)


def digests_of(tables: Tables) -> dict[str, str]:
    return {table: _digest(rows) for table, rows in _logical_rows(tables).items()}


def logical_rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the digests are of: to see where two stores differ."""
    with tables_of(path) as tables:
        return _logical_rows(tables)


def _logical_rows(tables: Tables) -> dict[str, list[tuple[Any, ...]]]:
    addresses: dict[int, bytes] = dict(tables.rows("address", "id, address")[1])
    untrusted = {token for token, since in tables.rows("token", "token, untrusted_since")[1] if since is not None}
    return {
        table: sorted(_rows(tables, table, addresses, untrusted), key=repr)
        for table in tables.names()
        if table not in ENRICHMENT | WAY_BACK
    }


def _digest(rows: list[tuple[Any, ...]]) -> str:
    return f"{len(rows)} rows {hashlib.sha256(repr(rows).encode()).hexdigest()[:16]}"


def _rows(tables: Tables, table: str, addresses: dict[int, bytes], untrusted: set[int]) -> Iterator[tuple[Any, ...]]:
    names, stored = tables.rows(table)
    code: dict[int, list[tuple[int, int]]] = {}
    for values in stored:
        row = dict(zip(names, values, strict=True))
        if table == "code":
            code.setdefault(row["address"], []).append((row["block"], row["has_code"]))
            continue
        if (table in FOLDED and row["token"] in untrusted) or (table == "meta" and row["name"] not in META):
            continue
        for name in INTERNED.get(table, ()):
            row[name] = addresses.get(row[name], row[name])
        if table == "token":
            row["untrusted_since"] = row["untrusted_since"] is not None
        if table == "block":
            row["touched"] = _touched(row["touched"], addresses)
        yield tuple(value for name, value in row.items() if name not in LEFT_OUT.get(table, ()))
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
    """Not `silent`: which contracts were known as tokens depends on where a batch began."""
    touched = unpack_touched(raw)
    native = sorted(addresses[one] for one in touched.native)
    return native, sorted((addresses[holder], addresses[token]) for holder, token in touched.named)
