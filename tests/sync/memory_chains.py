"""X, P and C in plain dictionaries, as a follower moves them."""

from collections.abc import Sequence

from tests.xchain.memory_state import BLOCK_0, GENESIS, RULES, MemoryState

from icefall.node.sync.verify import ContainerRejected, ImportPending, VerifiedContainer
from icefall.wire.avm.codec import unpack_block, unpack_utxo
from icefall.wire.avm.types import ImportTx
from icefall.wire.avm.utxos import imported
from icefall.wire.errors import WireError
from icefall.wire.ids import PLATFORM_CHAIN, id_text, input_id
from icefall.xchain import model
from icefall.xchain.execute import FUTURE_MAX_S, verify_block

GENESIS_IDS = {"X": GENESIS.x_block_0_id, "P": GENESIS.p_block_0_id, "C": GENESIS.c_block_0_id}
CHAIN_IDS = {"X": GENESIS.x_chain_id, "P": PLATFORM_CHAIN, "C": GENESIS.c_chain_id}


class MemoryChain:
    """What all three have in common. `commits` holds the size of every run that was stored."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.accepted: list[VerifiedContainer] = []
        self.commits: list[int] = []

    @property
    def count(self) -> int:
        return len(self.accepted)

    @property
    def last_container_id(self) -> bytes:
        return self.accepted[-1].container_id if self.accepted else GENESIS_IDS[self.name]

    @property
    def last_block_id(self) -> bytes:
        return self.accepted[-1].block_id if self.accepted else GENESIS_IDS[self.name]

    def container_id_at(self, number: int) -> bytes | None:
        return self.accepted[number].container_id if 0 <= number < len(self.accepted) else None

    def store(self, run: Sequence[VerifiedContainer]) -> None:
        self.accepted += run
        if run:
            self.commits.append(len(run))


class Foreign(MemoryChain):
    """P or C: nothing is executed, exports land in X's memory."""

    def __init__(self, name: str, state: MemoryState) -> None:
        super().__init__(name)
        self._state = state

    async def accept(self, batch: Sequence[VerifiedContainer]) -> None:
        for offered in batch:
            for export in offered.exports:
                self._state.put_atomic(CHAIN_IDS[self.name], unpack_utxo(export.utxo_raw))
        self.store(batch)


class Asset(MemoryChain):
    """X: every transaction is executed."""

    def __init__(self, state: MemoryState) -> None:
        super().__init__("X")
        self.state = state
        self._tip = BLOCK_0

    async def accept(self, batch: Sequence[VerifiedContainer]) -> None:
        for done, offered in enumerate(batch):
            try:
                block = unpack_block(offered.inner)
                for tx in block.txs:
                    if isinstance(tx.unsigned, ImportTx):
                        for at in imported(tx):
                            utxo_id = input_id(at.txid, at.output_index)
                            if self.state.atomic_utxo(tx.unsigned.source_chain, utxo_id) is None:
                                raise ImportPending(f"{id_text(utxo_id)} has not been exported")
                effects = verify_block(block, self._tip, RULES, self.state, block.time + FUTURE_MAX_S)
            except (ImportPending, model.TxRefused, WireError) as error:
                self.store(batch[:done])
                raise error if isinstance(error, ImportPending) else ContainerRejected(str(error)) from error
            self.state.accept(effects)
            self._tip = block
        self.store(batch)
