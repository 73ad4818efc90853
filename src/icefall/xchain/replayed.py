"""The asset chain advanced by blocks of another node: each is verified and executed on our own state, and before them
the transactions of a DAG, if the chain had one."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from icefall.wire.avm.codec import unpack_block
from icefall.wire.avm.types import Block, ImportTx, Tx
from icefall.wire.avm.utxos import consumed, imported
from icefall.wire.errors import WireError
from icefall.wire.ids import id_text, input_id
from icefall.xchain.execute import FUTURE_MAX_S, Overlay, execute, verify_block
from icefall.xchain.ledger import Ledger, OnAcceptTxs
from icefall.xchain.model import AcceptedBlock, LedgerState, TxEffects, TxRefused
from icefall.xchain.ownership import Signers
from icefall.xchain.syntax import verify_syntax


class ReceivedContainer(NamedTuple):
    """A container whose ID and links have been checked already."""

    container_id: bytes
    raw: bytes
    inner: bytes


class ExportNotSeen(Exception):
    """An import of an output that its source chain has not exported yet, as far as we have followed it."""


class UnknownInput(Exception):
    """A transaction spends an output of a transaction that was never accepted here."""


class FollowedLedger:
    """`had_dag`: the blocks spend outputs of transactions that are in no block."""

    def __init__(self, ledger: Ledger, now: Callable[[], float] = time.time, *, had_dag: bool = False) -> None:
        self.ledger = ledger
        self._now = now
        self._had_dag = had_dag
        self._signers = Signers()

    async def accept(self, containers: Sequence[ReceivedContainer]) -> None:
        """Store all blocks up to the first invalid one, in one transaction; then raise why that one is invalid."""
        accepted: list[AcceptedBlock] = []
        stopped: Exception | None = None
        state, tip = Overlay(self.ledger.state), self.ledger.tip
        for container in containers:
            try:
                block, effects = self._verified(container, tip, state)
            except (TxRefused, WireError, ExportNotSeen, UnknownInput) as error:
                stopped = error
                break
            accepted.append(effects)
            tip = block
            await asyncio.sleep(0)  # a long run must not hold up the engine's other work
        if accepted:
            await self.ledger.commit(accepted)
        if isinstance(stopped, WireError):
            raise TxRefused(str(stopped))
        if stopped is not None:
            raise stopped

    async def accept_before_blocks(self, txs: Sequence[Tx], on_accept: OnAcceptTxs | None = None) -> None:
        """The same for transactions of the DAG, whose order is the one they were accepted in."""
        accepted: list[TxEffects] = []
        stopped: Exception | None = None
        state = Overlay(self.ledger.state)
        now_s = self._now_s(self.ledger.tip)  # block 0 is newer than all of them: no output they spent was locked
        for tx in txs:
            try:
                _require_sources((tx,), state)
                _require_exports(tx, state, f"transaction {id_text(tx.txid)}")
                verify_syntax(tx, self.ledger.rules)
                accepted.append(execute(tx, self.ledger.rules, state, now_s, self._signers))
            except (TxRefused, ExportNotSeen, UnknownInput) as error:
                stopped = error
                break
            await asyncio.sleep(0)
        if accepted:
            await self.ledger.commit_before_blocks(accepted, on_accept)
        if stopped is not None:
            raise stopped

    def _now_s(self, block: Block) -> int:
        """A block that another node accepted is never refused for its time."""
        return max(int(self._now()), block.time + FUTURE_MAX_S)

    def _verified(self, container: ReceivedContainer, tip: Block, state: Overlay) -> tuple[Block, AcceptedBlock]:
        block = unpack_block(container.inner)
        for tx in block.txs:
            _require_exports(tx, state, f"block {block.height}")
        try:
            effects = verify_block(block, tip, self.ledger.rules, state, self._now_s(block), self._signers)
        except TxRefused:
            if self._had_dag:
                _require_sources(block.txs, state)
            raise
        for row in effects:
            state.add(row)
        return block, AcceptedBlock(block, container.container_id, container.raw, time.time_ns(), effects)


def _require_exports(tx: Tx, state: LedgerState, what: str) -> None:
    if isinstance(tx.unsigned, ImportTx):
        for at in imported(tx):
            utxo_id = input_id(at.txid, at.output_index)
            if state.atomic_utxo(tx.unsigned.source_chain, utxo_id) is None:
                raise ExportNotSeen(f"{what} imports {id_text(utxo_id)}, which has not been exported yet")


def _require_sources(txs: Sequence[Tx], state: LedgerState) -> None:
    """What they spend may be spent already, but the transaction that created it must be accepted, or one of `txs`."""
    ours = {tx.txid for tx in txs}
    for tx in txs:
        for at in consumed(tx):
            unspent = state.utxo(input_id(at.txid, at.output_index))
            if unspent is None and at.txid not in ours and state.tx(at.txid) is None:
                raise UnknownInput(
                    f"transaction {id_text(tx.txid)} spends an output of {id_text(at.txid)}, which was never accepted"
                )
