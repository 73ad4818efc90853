"""The asset chain's rows: one writer commits whole blocks. What workers read of them is in `reading.py`.

UTXOs are stored in the bytes that are sent; nothing is re-encoded on the way out.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from icefall.db.engine import Store, StoreError, Transaction
from icefall.db.statements import load
from icefall.wire.avm.codec import unpack_tx, unpack_utxo
from icefall.wire.avm.types import CreateAssetTx, Tx, Utxo
from icefall.wire.ids import hash256
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.xchain.listed import AcceptedTx, list_new
from icefall.xchain.mempool import REFUSALS_MAX, Refusal
from icefall.xchain.model import AcceptedBlock, NewUtxo, TxEffects, owners_of
from icefall.xchain.outputs import SQL as OUTPUTS

SQL = load("icefall.xchain", "queries.sql")
NEWEST = (1 << 63) - 1
_POSITION_BITS = 48  # positions of different chains never overlap


class Checkpoint(msgspec.Struct, frozen=True):
    """The position of a stored chain."""

    chain: int
    genesis_txs: int
    height: int
    next_seq: int
    next_position: int


class StoredUtxo(msgspec.Struct, frozen=True, gc=False):
    """A UTXO and its position in the list of an address."""

    position: int
    utxo_id: bytes
    raw: bytes


# -- writing: inside the engine's transaction ----------------------------------------------------------------------


def open_ledger(tx: Transaction, chain_id: bytes, genesis: bytes) -> Checkpoint | None:
    """The stored chain's checkpoint; None if the chain is not in this store."""
    rows = tx.rows(SQL.ledger, {"chain_id": chain_id})
    if not rows:
        return None
    chain, genesis_hash, *at = rows[0]
    if genesis_hash != hash256(genesis):
        raise StoreError("this data directory holds the chain with another genesis: use another --data-dir")
    return Checkpoint(chain, *at)


def put_genesis(tx: Transaction, chain_id: bytes, genesis: bytes, first: AcceptedBlock) -> Checkpoint:
    """A chain at height 0: its assets' transactions, their outputs, and block 0."""
    count = len(first.effects)
    tx.run(SQL.put_ledger, {"chain_id": chain_id, "genesis_hash": hash256(genesis), "genesis_txs": count})
    chain = tx.rows(SQL.ledger, {"chain_id": chain_id})[0][0]
    return put_accepted(tx, Checkpoint(chain, count, -1, 0, chain << _POSITION_BITS), chain_id, first)


def put_accepted(tx: Transaction, at: Checkpoint, chain_id: bytes, accepted: AcceptedBlock) -> Checkpoint:
    """One block with all it changes. The checkpoint moves by exactly one height, or everything is rolled back."""
    block = accepted.block
    tx.run(
        SQL.put_block,
        {
            "chain": at.chain,
            "height": block.height,
            "block_id": block.block_id,
            "container_id": accepted.container_id,
            "accepted_ns": accepted.accepted_ns,
            "inner_at": accepted.container.index(block.raw),
            "inner_size": len(block.raw),
            "container": accepted.container,
        },
    )
    after = _put_effects(tx, at, chain_id, block.height, accepted.effects)
    containers = [(block.height, accepted.container)] if block.height else []
    _list_effects(tx, at, chain_id, block.height, block.time, accepted.effects, containers)
    moved = {
        "chain": at.chain,
        "height": after.height,
        "next_seq": after.next_seq,
        "next_position": after.next_position,
    }
    if not tx.run(SQL.advance_ledger, moved):
        raise StoreError(f"block {block.height} does not follow the stored height {at.height}")
    return after


def put_before_blocks(tx: Transaction, at: Checkpoint, chain_id: bytes, effects: Sequence[TxEffects]) -> Checkpoint:
    """Transactions of a DAG that came before block 1: they are stored at height 0, after the genesis assets."""
    after = _put_effects(tx, at, chain_id, 0, effects)
    block_0_time = int.from_bytes(tx.rows(OUTPUTS.block_of, {"chain_id": chain_id, "height": 0})[0][1], "big")
    _list_effects(tx, at, chain_id, 0, block_0_time, effects, [])
    moved = {"chain": at.chain, "next_seq": after.next_seq, "next_position": after.next_position}
    if not tx.run(SQL.advance_before_blocks, {**moved, "seq_before": at.next_seq}):
        raise StoreError(f"transactions from before block 1 do not follow number {at.next_seq} at height {at.height}")
    return after


def _put_effects(
    tx: Transaction, at: Checkpoint, chain_id: bytes, height: int, effects: Sequence[TxEffects]
) -> Checkpoint:
    """Transactions with all they change; returns the checkpoint after them."""
    tx.run_many(
        SQL.put_tx,
        [
            {"chain": at.chain, "seq": seq, "txid": row.tx.txid, "height": height, "bytes": row.tx.raw}
            for seq, row in enumerate(effects, at.next_seq)
        ],
    )
    next_position = _put_created(tx, at, effects)
    _take_spent(tx, at.chain, effects)
    for row in effects:
        for utxo_id in row.imported:
            take_atomic(tx, chain_id, row.peer_chain_id, utxo_id)
        put_atomic(tx, row.peer_chain_id, chain_id, row.exported)
    _put_history(tx, at, effects)
    return Checkpoint(at.chain, at.genesis_txs, height, at.next_seq + len(effects), next_position)


