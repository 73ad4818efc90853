"""Lists of an address read table by table, with the columns of the views, newest first.

Citus plans a join anew for every query, which costs several times the query itself; statements with one table cost it
little. Elsewhere one statement with joins is faster: `Reader.prefers_flat` decides. What does not depend on each other
is asked at the same time.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icefall.db.engine import Reader, Row, StoreBusy
from icefall.db.statements import load
from icefall.evm.encoding import BITS, PER_BLOCK
from icefall.evm.model import ERC20, ERC721, ERC1155
from icefall.evm.reading.model import AFTER_ALL

SQL = load("icefall.evm.reading", "flat.sql")
_OF_ADDRESS = {ERC20: SQL.erc20_of, ERC721: SQL.erc721_of, ERC1155: SQL.erc1155_of}
_BY_POSITION = {ERC20: SQL.erc20, ERC721: SQL.erc721, ERC1155: SQL.erc1155}
_BLOCK_BITS = ~(PER_BLOCK - 1)


async def transfers_of_address(
    reader: Reader, standard: int, where: Mapping[str, Any], inside: int | None = None
) -> list[Row]:
    """As the statements `..._of` of transfers.sql. `inside`: the rest of a batch at `high`, as `erc1155_rest`."""
    bounds = where if inside is None else {**where, "low": where["high"], "high": where["high"] + 1}
    positions = await _positions(reader, _OF_ADDRESS[standard], bounds)
    found: dict[str, Any] = {"positions": positions}
    if standard == ERC1155:
        found |= {"inside": AFTER_ALL if inside is None else inside, "limit": where["limit"]}
    rows = await reader.rows(_BY_POSITION[standard], found) if positions else []
    rows.sort(key=lambda row: row[:2], reverse=True)
    rows = rows[: where["limit"]]
    tx_ats = [row[0] & _BLOCK_BITS | row[2] for row in rows]
    blocks, hashes, addresses = await asyncio.gather(
        _blocks(reader, tx_ats),
        _by_key(reader, SQL.tx_hashes, "positions", tx_ats),
        _by_key(reader, SQL.addresses, "ids", (ref for row in rows for ref in row[5:])),
    )
    return _complete(
        (
            standard, at, position, tx_index, *blocks[at >> BITS], *hashes[tx_at], *addresses[token],
            *addresses[sender], *addresses[to], token_id, value, token, sender, to,
        )
        for (at, position, tx_index, token_id, value, token, sender, to), tx_at in zip(rows, tx_ats, strict=True)
    )  # fmt: skip


async def txs_of_address(reader: Reader, where: Mapping[str, Any]) -> list[Row]:
    """As the statement `txs_of` of chain.sql."""
    positions = await _positions(reader, SQL.native_of, where)
    rows = await reader.rows(SQL.txs, {"positions": positions}) if positions else []
    rows.sort(key=lambda row: row[0], reverse=True)
    blocks, addresses = await asyncio.gather(
        _blocks(reader, positions), _by_key(reader, SQL.addresses, "ids", (ref for row in rows for ref in row[-2:]))
    )
    return _complete(
        (at, *blocks[at >> BITS], txid, *addresses[row[-2]], *addresses[row[-1]], *row) for at, txid, *row in rows
    )


def _complete(rows: Iterable[Row]) -> list[Row]:
    """Each statement sees the store as it is then: a rollback in between takes away what a row refers to."""
    try:
        return list(rows)
    except KeyError:
        raise StoreBusy("blocks were rolled back while they were read") from None


async def _positions(reader: Reader, statement: str, where: Mapping[str, Any]) -> list[int]:
    """Of the rows of an address."""
    found = await reader.rows(SQL.address_id, {"address": where["address"]})
    if not found:
        return []
    bounds = {name: where[name] for name in ("low", "high", "limit")}
    return [position for (position,) in await reader.rows(statement, {"id": found[0][0], **bounds})]


async def _blocks(reader: Reader, positions: Sequence[int]) -> dict[int, Row]:
    """Hash and time, by number."""
    return await _by_key(reader, SQL.blocks, "numbers", (position >> BITS for position in positions))


async def _by_key(reader: Reader, statement: str, name: str, keys: Iterable[int]) -> dict[int, Row]:
    """The first column to the others."""
    wanted = sorted(set(keys))
    return {row[0]: row[1:] for row in await reader.rows(statement, {name: wanted})} if wanted else {}
