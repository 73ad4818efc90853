"""The effects of verified transactions and blocks, and the state after some of a block's transactions."""

from icefall.wire.avm.codec import pack_utxo
from icefall.wire.avm.types import Block, ExportTx, ImportTx, Tx, Utxo
from icefall.wire.avm.utxos import consumed, exported, imported, produced
from icefall.wire.ids import EMPTY_ID, id_text, input_id
from icefall.xchain.model import ChainRules, LedgerState, NewUtxo, TxEffects, TxRefused, owners_of
from icefall.xchain.ownership import Recover, Signers
from icefall.xchain.semantics import verify_semantics
from icefall.xchain.syntax import verify_syntax


def effects_of(tx: Tx, state: LedgerState) -> TxEffects:
    """All that a transaction changes. It must have passed verification in the same state."""
    unsigned = tx.unsigned
    spent = tuple([input_id(at.txid, at.output_index) for at in consumed(tx)])
    spent_utxos = [_required(state.utxo(utxo_id)) for utxo_id in spent]
    peer_chain_id = b""
    taken: tuple[bytes, ...] = ()
    if isinstance(unsigned, ImportTx):
        peer_chain_id = unsigned.source_chain
        taken = tuple([input_id(at.txid, at.output_index) for at in imported(tx)])
        spent_utxos += [_required(state.atomic_utxo(peer_chain_id, utxo_id)) for utxo_id in taken]
    elif isinstance(unsigned, ExportTx):
        peer_chain_id = unsigned.destination_chain
    return TxEffects(
        tx=tx,
        created=_new(produced(tx)),
        spent=spent,
        spent_utxos=tuple(spent_utxos),
        peer_chain_id=peer_chain_id,
        imported=taken,
        exported=_new(exported(tx)),
    )


def input_ids(tx: Tx) -> list[bytes]:
    """IDs of all UTXOs that a transaction spends, own and imported. Two transactions that share one are in conflict."""
    return [input_id(at.txid, at.output_index) for at in (*consumed(tx), *imported(tx))]


class EmptyState:
    """The state before the genesis transactions are executed."""

    def utxo(self, utxo_id: bytes) -> Utxo | None:
        return None

    def tx(self, txid: bytes) -> Tx | None:
        return None

    def atomic_utxo(self, peer_chain_id: bytes, utxo_id: bytes) -> Utxo | None:
        return None

    def subnet_of(self, chain_id: bytes) -> bytes:
        raise TxRefused("not found")


class Overlay:
    """A state with the effects of some transactions on top. What it has read is cached: nothing else may change the
    underlying state while it is in use."""

    __slots__ = ("_below", "_imported", "_txs", "_utxos")

    def __init__(self, below: LedgerState) -> None:
        self._below = below
        self._utxos: dict[bytes, Utxo | None] = {}  # None: spent, or not there
        self._txs: dict[bytes, Tx] = {}
        self._imported: set[bytes] = set()

    def utxo(self, utxo_id: bytes) -> Utxo | None:
        try:
            return self._utxos[utxo_id]
        except KeyError:
            utxo = self._utxos[utxo_id] = self._below.utxo(utxo_id)
            return utxo

    def tx(self, txid: bytes) -> Tx | None:
        return self._txs.get(txid) or self._below.tx(txid)

    def atomic_utxo(self, peer_chain_id: bytes, utxo_id: bytes) -> Utxo | None:
        """UTXOs imported earlier in the block are still returned; `add` refuses to import them again."""
        return self._below.atomic_utxo(peer_chain_id, utxo_id)

    def subnet_of(self, chain_id: bytes) -> bytes:
        return self._below.subnet_of(chain_id)

    def add(self, effects: TxEffects) -> None:
        """Adds the effects of a transaction, unless it imports what an earlier one imports."""
        if not self._imported.isdisjoint(effects.imported):
            raise TxRefused("block contains conflicting transactions", is_final=False)
        self._imported.update(effects.imported)
        for utxo_id in effects.spent:
            self._utxos[utxo_id] = None
        for new in effects.created:
            self._utxos[new.utxo_id] = new.utxo
        self._txs[effects.tx.txid] = effects.tx


def _new(utxos: list[Utxo]) -> tuple[NewUtxo, ...]:
    return tuple(
        [
            NewUtxo(input_id(utxo.txid, utxo.output_index), utxo, pack_utxo(utxo), owners_of(utxo.output))
            for utxo in utxos
        ]
    )


def _required(utxo: Utxo | None) -> Utxo:
    if utxo is None:
        raise TxRefused("not found")
    return utxo


FUTURE_MAX_S = 10


def verify_block(
    block: Block, parent: Block, rules: ChainRules, state: LedgerState, now_s: int, recover: Recover | None = None
) -> tuple[TxEffects, ...]:
    """The effects of a block's transactions, in order. `state` is the state after `parent`."""
    if block.merkle_root != EMPTY_ID:
        raise TxRefused(f"unexpected merkle root: {id_text(block.merkle_root)}")
    if block.time > now_s + FUTURE_MAX_S:
        raise TxRefused("proposed timestamp is too far in the future relative to local time")
    if not block.txs:
        raise TxRefused("block contains no transactions")
    for tx in block.txs:
        verify_syntax(tx, rules)
    if block.parent_id != parent.block_id:
        raise TxRefused(f"parent must be {id_text(parent.block_id)}, got {id_text(block.parent_id)}")
    if block.height != parent.height + 1:
        raise TxRefused(f"block has incorrect height: expected height {parent.height + 1}, got {block.height}")
    if block.time < parent.time:
        raise TxRefused("proposed timestamp before current chain time")
    overlay = Overlay(state)
    signers = Signers() if recover is None else recover
    return tuple([execute(tx, rules, overlay, now_s, signers) for tx in block.txs])


def execute(tx: Tx, rules: ChainRules, overlay: Overlay, now_s: int, recover: Recover) -> TxEffects:
    """Verifies a well-formed transaction on `overlay` and adds its effects there. If refused, nothing changes."""
    verify_semantics(tx, rules, overlay, now_s, recover)
    effects = effects_of(tx, overlay)
    overlay.add(effects)
    return effects