def _list_effects(
    tx: Transaction,
    at: Checkpoint,
    chain_id: bytes,
    height: int,
    time: int,
    effects: Sequence[TxEffects],
    containers: Sequence[tuple[int, bytes]],
) -> None:
    """Put transactions into the lists of the primary network."""
    txs = [AcceptedTx(seq, row.tx, height, time) for seq, row in enumerate(effects, at.next_seq)]
    list_new(tx, at.chain, chain_id, txs, containers)


def _put_created(tx: Transaction, at: Checkpoint, effects: Iterable[TxEffects]) -> int:
    """All outputs of a block, before any is deleted: a later transaction may spend the output of an earlier one."""
    position = at.next_position
    utxos, owners = [], []
    for row in effects:
        for new in row.created:
            utxos.append((position, at.chain, new.utxo_id, new.raw))
            owners += [(at.chain, address, position) for address in new.addresses]
            position += 1
    tx.run_many(SQL.put_utxo, utxos)
    tx.run_many(SQL.put_utxo_owner, owners)
    return position


def _take_spent(tx: Transaction, chain: int, effects: Iterable[TxEffects]) -> None:
    owners = []
    for row in effects:
        for utxo_id, utxo in zip(row.spent, row.spent_utxos, strict=False):  # imported ones follow those
            position = tx.rows(SQL.take_utxo, (chain, utxo_id))[0][0]
            owners += [(chain, address, position) for address in owners_of(utxo.output)]
    tx.run_many(SQL.take_utxo_owner, owners)


def _put_history(tx: Transaction, at: Checkpoint, effects: Iterable[TxEffects]) -> None:
    rows = []
    for seq, row in enumerate(effects, at.next_seq):
        touched = {(address, utxo.asset_id) for utxo in row.spent_utxos for address in owners_of(utxo.output)}
        for new in (*row.created, *row.exported):
            touched.update((address, new.utxo.asset_id) for address in new.addresses)
        rows += [(at.chain, address, seq, asset) for address, asset in touched]
    tx.run_many(SQL.put_address_tx, rows)


def put_atomic(tx: Transaction, destination: bytes, source: bytes, exports: Iterable[NewUtxo]) -> None:
    """What `source` exports to `destination`. One that was imported before we saw its export is not stored.

    It has a position all the same: positions do not depend on which of two chains was followed first.
    """
    for new in exports:
        key = {"destination": destination, "source": source, "utxo_id": new.utxo_id}
        sides: dict[str, bytes | int] = {"destination": destination, "source": source}
        sides["position"] = tx.rows(SQL.next_atomic_position, sides)[0][0]
        if tx.run(SQL.cancel_taken, key):
            continue
        tx.run(SQL.put_atomic, {**sides, "utxo_id": new.utxo_id, "bytes": new.raw})
        tx.run_many(SQL.put_atomic_owner, [sides | {"address": address} for address in new.addresses])


def take_atomic(tx: Transaction, destination: bytes, source: bytes, utxo_id: bytes) -> None:
    key = {"destination": destination, "source": source, "utxo_id": utxo_id}
    taken = tx.rows(SQL.take_atomic, key)
    if not taken:
        tx.run(SQL.put_taken, key)
        return
    position, raw = taken[0]
    sides = {"destination": destination, "source": source, "position": position}
    owners = owners_of(unpack_utxo(raw).output)
    tx.run_many(SQL.take_atomic_owner, [sides | {"address": address} for address in owners])


def put_refusals(tx: Transaction, chain: int, refusals: Iterable[Refusal]) -> None:
    for one in refusals:
        tx.run(SQL.put_refused, {"chain": chain, "txid": one.txid, "reason": one.reason})
    tx.run(SQL.trim_refused, {"chain": chain, "keep": REFUSALS_MAX})


# -- reading: for the engine's rules -------------------------------------------------------------------------------


class StoredState:
    """The last accepted state, for the engine's rules. Transactions of assets never change and are cached."""

    def __init__(self, store: Store, chain: int, chain_id: bytes, subnet_of: Callable[[bytes], bytes]) -> None:
        self._store = store
        self._chain = chain
        self._chain_id = chain_id
        self.subnet_of = subnet_of
        self._assets: dict[bytes, Tx] = {}

    def utxo(self, utxo_id: bytes) -> Utxo | None:
        rows = self._store.read(SQL.utxo, {"chain": self._chain, "utxo_id": utxo_id})
        return unpack_utxo(rows[0][0]) if rows else None

    def tx(self, txid: bytes) -> Tx | None:
        known = self._assets.get(txid)
        if known is None:
            rows = self._store.read(SQL.tx, {"chain": self._chain, "txid": txid})
            if not rows:
                return None
            known = unpack_tx(rows[0][0], GENESIS_SIZE_MAX)
            if len(self._assets) < 4096 and isinstance(known.unsigned, CreateAssetTx):
                self._assets[txid] = known
        return known

    def has_tx(self, txid: bytes) -> bool:
        return bool(self._store.read(SQL.has_tx, {"chain": self._chain, "txid": txid}))

    def txid_at(self, seq: int) -> bytes:
        txid: bytes = self._store.read(SQL.tx_at, {"chain": self._chain, "seq": seq})[0][1]
        return txid

    def atomic_utxo(self, peer_chain_id: bytes, utxo_id: bytes) -> Utxo | None:
        key = {"destination": self._chain_id, "source": peer_chain_id, "utxo_id": utxo_id}
        rows = self._store.read(SQL.atomic, key)
        return unpack_utxo(rows[0][0]) if rows else None
