"""Outputs of X and of the memory it shares with P and C, from their making to their spending, for lists.

An output that one chain exports is in the lists of both chains. Chains are followed independently, so an import may
come before its export: creation and consumption are written separately.
"""

from collections.abc import Iterable, Sequence

import msgspec

from icefall.db.engine import Reader, Row, Transaction
from icefall.db.statements import load
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.avm.types import (
    MintOutput,
    NftMintOutput,
    NftTransferOutput,
    Output,
    PropertyMintOutput,
    PropertyOwnedOutput,
    TransferOutput,
)
from icefall.wire.container.proposer import unpack_container
from icefall.wire.errors import WireError
from icefall.wire.ids import PLATFORM_CHAIN, hash160
from icefall.wire.keys import recover
from icefall.xchain.model import owners_of

SQL = load("icefall.xchain", "outputs.sql")
_BIAS = 1 << 63  # amounts have 64 bits without a sign; less this, they sort as the store's signed numbers
_FIRST, _LAST = -_BIAS, _BIAS - 1
_LAST_ID = b"\xff" * 33  # behind every ID
# Type of output -> the name clients know it by.
OUTPUT_TYPES: dict[type[Output], str] = {
    TransferOutput: "transfer",
    MintOutput: "mint",
    NftMintOutput: "nft-mint",
    NftTransferOutput: "nft-transfer",
    PropertyMintOutput: "property-mint",
    PropertyOwnedOutput: "property-owned",
}


class NewOutput(msgspec.Struct, frozen=True, gc=False):
    """An output that a transaction made on `source`, and that can be spent on `destination`."""

    utxo_id: bytes
    source: bytes
    destination: bytes
    raw: bytes
    height: int
    time: int


class SpentOutput(msgspec.Struct, frozen=True, gc=False):
    """An output that a transaction consumed."""

    utxo_id: bytes
    source: bytes
    txid: bytes
    height: int
    time: int


class ListedOutput(msgspec.Struct, frozen=True, gc=False):
    """An output with its history. `amount` is its place among the amounts of an address, where it was read by that."""

    utxo_id: bytes
    source: bytes
    destination: bytes
    raw: bytes
    created_height: int
    created_time: int
    spent_txid: bytes | None
    spent_height: int | None
    spent_time: int | None
    amount: int = 0


def amount_of(output: Output) -> int:
    """What an output holds of its asset: an NFT is one; the right to mint is nothing."""
    if isinstance(output, TransferOutput):
        return output.amount
    return 1 if isinstance(output, NftTransferOutput) else 0


# -- writing: inside the engine's transaction ----------------------------------------------------------------------


def listed_until(tx: Transaction, chain_id: bytes, first: int = 0) -> int:
    """How far a chain is in the lists."""
    rows = tx.rows(SQL.listed, {"chain_id": chain_id})
    return int(rows[0][0]) if rows else first


def put_listed(tx: Transaction, chain_id: bytes, next_number: int, burned: int | None) -> None:
    """Note how far a chain is in the lists, and what its transactions since then have burned of the fee
    asset, None where that is not known."""
    known = tx.rows(SQL.burned, {"chain_id": chain_id})
    before = known[0][0] if known else "0"
    total = None if before is None or burned is None else str(int(before) + burned)
    tx.run(SQL.put_listed, {"chain_id": chain_id, "next": next_number, "burned": total})


def fee_asset(tx: Transaction) -> bytes:
    """The asset in which the network's fees are paid: AVAX."""
    rows = tx.rows(SQL.fee_asset)
    return bytes(rows[0][0]) if rows else b""


def put_outputs(tx: Transaction, outputs: Iterable[NewOutput]) -> None:
    rows: list[Row] = []
    owners: list[Row] = []
    for new in outputs:
        spent: Row = (None, None, None)
        if new.source != new.destination:
            early = tx.rows(SQL.take_early_spent, {"utxo_id": new.utxo_id, "source": new.source})
            spent = early[0] if early else spent
        rows.append((new.utxo_id, new.source, new.destination, new.raw, new.height, new.time, *spent))
        utxo = unpack_utxo(new.raw)
        output = utxo.output
        amount, is_spent = amount_of(output) - _BIAS, int(spent[0] is not None)
        addresses = tuple(dict.fromkeys(owners_of(output)))
        if is_spent:
            put_import_owners(tx, new.destination, spent[0], utxo.asset_id, addresses)
        owners += [
            (chain_id, address, is_spent, new.time, new.utxo_id, amount)
            for chain_id in dict.fromkeys((new.source, new.destination))
            for address in addresses
        ]
    tx.run_many(SQL.put_output, rows)
    tx.run_many(SQL.put_owner, owners)


def put_import_owners(tx: Transaction, chain_id: bytes, txid: bytes, asset: bytes, owners: Iterable[bytes]) -> None:
    """Add to the transactions of these addresses one of the chain that imported an output of theirs. Owners are known
    when it is stored, or else when the export is."""
    if chain_id == PLATFORM_CHAIN:
        tx.run_many(SQL.put_platform_import_owner, [(one, txid) for one in owners])
        return
    tx.run_many(SQL.put_core_import_owner, [(one, txid) for one in owners])
    tx.run_many(SQL.put_asset_chain_import_owner, [(one, asset, txid, chain_id) for one in owners])


