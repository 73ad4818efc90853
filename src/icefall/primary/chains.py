"""X, P and C as a follower or the demo history extends them, what of them goes into the container index, and how a
local network begins.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from icefall.db.engine import Store, Transaction
from icefall.demo import history
from icefall.errors import StartRefused
from icefall.node.index import BLOCKS_OF, X_BLOCK, X_TX, append
from icefall.node.store import SQL, read_meta
from icefall.node.sync.dag import ADVICE
from icefall.node.sync.foreign import ForeignChain, ForeignContainer
from icefall.node.sync.verify import (
    ChainLinks,
    ChainStopped,
    ContainerRejected,
    FollowedChain,
    ImportPending,
    MissingTransaction,
    VerifiedContainer,
    unreadable_text,
)
from icefall.observe.log import Log
from icefall.primary.listed import ListedCore
from icefall.primary.network import Network
from icefall.primary.shared_memory import CoreMoves, note_unread, unread_numbers
from icefall.wire.avm.codec import unpack_utxo
from icefall.wire.avm.types import Tx
from icefall.wire.container.platform import block_in_container, unpack_platform_block
from icefall.wire.container.proposer import Export
from icefall.wire.errors import WireError
from icefall.wire.ids import hash256, id_text
from icefall.xchain import model
from icefall.xchain.ledger import Ledger
from icefall.xchain.model import AcceptedBlock, NewUtxo, TxEffects, owners_of
from icefall.xchain.replayed import ExportNotSeen, FollowedLedger, ReceivedContainer, UnknownInput
from icefall.xchain.store import Checkpoint, put_atomic

_GAP = f"what we have from before block 1 is not complete, so a --data-dir of its own is needed too: {ADVICE}"


class XChain:
    """X: its transactions are executed on our own state.

    `had_dag`: it has transactions from before its blocks. `indexed`: those go into the index X/tx.
    """

    name = "X"

    def __init__(self, ledger: Ledger, *, had_dag: bool = False, indexed: bool = False) -> None:
        self._ledger = ledger
        self._followed = FollowedLedger(ledger, had_dag=had_dag)
        self._on_accept_txs = _index_txs if indexed else None

    @property
    def count(self) -> int:
        return self._ledger.height

    @property
    def last_container_id(self) -> bytes:
        return self._ledger.last_container_id

    @property
    def last_block_id(self) -> bytes:
        return self._ledger.tip.block_id

    def container_id_at(self, number: int) -> bytes | None:
        return self._ledger.container_id_at(number + 1)

    @property
    def tx_count(self) -> int:
        return self._ledger.txs_before_blocks

    @property
    def last_txid(self) -> bytes:
        return self._ledger.state.txid_at(self._ledger.at.next_seq - 1)

    def has_tx(self, txid: bytes) -> bool:
        return self._ledger.state.has_tx(txid)

    async def accept(self, batch: Sequence[VerifiedContainer]) -> None:
        run = [ReceivedContainer(row.container_id, row.raw, row.inner) for row in batch]
        try:
            await _translated(self._followed.accept(run))
        except MissingTransaction as incomplete:
            raise MissingTransaction(f"{incomplete}: {_GAP}") from incomplete

    async def accept_txs(self, txs: Sequence[Tx]) -> None:
        await _translated(self._followed.accept_before_blocks(txs, self._on_accept_txs))


async def _translated(accepting: Awaitable[None]) -> None:
    try:
        await accepting
    except model.TxRefused as refused:
        raise ContainerRejected(str(refused)) from refused
    except ExportNotSeen as waiting:
        raise ImportPending(str(waiting)) from waiting
    except UnknownInput as unknown:
        raise MissingTransaction(str(unknown)) from unknown


def _index_txs(tx: Transaction, at: Checkpoint, effects: Sequence[TxEffects]) -> None:
    """Adds transactions that are in no block to the index."""
    now_ns = time.time_ns()
    append(tx, X_TX, [(row.tx.txid, now_ns, seq, None) for seq, row in enumerate(effects, at.next_seq)])


class FollowedForeignChain:
    """P or C: checked by hash and parent, not executed; its exports go into X's atomic memory. `core`: of C, what it
    moves between itself, P and X; `listed`: its lists."""

    def __init__(
        self, chain: ForeignChain, x_chain_id: bytes, core: CoreMoves | None = None, listed: ListedCore | None = None
    ) -> None:
        self.name = chain.name
        self._chain = chain
        self._x_chain_id = x_chain_id
        self._core = core
        self._listed = listed

    @property
    def count(self) -> int:
        return self._chain.position.count

    @property
    def last_container_id(self) -> bytes:
        return self._chain.position.container_id

    @property
    def last_block_id(self) -> bytes:
        return self._chain.position.block_id

    def container_id_at(self, number: int) -> bytes | None:
        return self._chain.container_id_at(number)

    async def accept(self, batch: Sequence[VerifiedContainer]) -> None:
        """Store containers. One that cannot be read is left out where its bytes would not be kept."""
        if not self._chain.is_indexed:
            batch = [row for row in batch if not row.unread]
        if not batch:
            return
        rows = [ForeignContainer(row.container_id, row.raw, row.block_id, row.height) for row in batch]
        put_exports, core = self._exports_of(batch), self._core
        if self._listed is not None and self._listed.outbox is not None:
            await self._listed.outbox.prepare(self.name, batch[0].height)
        before = self._chain.position.count
        after = before + len(batch)
        applied = core if core is not None and core.is_current else None

        def also(tx: Transaction) -> None:
            put_exports(tx)
            if applied is not None:
                applied.put(tx, [row.inner for row in batch], after)
            if self._listed is not None:
                self._listed.put(tx, before, batch)

        await self._chain.accept(rows, also)
        if applied is not None:
            applied.applied = after

    def _exports_of(self, batch: Sequence[VerifiedContainer]) -> Callable[[Transaction], None]:
        exports = [_exported_utxo(export) for row in batch for export in row.exports]
        unread = [row.number for row in batch if row.unread]

        def put_exports(tx: Transaction) -> None:
            put_atomic(tx, self._x_chain_id, self._chain.chain_id, exports)
            if unread:
                note_unread(tx, added=unread)

        return put_exports

    async def read_again(self, store: Store) -> str | None:
        """Give X the exports of stored blocks of P that an older release could not read. Return why one still cannot
        be read: then the chain stays stopped."""
        for number in unread_numbers(store):
            rows = self._chain.stored(number - 1, 2) if number else self._chain.stored(0, 1)
            if not rows or rows[-1][0] != number:
                return f"{self.name} container {number}, which could not be read, was not kept: the index was off"
            (_, container_id, raw), before = rows[-1], rows[:-1]
            try:
                block = unpack_platform_block(block_in_container(raw))
            except WireError as error:
                return unreadable_text(self.name, number, id_text(container_id), str(error))
            parents = [hash256(block_in_container(one)) for _, _, one in before] or [block.parent_id]
            if block.height != number + 1 or block.parent_id != parents[0]:
                return unreadable_text(self.name, number, id_text(container_id), "its block does not follow the last")
            exports = [_exported_utxo(one) for one in block.exports_to(self._x_chain_id)]

            def change(tx: Transaction, number: int = number, exports: Sequence[NewUtxo] = exports) -> None:
                put_atomic(tx, self._x_chain_id, self._chain.chain_id, exports)
                note_unread(tx, read=[number])

            await store.write(change)
        return None


def _exported_utxo(export: Export) -> NewUtxo:
    utxo = unpack_utxo(export.utxo_raw)
    return NewUtxo(export.utxo_id, utxo, export.utxo_raw, owners_of(utxo.output))


def foreign_chains(network: Network, store: Store, *, indexed: bool) -> dict[str, ForeignChain]:
    """P and C, by name. `indexed`: their containers go into the index."""
    return {
        chain.name: ForeignChain(
            store, chain.name, chain.chain_id, chain.genesis_block_id, BLOCKS_OF[chain.name] if indexed else None
        )
        for chain in network.chains
        if chain.name in ("P", "C")
    }


def index_x(tx: Transaction, at: Checkpoint, accepted: AcceptedBlock) -> None:
    """Adds a block of the X-Chain and its transactions to the index."""
    when = accepted.accepted_ns
    append(tx, X_BLOCK, [(accepted.container_id, when, accepted.block.height, None)])
    numbered = enumerate(accepted.effects, at.next_seq)
    append(tx, X_TX, [(row.tx.txid, when, seq, None) for seq, row in numbered])


def genesis_time(store: Store, *, with_history: bool) -> tuple[int, bool]:
    """When the network began, and whether the demo history is to be imported.

    Only into a data directory that was never started: an existing network keeps what it has.
    """
    known = read_meta(store, "genesis_time")
    if known is not None:
        return int(known), False
    return (history.GENESIS_TIME, True) if with_history else (int(time.time()), False)


def put_state(state: str, tx: Transaction) -> None:
    """How far the import of the demo history is."""
    tx.run(SQL.put_meta, {"name": history.META_NAME, "value": state})


async def import_history(store: Store, ledger: Ledger, chains: dict[str, FollowedForeignChain], log: Log) -> None:
    """Imports the demo history if that was begun and is not done, also after a kill and also without --demo."""
    if read_meta(store, history.META_NAME) != history.BEGUN:
        return
    began = time.monotonic()
    imported: dict[str, FollowedChain] = {**chains, "X": XChain(ledger)}
    links = {name: ChainLinks(name, ledger.rules.chain_id) for name in imported}

    def report(name: str, count: int) -> None:
        log.debug("importing the demo history", chain=name, has=count)

    try:
        await history.import_into(imported, links, report)
    except (history.InvalidHistory, ChainStopped) as error:
        raise StartRefused(f"{error}. Use another --data-dir, with --no-demo to begin with nothing") from error
    await store.write(partial(put_state, history.DONE))
    counts = {name: chain.count for name, chain in imported.items()}
    log.info("demo history imported", containers=counts, seconds=round(time.monotonic() - began, 2))
