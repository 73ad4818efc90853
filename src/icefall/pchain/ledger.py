"""The stored P-Chain: the state after its last executed block, and commits of batches of blocks."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from icefall.db.engine import Store, StoreError, Transaction
from icefall.pchain.changes import Changes
from icefall.pchain.execute import execute_block
from icefall.pchain.genesis import NothingStored, genesis_state
from icefall.pchain.loading import StoredLookup, load_state, stored_genesis
from icefall.pchain.model import ExecutionFailed
from icefall.pchain.parameters import PlatformParameters
from icefall.pchain.state import PlatformState
from icefall.pchain.store import put_changes, put_first
from icefall.wire.container.proposer import certificate_in
from icefall.wire.errors import WireError
from icefall.wire.ids import hash256, id_text, input_id
from icefall.wire.packer import GENESIS_SIZE_MAX
from icefall.wire.pvm.codec import unpack_block
from icefall.wire.pvm.types import PlatformBaseTx, PlatformBlock

_BLOCKS_PER_STEP = 16  # read or executed before the event loop may run something else
_PIECE = 512  # blocks that are read, with what they consume, before they are executed


class ReceivedBlock(NamedTuple):
    """A block with its container. `is_indexed`: the index of containers holds that, so it is not stored twice."""

    container_id: bytes
    container: bytes
    inner: bytes
    is_indexed: bool


class BlockRefused(Exception):
    """A block cannot be executed: the state is not that of the network, or the block is of a type not known here."""


class PlatformLedger:
    """`genesis` are the bytes that block 0 hashes; `find_genesis` returns those of another block 0 that the network can
    have, as the start of a local network moves with time. `on_changes` makes further writes in a batch's transaction;
    `prepare` is awaited before, with the height of the batch's first block.
    """

    def __init__(
        self,
        store: Store,
        parameters: PlatformParameters,
        genesis: bytes,
        find_genesis: Callable[[bytes], bytes | None],
        on_changes: Callable[[Transaction, Changes], None],
        prepare: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self.parameters = parameters
        self._store = store
        self._genesis = genesis
        self._find_genesis = find_genesis
        self._on_changes = on_changes
        self._prepare = prepare
        self._state: PlatformState | None = None
        self.height = 0
        self.block_id = b""

    async def start(self) -> None:
        """Load the stored chain, or begin with the genesis. It must be one that this network can have begun with."""
        stored = stored_genesis(self._store)
        if stored is None:
            await self.begin(self._genesis)
            return
        genesis_hash, block_0_id = stored
        if genesis_hash != hash256(self._genesis):
            found = self._find_genesis(block_0_id)
            if found is None or genesis_hash != hash256(found):
                raise StoreError("this data directory holds the P-Chain with another genesis: use another --data-dir")
            self._genesis = found
        self._load()

    async def begin(self, genesis: bytes) -> None:
        """Begin with a genesis, in the place of another one on which no block follows yet."""
        self._genesis = genesis
        state = genesis_state(self.parameters, genesis, NothingStored())
        changes, at = state.take_changes(), state.position
        await self._store.write(lambda tx: put_first(tx, hash256(genesis), at, changes))
        self._load()

    async def begin_at(self, block_0_id: bytes) -> None:
        """Begin with the genesis of this block 0, if there is no other block yet and the network can have it."""
        if self.height or self.block_id == block_0_id:
            return
        genesis = self._find_genesis(block_0_id)
        if genesis is not None:
            await self.begin(genesis)

    @property
    def state(self) -> PlatformState:
        if self._state is None:
            raise StoreError("the P-Chain's state is not loaded")
        return self._state

    def _load(self) -> None:
        self._state = load_state(self._store, self.parameters)
        self.height, self.block_id = self._state.height, self._state.block_id

    async def accept(self, blocks: Sequence[ReceivedBlock], also: Callable[[Transaction], None] | None = None) -> None:
        """Execute blocks and store what they change, with what `also` writes, in one transaction.

        BlockRefused: the first that cannot be executed; those before it are stored, and what `also` writes.
        """
        refused: BlockRefused | None = None
        stopped = await self._execute(blocks)
        if stopped is not None:
            refused = stopped.why
            self._load()
            if stopped.executed:
                again = await self._execute(blocks[: stopped.executed])
                if again is not None:
                    raise again.why
        changes, at, before = self.state.take_changes(), self.state.position, self.height

        def change(tx: Transaction) -> None:
            if also is not None:
                also(tx)
            if changes.blocks:
                put_changes(tx, before, at, changes)
                self._on_changes(tx, changes)

        try:
            if self._prepare is not None and changes.blocks:
                await self._prepare(changes.blocks[0].height)
            await self._store.write(change)
        except BaseException:
            self._state = None  # it is ahead of the store: it is loaded again with the next batch
            raise
        self.height, self.block_id = at.height, at.block_id
        if refused is not None:
            raise refused

    async def _execute(self, received: Sequence[ReceivedBlock]) -> "_Stopped | None":
        if self._state is None:
            self._load()
        for at in range(0, len(received), _PIECE):
            stopped = await self._execute_piece(received[at : at + _PIECE])
            if stopped is not None:
                return _Stopped(at + stopped.executed, stopped.why)
        return None

    async def _execute_piece(self, received: Sequence[ReceivedBlock]) -> "_Stopped | None":
        state, blocks = self.state, []
        stopped = None
        for count, one in enumerate(received):
            try:
                blocks.append(unpack_block(one.inner, GENESIS_SIZE_MAX))
            except WireError as error:
                stopped = _Stopped(count, _refusal(state.height + 1 + count, hash256(one.inner), str(error)))
                break
            if count % _BLOCKS_PER_STEP == _BLOCKS_PER_STEP - 1:
                await asyncio.sleep(0)
        assert isinstance(state.lookup, StoredLookup)
        state.lookup.prefetch([utxo_id for utxo_id in _consumed(blocks) if utxo_id not in state.changes.utxos])
        for count, (block, one) in enumerate(zip(blocks, received, strict=False)):
            try:
                row = execute_block(state, block)
            except (ExecutionFailed, WireError) as error:
                return _Stopped(count, _refusal(block.height, block.block_id, str(error)))
            inner_at = one.container.index(one.inner)
            row = row._replace(
                inner_at=inner_at,
                container_id=one.container_id,
                container=None if one.is_indexed else one.container,
                certificate=certificate_in(one.container, inner_at),
            )
            state.changes.blocks.append(row)
            if count % _BLOCKS_PER_STEP == _BLOCKS_PER_STEP - 1:
                await asyncio.sleep(0)
        return stopped


class _Stopped(NamedTuple):
    """How many blocks were executed before the one that was not, and why."""

    executed: int
    why: BlockRefused


def _refusal(height: int, block_id: bytes, reason: str) -> BlockRefused:
    return BlockRefused(f"block {height} ({id_text(block_id)}) cannot be executed: {reason}")


def _consumed(blocks: Sequence[PlatformBlock]) -> dict[bytes, None]:
    """The outputs that blocks consume and no transaction of theirs makes."""
    txs = [tx for block in blocks for tx in (*block.txs, *((block.proposal,) if block.proposal else ()))]
    made = {tx.txid for tx in txs}
    return {
        input_id(one.txid, one.output_index): None
        for tx in txs
        if isinstance(tx.unsigned, PlatformBaseTx)
        for one in tx.unsigned.inputs
        if one.txid not in made
    }
