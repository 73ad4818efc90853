"""A running asset chain: transactions come in, blocks are accepted, each in one commit.

Everything here runs on the engine's one thread; only the commit waits. While it does, the block's transactions stay in
the mempool, so that a rival is told of the conflict instead of being dropped later.
"""

import asyncio
import time
from collections.abc import Callable

import msgspec

from icefall.db.engine import Store, StoreError, Transaction
from icefall.errors import CallFailed
from icefall.observe import Log
from icefall.wire.avm import genesis_txs, unpack_block, unpack_genesis
from icefall.wire.avm_types import Block
from icefall.wire.ids import id_text
from icefall.wire.proposer import Container, next_epoch, pack_container, unpack_container
from icefall.xchain.builder import build
from icefall.xchain.execute import effects_of
from icefall.xchain.issue import issue, parse_issue
from icefall.xchain.mempool import Mempool
from icefall.xchain.model import Accepted, ChainRules, Refused
from icefall.xchain.ownership import Signers
from icefall.xchain.store import (
    SQL,
    Checkpoint,
    StoredState,
    open_ledger,
    put_accepted,
    put_genesis,
    put_refusals,
)

_RETRY_S = 1.0

OnAccept = Callable[[Transaction, Checkpoint, Accepted], None]
"""What else is to be written in a block's transaction; the checkpoint is the one before the block."""


class Pace(msgspec.Struct, frozen=True):
    """At most one block every `block_time_s`, each of at most `txs_max` transactions; 0 means no such bound."""

    block_time_s: float = 0.0
    txs_max: int = 0


class AssetChain:
    def __init__(
        self,
        store: Store,
        rules: ChainRules,
        genesis: bytes,
        block_0: bytes,
        subnet_of: Callable[[bytes], bytes],
        pace: Pace,
        log: Log,
        on_accept: OnAccept | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.rules = rules
        self._store = store
        self._genesis = genesis
        self._block_0 = block_0
        self._subnet_of = subnet_of
        self._pace = pace
        self._log = log
        self._on_accept = on_accept or (lambda tx, at, accepted: None)
        self._now = now
        self._mempool = Mempool()
        self._signers = Signers()  # so that building a block does not recover again what issuing has recovered
        self._wake = asyncio.Event()
        self._refusals: list[tuple[bytes, str]] = []
        self._at: Checkpoint
        self._state: StoredState
        self._tip: Block
        self._container: Container | None = None  # of the tip; block 0 has none
        self.last_container_id = b""

    @property
    def height(self) -> int:
        return self._tip.height

    async def start(self) -> None:
        """Take up where the store left off, or begin with the genesis."""
        at = await self._store.write(self._opened)
        self._at = at
        self._state = StoredState(self._store, at.chain, self.rules.chain_id, self._subnet_of)
        _, _, self.last_container_id, raw = self._store.read(SQL.last_container, {"chain": at.chain})[0]
        if at.height:
            self._container = unpack_container(raw)
        self._tip = unpack_block(self._container.inner if self._container else raw)
        self._log.info("the chain is open", chain=id_text(self.rules.chain_id), height=self.height)

    def _opened(self, tx: Transaction) -> Checkpoint:
        at = open_ledger(tx, self.rules.chain_id, self._genesis)
        if at is not None:
            return at
        block = unpack_block(self._block_0)
        nothing = StoredState(self._store, 0, self.rules.chain_id, self._subnet_of)
        made = tuple(effects_of(asset, nothing) for asset in genesis_txs(unpack_genesis(self._genesis)))
        first = Accepted(block, block.block_id, block.raw, time.time_ns(), made)
        return put_genesis(tx, self.rules.chain_id, self._genesis, first)

    # -- what workers ask ------------------------------------------------------------------------------------------

    def issue(self, tx: str, encoding: str) -> bytes:
        """The transaction's ID, once it is in the mempool. What is refused is remembered."""
        try:
            parsed = parse_issue(tx, encoding)
        except Refused as refused:
            raise CallFailed(str(refused)) from refused
        try:
            issue(parsed, self._mempool, self.rules, self._state, int(self._now()), self._signers)
        except Refused as refused:
            self._remember(parsed.txid, str(refused))
            raise CallFailed(str(refused)) from refused
        self._wake.set()
        return parsed.txid

    def is_processing(self, txid: bytes) -> bool:
        return txid in self._mempool

    # -- accepting blocks ------------------------------------------------------------------------------------------

    async def run_forever(self) -> None:
        """A block as soon as there is something to put in it, and no sooner than the pace allows."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            began = time.monotonic()
            try:
                await self.accept_pending()
            except StoreError as error:  # a full disk: nothing was changed, the transactions are still there
                self._log.error("a block could not be stored; trying again", error=str(error))
                await asyncio.sleep(_RETRY_S)
            if len(self._mempool):
                self._wake.set()
            await asyncio.sleep(max(0.0, self._pace.block_time_s - (time.monotonic() - began)))

    async def accept_pending(self) -> bool:
        """Build, commit and accept one block; whether there was one."""
        now_s = int(self._now())
        built = build(self._mempool, self._tip, self.rules, self._state, now_s, self._pace.txs_max, self._signers)
        self._refusals.extend(built.dropped)
        if built.block is None:
            await self._flush_refusals()
            return False
        container = self._wrapped(built.block)
        accepted = Accepted(built.block, container.container_id, container.raw, time.time_ns(), built.effects)
        refusals, self._refusals = self._refusals, []

        def change(tx: Transaction) -> Checkpoint:
            put_refusals(tx, self._at.chain, refusals)
            self._on_accept(tx, self._at, accepted)
            return put_accepted(tx, self._at, self.rules.chain_id, accepted)

        try:
            self._at = await self._store.write(change)
        except StoreError:
            self._refusals = refusals + self._refusals
            raise
        self._tip, self._container, self.last_container_id = built.block, container, container.container_id
        self._mempool.accepted(built.block.txs)
        self._log.debug("accepted a block", height=self.height, txs=len(built.block.txs))
        return True

    def _wrapped(self, block: Block) -> Container:
        """The container a proposer without a key would make: unsigned, upon the parent's container."""
        parent = self._container
        if parent is None:
            return pack_container(self._tip.block_id, block.time, 0, block.raw)
        return pack_container(parent.container_id, block.time, 0, block.raw, epoch=next_epoch(parent))

    def _remember(self, txid: bytes, reason: str) -> None:
        self._refusals.append((txid, reason))
        del self._refusals[:-64]
        self._wake.set()

    async def _flush_refusals(self) -> None:
        refusals, self._refusals = self._refusals, []
        if refusals:
            await self._store.write(lambda tx: put_refusals(tx, self._at.chain, refusals))