def spend_outputs(tx: Transaction, spent: Iterable[SpentOutput]) -> list[tuple[bytes, ...]]:
    """Note what was consumed; returns the owners of each output, none where it is not known yet."""
    moved: list[Row] = []
    owners: list[tuple[bytes, ...]] = []
    for one in spent:
        key = msgspec.structs.asdict(one)
        found = tx.rows(SQL.spend_output, key)
        if not found:
            tx.run(SQL.put_early_spent, key)
            owners.append(())
            continue
        destination, raw, created_time = found[0]
        addresses = tuple(dict.fromkeys(owners_of(unpack_utxo(raw).output)))
        owners.append(addresses)
        moved += [
            (chain_id, address, created_time, one.utxo_id)
            for chain_id in dict.fromkeys((one.source, destination))
            for address in addresses
        ]
    tx.run_many(SQL.spend_owner, moved)
    return owners


def signers_of(signatures: Iterable[bytes], digest: bytes) -> list[bytes]:
    """Who signed for an input: some of its owners, which are known even if nothing else of the output is."""
    try:
        return [recover(signature, digest) for signature in signatures]
    except WireError:  # no signature of any key
        return []


def put_proposers(tx: Transaction, chain_id: bytes, blocks: Iterable[tuple[int, bytes]]) -> None:
    """Note who proposed blocks, given by height and the certificate of the proposer, which may be empty."""
    rows = [(chain_id, hash160(certificate), height) for height, certificate in blocks if certificate]
    tx.run_many(SQL.put_proposed, rows)


def certificate_of(container: bytes) -> bytes:
    """The certificate of a block's proposer; empty if no proposer signed it."""
    try:
        return unpack_container(container).certificate
    except WireError:  # a block from before there were proposers
        return b""


# -- reading -------------------------------------------------------------------------------------------------------


class OutputLists:
    """Everything a worker reads of these outputs."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._is_complete = False

    async def with_ids(self, utxo_ids: Sequence[bytes]) -> dict[tuple[bytes, bytes], ListedOutput]:
        """Outputs by their ID and the chain that made them."""
        rows = await self._reader.rows_of_each(SQL.output_of, [(one,) for one in utxo_ids]) if utxo_ids else []
        return {(row[0], row[1]): ListedOutput(*row) for row in rows}

    async def owned(
        self,
        chain_id: bytes,
        addresses: Iterable[bytes],
        states: Iterable[int],
        after: tuple[int, bytes] | None,
        limit: int,
        *,
        upwards: bool,
        by_amount: bool = False,
    ) -> list[ListedOutput]:
        """Outputs of the addresses behind one, by time or by amount, and then by ID."""
        name = f"outputs{'_by_amount' if by_amount else ''}_{'up' if upwards else 'down'}"
        at, utxo_id = after or ((_FIRST, b"") if upwards else (_LAST, _LAST_ID))
        found: dict[tuple[int, bytes, bytes], ListedOutput] = {}
        for address in addresses:
            for is_spent in states:
                key = {"chain_id": chain_id, "address": address, "is_spent": is_spent, "at": at, "utxo_id": utxo_id}
                for row in await self._reader.rows(SQL.named(name), key | {"limit": limit}):
                    one = ListedOutput(*row)
                    found[one.amount if by_amount else one.created_time, one.utxo_id, one.source] = one
        return [found[key] for key in sorted(found, reverse=not upwards)][:limit]

    async def burned(self, chain_id: bytes) -> int | None:
        """What the transactions of a chain that are in the lists have burned of the fee asset. None: an older release
        has listed some of them without it."""
        rows = await self._reader.rows(SQL.burned, {"chain_id": chain_id})
        return None if rows and rows[0][0] is None else int(rows[0][0]) if rows else 0

    async def owns_on(self, chain_id: bytes, address: bytes) -> bool:
        """Whether an address ever owned an output that was made on a chain or exported to it."""
        return bool(await self._reader.rows(SQL.owns_on, {"chain_id": chain_id, "address": address}))

    async def proposed(self, chain_id: bytes, node_id: bytes, low: int, below: int, limit: int) -> list[int]:
        """Heights of the blocks that a node proposed, newest first."""
        key = {"chain_id": chain_id, "node_id": node_id, "low": low, "below": below, "limit": limit}
        return [int(height) for (height,) in await self._reader.rows(SQL.proposed_down, key)]

    async def is_complete(self, x_chain_id: bytes, c_chain_id: bytes) -> bool:
        """Whether all stored blocks of X, P and C are listed. Once they are, they stay so."""
        if not self._is_complete:
            chains = {"x_chain_id": x_chain_id, "c_chain_id": c_chain_id, "p_chain_id": PLATFORM_CHAIN}
            self._is_complete = not await self._reader.rows(SQL.incomplete, chains)
        return self._is_complete
