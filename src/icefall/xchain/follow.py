"""The asset chain moved by what another node accepted: every block verified and executed on our own state."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from icefall.wire.avm import unpack_block
from icefall.wire.avm_types import Block, ImportTx
from icefall.wire.avm_utxos import imported
from icefall.wire.errors import WireError
from icefall.wire.ids import id_text, input_id
from icefall.xchain.blocks import FUTURE_MAX_S, verify_block
from icefall.xchain.execute import Overlay
from icefall.xchain.ledger import Ledger
from icefall.xchain.model import Accepted, Refused, State
from icefall.xchain.ownership import Signers


class Wrapped(NamedTuple):
    """A container whose ID and links have been checked already."""

    container_id: bytes
    raw: bytes
    inner: bytes


class Waiting(Exception):
    """An import of something that its source chain has not exported yet, as far as we have seen."""


class FollowedLedger:
    def __init__(self, ledger: Ledger, now: Callable[[], float] = time.time) -> None:
        self.ledger = ledger
        self._now = now
        self._signers = Signers()

    async def accept(self, containers: Sequence[Wrapped]) -> None:
        """Store the longest run that holds, in one transaction; then say what stopped it, if anything did."""
        accepted: list[Accepted] = []
        stopped: Exception | None = None
        state, tip = Overlay(self.ledger.state), self.ledger.tip
        for container in containers:
            try:
                block, effects = self._verified(container, tip, state)
            except (Refused, WireError, Waiting) as error:
                stopped = error
                break
            accepted.append(effects)
            tip = block
            await asyncio.sleep(0)  # a long run must not hold up the engine's other work
        if accepted:
            await self.ledger.commit(accepted)
        if isinstance(stopped, WireError):
            raise Refused(str(stopped))
        if stopped is not None:
            raise stopped

    def _verified(self, container: Wrapped, tip: Block, state: Overlay) -> tuple[Block, Accepted]:
        block = unpack_block(container.inner)
        _require_exports(block, state)
        # An accepted block is never refused for its time: its proposer's clock decided, not ours.
        now_s = max(int(self._now()), block.time + FUTURE_MAX_S)
        effects = verify_block(block, tip, self.ledger.rules, state, now_s, self._signers)
        for row in effects:
            state.add(row)
        return block, Accepted(block, container.container_id, container.raw, time.time_ns(), effects)


def _require_exports(block: Block, state: State) -> None:
    for tx in block.txs:
        if isinstance(tx.unsigned, ImportTx):
            for at in imported(tx):
                utxo_id = input_id(at.txid, at.output_index)
                if state.atomic_utxo(tx.unsigned.source_chain, utxo_id) is None:
                    raise Waiting(f"block {block.height} imports {id_text(utxo_id)}, which has not been exported yet")
