"""A stored asset chain: its tip, the state that its rules read, and commits of new blocks."""

import time
from collections.abc import Awaitable, Callable, Sequence

from icefall.db.engine import Store, Transaction
from icefall.wire.avm.codec import genesis_txs, unpack_block, unpack_genesis
from icefall.wire.avm.types import Block
from icefall.wire.container.proposer import Container, unpack_container
from icefall.xchain.execute import EmptyState, effects_of
from icefall.xchain.model import AcceptedBlock, ChainRules, TxEffects
from icefall.xchain.store import (
    SQL,
    Checkpoint,
    StoredState,
    open_ledger,
    put_accepted,
    put_before_blocks,
    put_genesis,
)

OnAccept = Callable[[Transaction, Checkpoint, AcceptedBlock], None]
"""Further writes in a block's transaction; the checkpoint is the one before the block."""

OnAcceptTxs = Callable[[Transaction, Checkpoint, Sequence[TxEffects]], None]
"""The same for transactions that are in no block."""


class Ledger:
    """`tip` is the last accepted block, `container` its wrapping; block 0 has none."""

    def __init__(
        self,
        store: Store,
        rules: ChainRules,
        genesis: bytes,
        block_0: bytes,
        subnet_of: Callable[[bytes], bytes],
        on_accept: OnAccept | None = None,
        prepare: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        """`prepare` is awaited before blocks are committed, with the height of the first."""
        self.store = store
        self.rules = rules
        self._genesis = genesis
        self._block_0 = block_0
        self._subnet_of = subnet_of
        self._on_accept = on_accept
        self._prepare = prepare
        self.at: Checkpoint
        self.state: StoredState
        self.tip: Block
        self.container: Container | None = None

    @property
    def height(self) -> int:
        return self.tip.height

    @property
    def txs_before_blocks(self) -> int:
        """Transactions that are in no block, the genesis assets left out. Known only until there is block 1."""
        return self.at.next_seq - self.at.genesis_txs

    @property
    def last_container_id(self) -> bytes:
        return self.container.container_id if self.container else self.tip.block_id

    def container_id_at(self, height: int) -> bytes | None:
        """The ID of an accepted block's container."""
        rows = self.store.read(SQL.container_id_at, {"chain": self.at.chain, "height": height})
        return rows[0][0] if rows else None

    async def start(self) -> None:
        """Load the stored chain, or begin with the genesis."""
        self.at = await self.store.write(self._opened)
        self.state = StoredState(self.store, self.at.chain, self.rules.chain_id, self._subnet_of)
        raw = self.store.read(SQL.last_container, {"chain": self.at.chain})[0][0]
        if self.at.height:
            self.container = unpack_container(raw)
        self.tip = unpack_block(self.container.inner if self.container else raw)

    def _opened(self, tx: Transaction) -> Checkpoint:
        at = open_ledger(tx, self.rules.chain_id, self._genesis)
        if at is not None:
            return at
        block = unpack_block(self._block_0)
        effects = tuple(effects_of(asset, EmptyState()) for asset in genesis_txs(unpack_genesis(self._genesis)))
        first = AcceptedBlock(block, block.block_id, block.raw, time.time_ns(), effects)
        return put_genesis(tx, self.rules.chain_id, self._genesis, first)

    async def commit(self, blocks: Sequence[AcceptedBlock], also: Callable[[Transaction], None] | None = None) -> None:
        """Blocks that follow the tip, in one transaction; the tip changes when they are stored."""
        if self._prepare is not None:
            await self._prepare(blocks[0].block.height)

        def change(tx: Transaction) -> Checkpoint:
            at = self.at
            if also is not None:
                also(tx)
            for accepted in blocks:
                if self._on_accept is not None:
                    self._on_accept(tx, at, accepted)
                at = put_accepted(tx, at, self.rules.chain_id, accepted)
            return at

        self.at = await self.store.write(change)
        self.tip, self.container = blocks[-1].block, unpack_container(blocks[-1].container)

    async def commit_before_blocks(self, effects: Sequence[TxEffects], on_accept: OnAcceptTxs | None) -> None:
        """Transactions from before block 1, in one transaction with the new checkpoint."""

        def change(tx: Transaction) -> Checkpoint:
            if on_accept is not None:
                on_accept(tx, self.at, effects)
            return put_before_blocks(tx, self.at, self.rules.chain_id, effects)

        self.at = await self.store.write(change)
