"""The transactions of X put into the lists of the primary network: with their block, or later in the background."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from icefall.db.engine import Store, Transaction
from icefall.wire.avm.codec import pack_utxo, unpack_tx
from icefall.wire.avm.types import BaseTx, CreateAssetTx, ExportTx, ImportTx, OperationTx, Tx
from icefall.wire.avm.utxos import consumed, exported, imported, produced
from icefall.wire.ids import hash256, input_id
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.xchain.outputs import (
    SQL,
    NewOutput,
    SpentOutput,
    amount_of,
    certificate_of,
    fee_asset,
    listed_until,
    put_import_owners,
    put_listed,
    put_outputs,
    put_proposers,
    signers_of,
    spend_outputs,
)

_BATCH = 256


class AcceptedTx(NamedTuple):
    """A transaction of X with the height and the time of its block."""

    seq: int
    tx: Tx
    height: int
    time: int


def assets_of(tx: Tx) -> set[bytes]:
    """The assets of which a transaction consumes or makes some."""
    unsigned: BaseTx = tx.unsigned
    found = {one.asset_id for one in unsigned.inputs} | {one.asset_id for one in unsigned.outputs}
    if isinstance(unsigned, CreateAssetTx):
        found.add(tx.txid)
    elif isinstance(unsigned, OperationTx):
        found.update(one.asset_id for one in unsigned.operations)
    elif isinstance(unsigned, ImportTx):
        found.update(one.asset_id for one in unsigned.imported_inputs)
    elif isinstance(unsigned, ExportTx):
        found.update(one.asset_id for one in unsigned.exported_outputs)
    return found


def burned_by(tx: Tx, asset_id: bytes) -> int:
    """How much of an asset a transaction consumes and neither makes nor exports. What operations do, which move other
    assets, and what a genesis makes, are not counted."""
    unsigned: BaseTx = tx.unsigned
    taken, made = unsigned.inputs, unsigned.outputs
    if isinstance(unsigned, ImportTx):
        taken += unsigned.imported_inputs
    elif isinstance(unsigned, ExportTx):
        made += unsigned.exported_outputs
    left = sum(given.input.amount for given in taken if given.asset_id == asset_id)
    return left - sum(amount_of(out.output) for out in made if out.asset_id == asset_id)


def list_new(
    tx: Transaction, chain: int, chain_id: bytes, txs: Sequence[AcceptedTx], containers: Iterable[tuple[int, bytes]]
) -> None:
    """List transactions with their block, provided that all before them are listed: else `StoredTxs` does it."""
    if txs and listed_until(tx, chain_id) == txs[0].seq:
        _list(tx, chain, chain_id, txs, containers)


def _list(
    tx: Transaction, chain: int, chain_id: bytes, txs: Sequence[AcceptedTx], containers: Iterable[tuple[int, bytes]]
) -> None:
    made: list[NewOutput] = []
    spent: list[SpentOutput] = []
    for one in txs:
        of_block = one.height, one.time
        peer = getattr(one.tx.unsigned, "destination_chain", b"")
        for destination, utxos in ((chain_id, produced(one.tx)), (peer, exported(one.tx))):
            made += [
                NewOutput(input_id(utxo.txid, utxo.output_index), chain_id, destination, pack_utxo(utxo), *of_block)
                for utxo in utxos
            ]
        source = getattr(one.tx.unsigned, "source_chain", b"")
        for origin, inputs in ((chain_id, consumed(one.tx)), (source, imported(one.tx))):
            spent += [
                SpentOutput(input_id(given.txid, given.output_index), origin, one.tx.txid, *of_block)
                for given in inputs
            ]
    put_outputs(tx, made)
    owners = {one.utxo_id: known for one, known in zip(spent, spend_outputs(tx, spent), strict=True)}
    for one in txs:
        if isinstance(one.tx.unsigned, ImportTx):
            for position, given in enumerate(one.tx.unsigned.imported_inputs, len(one.tx.unsigned.inputs)):
                known = owners[input_id(given.txid, given.output_index)] or _signers(one.tx, position)
                put_import_owners(tx, chain_id, one.tx.txid, given.asset_id, known)
    tx.run_many(SQL.put_asset_tx, [(chain, asset, one.seq) for one in txs for asset in sorted(assets_of(one.tx))])
    put_proposers(tx, chain_id, [(height, certificate_of(raw)) for height, raw in containers])
    avax = fee_asset(tx)
    put_listed(tx, chain_id, txs[-1].seq + 1, sum(burned_by(one.tx, avax) for one in txs))


def _signers(tx: Tx, position: int) -> list[bytes]:
    """Who signed for an input, where its owners are not known yet."""
    credential = tx.credentials[position] if position < len(tx.credentials) else None
    return signers_of(getattr(credential, "signatures", ()), hash256(tx.unsigned_raw))


class StoredTxs:
    """Lists the transactions of X that an older release stored, in the background."""

    def __init__(self, store: Store, chain_id: bytes) -> None:
        self._store = store
        self._chain_id = chain_id

    async def step(self) -> bool:
        """List some of them. False if all are."""
        return await self._store.write(self._put)

    def _put(self, tx: Transaction) -> bool:
        key = {"chain_id": self._chain_id}
        at = listed_until(tx, self._chain_id)
        rows = tx.rows(SQL.unlisted, {**key, "next": at, "limit": _BATCH})
        if not rows:
            return False
        before = tx.rows(SQL.unlisted, {**key, "next": at - 1, "limit": 1})[0][2] if at else -1
        heights = sorted({row[2] for row in rows})
        blocks = {height: tx.rows(SQL.block_of, {**key, "height": height})[0] for height in heights}
        txs = [
            AcceptedTx(seq, unpack_tx(raw, GENESIS_SIZE_MAX), height, int.from_bytes(blocks[height][1], "big"))
            for seq, raw, height in rows
        ]
        containers = [(height, blocks[height][0]) for height in heights if height > max(before, 0)]
        _list(tx, int(tx.rows(SQL.number, key)[0][0]), self._chain_id, txs, containers)
        return True
