"""A running asset chain: accepts transactions into its mempool and commits blocks, each in one transaction.

Everything here runs on the engine's one thread; only the commit waits. While it does, the block's transactions stay in
the mempool, so that a conflicting transaction is refused at once instead of being dropped later.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from icefall.db.engine import StoreError
from icefall.errors import CallFailed
from icefall.observe.log import Log
from icefall.wire.avm.codec import pack_block
from icefall.wire.avm.types import Block
from icefall.wire.container.proposer import Container, next_epoch, pack_container
from icefall.xchain.execute import Overlay, execute
from icefall.xchain.ledger import Ledger
from icefall.xchain.mempool import REFUSALS_MAX, Mempool, Refusal, issue, parse_issue
from icefall.xchain.model import AcceptedBlock, ChainRules, LedgerState, TxEffects, TxRefused
from icefall.xchain.ownership import Recover, Signers
from icefall.xchain.store import put_refusals
from icefall.xchain.syntax import verify_syntax

BLOCK_SIZE_TARGET = 131_072


class BuiltBlock(NamedTuple):
    """A block, unless no transaction was valid; and the transactions that were dropped from the mempool."""

    block: Block | None
    effects: tuple[TxEffects, ...]
    dropped: tuple[Refusal, ...]


def build(
    mempool: Mempool,
    parent: Block,
    rules: ChainRules,
    state: LedgerState,
    now_s: int,
    txs_max: int = 0,
    recover: Recover | None = None,
) -> BuiltBlock:
    """The block upon `parent`, oldest transactions first, up to the first that does not fit into the bytes left, or up
    to `txs_max` of them (0: any number).

    Invalid ones leave the mempool at once. Those in the block stay until `Mempool.accepted` is called.
    """
    overlay = Overlay(state)
    signers = Signers() if recover is None else recover
    effects: list[TxEffects] = []
    dropped: list[Refusal] = []
    bytes_left = BLOCK_SIZE_TARGET
    for tx in mempool:
        if len(tx.raw) > bytes_left or (txs_max and len(effects) == txs_max):
            break
        try:
            verify_syntax(tx, rules)  # transactions issued through the wallet API were not verified
            effects.append(execute(tx, rules, overlay, now_s, signers))
        except TxRefused as refusal:
            dropped.append(Refusal(tx.txid, str(refusal), refusal.is_final))
        else:
            bytes_left -= len(tx.raw)
    for one in dropped:
        mempool.drop(one)
    if not effects:
        return BuiltBlock(None, (), tuple(dropped))
    time = max(now_s, parent.time)
    block = pack_block(parent.block_id, parent.height + 1, time, [row.tx for row in effects])
    return BuiltBlock(block, tuple(effects), tuple(dropped))


_RETRY_S = 1.0
PROCESSING, REJECTED = "Processing", "Rejected"


class BlockPace(msgspec.Struct, frozen=True):
    """The pace of blocks: at most one every `block_time_s`, each of at most `txs_max` transactions; 0 means no such
    bound."""

    block_time_s: float = 0.0
    txs_max: int = 0


class AssetChain:
    """`check_space` raises a StoreError while the disk has too little space: then nothing is accepted, so that nothing
    waits in memory for a disk that may stay full. `remembers_all_refusals` is explained at `Mempool`; stored are only
    the final ones."""

    def __init__(
        self,
        ledger: Ledger,
        pace: BlockPace,
        log: Log,
        now: Callable[[], float] = time.time,
        check_space: Callable[[], None] = lambda: None,
        *,
        remembers_all_refusals: bool = False,
    ) -> None:
        self.ledger = ledger
        self._check_space = check_space
        self._pace = pace
        self._log = log
        self._now = now
        self._mempool = Mempool(remembers_all=remembers_all_refusals)
        self._signers = Signers()  # so that building a block does not recover again what issuing has recovered
        self._wake = asyncio.Event()
        self._refusals: list[Refusal] = []  # final, and not stored yet

    # -- calls from workers ----------------------------------------------------------------------------------------

    async def issue(self, tx: str, encoding: str) -> bytes:
        """Return the transaction's ID once it is in the mempool. Final refusals are remembered."""
        try:
            parsed = parse_issue(tx, encoding)
        except TxRefused as refused:
            raise CallFailed(str(refused)) from refused
        self._check_space()
        try:
            issue(parsed, self._mempool, self.ledger.rules, self.ledger.state, int(self._now()), self._signers)
        except TxRefused as refused:
            self._remember([Refusal(parsed.txid, str(refused), refused.is_final)])
            raise CallFailed(str(refused)) from refused
        self._wake.set()
        return parsed.txid

    def state_of(self, txid: bytes) -> str:
        """Return the state of a transaction that is in no block; empty for an unknown one, which includes those whose
        refusal is not final."""
        if txid in self._mempool:
            return PROCESSING
        return REJECTED if self._mempool.refusal(txid) is not None else ""

    # -- accepting blocks ------------------------------------------------------------------------------------------

    async def run_forever(self) -> None:
        """Builds a block as soon as there are transactions, but not faster than `BlockPace` allows."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            began = time.monotonic()
            try:
                await self.accept_pending()
            except StoreError as error:  # a full disk: nothing was changed, the transactions are still there
                self._log.error("block could not be stored, retrying", error=str(error))
                await asyncio.sleep(_RETRY_S)
            if len(self._mempool):
                self._wake.set()
            await asyncio.sleep(max(0.0, self._pace.block_time_s - (time.monotonic() - began)))

    async def accept_pending(self) -> bool:
        """Build, commit and accept one block; whether there was one."""
        ledger, now_s = self.ledger, int(self._now())
        built = build(self._mempool, ledger.tip, ledger.rules, ledger.state, now_s, self._pace.txs_max, self._signers)
        self._remember(built.dropped)
        refusals, self._refusals = self._refusals, []
        try:
            if built.block is None:
                await self._store_refusals(refusals)
                return False
            self._check_space()
            container = self._wrapped(built.block)
            accepted = AcceptedBlock(built.block, container.container_id, container.raw, time.time_ns(), built.effects)
            conflicts = self._mempool.conflicts_with(built.block.txs)
            await ledger.commit([accepted], lambda tx: put_refusals(tx, ledger.at.chain, refusals + conflicts))
        except StoreError:
            self._refusals = refusals + self._refusals
            raise
        # what conflicted while the block was being stored
        self._remember(one for one in self._mempool.accepted(built.block.txs) if one not in conflicts)
        self._log.debug("block accepted", height=ledger.height, txs=len(built.block.txs))
        return True

    def _wrapped(self, block: Block) -> Container:
        """The container of a proposer without a key: unsigned, upon the parent's container and no older."""
        parent = self.ledger.container
        if parent is None:
            return pack_container(self.ledger.tip.block_id, block.time, 0, block.raw)
        when = max(block.time, parent.timestamp)
        return pack_container(parent.container_id, when, parent.p_chain_height, block.raw, epoch=next_epoch(parent))

    def _remember(self, refusals: Iterable[Refusal]) -> None:
        """Has the final ones stored with the next block, or by themselves."""
        final = [one for one in refusals if one.is_final]
        if final:
            self._refusals.extend(final)
            del self._refusals[:-REFUSALS_MAX]
            self._wake.set()

    async def _store_refusals(self, refusals: list[Refusal]) -> None:
        if refusals:
            await self.ledger.store.write(lambda tx: put_refusals(tx, self.ledger.at.chain, refusals))
