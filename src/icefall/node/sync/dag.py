"""X's DAG from before block 0, if there was one: its transactions, read from an upstream's X/tx index and executed.

Nodes accepted them in different orders, each after what it spends. So numbers are valid for one upstream only, and from
another one we accept what we do not have yet. The DAG ends where the first transaction of block 1 is in X/tx (an
Icefall's index continues with those of blocks), or where X/tx ends (a node's contains nothing else).
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from icefall.db.engine import StoreError
from icefall.node.sync.follower import POLL_S, RangeFetcher, handle_failure
from icefall.node.sync.foreign import ImportWaiter, has_bootstrapped
from icefall.node.sync.upstreams import NodeUpstreams, Progress, progress_of
from icefall.node.sync.verify import (
    ChainLinks,
    ChainPosition,
    ChainStopped,
    ContainerRejected,
    ImportPending,
    InvalidContainer,
    MissingTransaction,
    UnknownContainer,
    verify,
)
from icefall.observe.counters import Rate
from icefall.observe.log import Log
from icefall.upstream.client import UpstreamError, UpstreamFailure
from icefall.upstream.node import RANGE_MAX, FetchedContainer, IndexOff, UpstreamNode
from icefall.wire.avm.codec import unpack_block, unpack_tx
from icefall.wire.avm.types import Tx
from icefall.wire.errors import WireError
from icefall.wire.ids import hash256, id_text
from icefall.wire.text import cb58

ADVICE = (
    "this network's X-Chain had a DAG before its block 0, whose transactions its blocks build upon. They are read from "
    "/ext/index/X/tx of an upstream that has run with --index-enabled=true from its first start on: name one with "
    "--upstream and start again. P and C are followed"
)


class IncompleteTxIndex(Exception):
    """An upstream whose X/tx index lacks transactions from before the blocks. It can still be used for P and C."""


class DagChain(Protocol):
    """X before its block 1."""

    name: str

    @property
    def count(self) -> int:
        """Blocks accepted after block 0."""
        ...

    @property
    def last_block_id(self) -> bytes: ...

    @property
    def tx_count(self) -> int:
        """Transactions accepted since the genesis."""
        ...

    @property
    def last_txid(self) -> bytes:
        """The ID of the last stored transaction, if there is any."""
        ...

    def has_tx(self, txid: bytes) -> bool: ...

    async def accept_txs(self, txs: Sequence[Tx]) -> None:
        """Commit a batch in one transaction.

        ContainerRejected: one breaks a rule. ImportPending: an import waits for an export. MissingTransaction: one
        before it is missing. Then only the transactions before it are stored, as `tx_count` shows.
        """
        ...


def verify_txs(start: int, batch: Sequence[FetchedContainer], first_in_block: bytes | None) -> list[Tx]:
    """Transactions of X/tx from `start` on, each under its number and its ID, none of them from a block."""
    found = []
    for number, fetched in enumerate(batch, start):
        what = f"X/tx container {number}"
        if fetched.number != number:
            raise InvalidContainer(f"X/tx: expected container {number}, got {fetched.number}: the index has a gap")
        txid = hash256(fetched.raw)
        if cb58.encode(txid) != fetched.id_text:
            raise InvalidContainer(
                f"{what} is labelled {fetched.id_text[:80]}, but its bytes are those of {id_text(txid)}"
            )
        if txid == first_in_block:
            raise InvalidContainer(f"{what} is of block 1, whose first transaction should be at another number")
        try:
            found.append(unpack_tx(fetched.raw))
        except WireError as error:
            raise InvalidContainer(f"{what} holds no transaction: {error}") from error
    return found


class DagFollower:
    """`run` ends when all that came before the blocks has been accepted. It may be cancelled at any time."""

    def __init__(
        self,
        chain: DagChain,
        links: ChainLinks,
        upstreams: NodeUpstreams,
        imports: ImportWaiter,
        log: Log,
        *,
        poll_s: float = POLL_S,
        run_max: int = RANGE_MAX,
    ) -> None:
        self.is_complete = chain.count > 0
        self.unfit: dict[UpstreamNode, str] = {}
        self._chain = chain
        self._links = links
        self._upstreams = upstreams
        self._imports = imports
        self._log = log
        self._clock = upstreams.clock
        self._poll_s = poll_s
        self._runs = RangeFetcher(chain.name, run_max, "tx")
        self._length: int | None = None
        self._rate = Rate(self._clock.now(), chain.tx_count)

    @property
    def waiting(self) -> str | None:
        return self._imports.waiting

    @property
    def progress(self) -> Progress:
        """The progress in transactions."""
        done = self._chain.tx_count
        return progress_of(done, self._length, self._rate.per_second(self._clock.now(), done))

    async def run(self) -> None:
        node: UpstreamNode | None = None
        move_on = False
        while not self.is_complete:
            node = await self._upstreams.pick(node, move_on=move_on)
            move_on = await self._turn(node)
            if self.unfit and not any(self._may_help(other) for other in self._upstreams.members):
                raise ChainStopped("; ".join([*self.unfit.values(), *self._upstreams.disabled().values(), ADVICE]))

    def _may_help(self, node: UpstreamNode) -> bool:
        return self.is_complete or not (node in self.unfit or self._upstreams.is_disabled(node))

    async def _turn(self, node: UpstreamNode) -> bool:
        """Accept what `node` has for us. True if another upstream should be used next."""
        try:
            if node not in self.unfit:
                self.is_complete = await self._advance(node)
                self._upstreams.mark_ok(node)
                self._runs.failures = 0
        except IncompleteTxIndex as unfit:
            self.unfit[node] = f"{node.name}: {unfit}"
            self._log.warn("upstream has no complete DAG", upstream=node.name, error=str(unfit))
            return True
        except (InvalidContainer, UpstreamFailure, StoreError) as failure:
            return await handle_failure(failure, node, self._upstreams, self._runs, self._log, "transactions")
        if self.is_complete:
            self._log.info("DAG complete", upstream=node.name, txs=self._chain.tx_count)
        else:
            await self._clock.sleep(self._poll_s)
        return True

    # -- one upstream --------------------------------------------------------------------------------------------

    async def _advance(self, node: UpstreamNode) -> bool:
        """Accept all that `node` has from before the blocks. True if the DAG is complete."""
        first_in_block = await self._first_in_block(node)
        length = await self._length_of(node, first_in_block)
        if length is None:
            return False
        self._length = max(length, self._length or 0)
        await self._take(node, await self._start(node, length), length, first_in_block)
        if self._chain.tx_count < length:
            raise InvalidContainer(f"its X/tx index of {length} transactions before block 1 names some of them twice")
        if self._chain.tx_count > length:
            raise IncompleteTxIndex(
                f"its X/tx index holds {length} of at least {self._chain.tx_count} transactions before block 1"
            )
        return not await self._is_longer_elsewhere(node)

    async def _first_in_block(self, node: UpstreamNode) -> bytes | None:
        """The first transaction of block 1; None while there is no such block."""
        if await node.last_accepted(self._chain.name) is None:
            return None
        block_0_id = self._chain.last_block_id
        fetched = await node.container(self._chain.name, 0)
        try:
            run, _ = verify(self._links, ChainPosition(0, block_0_id, block_0_id), [fetched])
            txs = unpack_block(run[0].inner).txs
        except (UnknownContainer, WireError) as error:
            raise InvalidContainer(f"X container 0 holds no block: {error}") from error
        if not txs:
            raise InvalidContainer("X container 0 holds a block without transactions")
        return txs[0].txid

    async def _length_of(self, node: UpstreamNode, first_in_block: bytes | None) -> int | None:
        """How many transactions its X/tx holds before those of blocks; None while it is bootstrapping itself."""
        if first_in_block is None and not await has_bootstrapped(node, self._chain.name):
            return None
        try:
            tip = await node.last_accepted(self._chain.name, "tx")
        except IndexOff as off:
            raise IncompleteTxIndex(str(off)) from off
        if tip is None:
            raise IncompleteTxIndex("its X/tx index is empty")
        if first_in_block is None:
            began = await node.last_accepted(self._chain.name) is not None  # then the tip may be of a block
            return None if began else tip.number + 1
        number = await node.number_of(self._chain.name, first_in_block, "tx")
        if number == 0:
            raise IncompleteTxIndex("its X/tx index begins with block 1")
        return tip.number + 1 if number is None else number

    async def _start(self, node: UpstreamNode, length: int) -> int:
        """Find where to continue in the upstream's index: after our last one if it has the same number there, else at
        the beginning."""
        count = self._chain.tx_count
        if not 0 < count <= length:
            return 0
        theirs = await node.container(self._chain.name, count - 1, "tx")
        return count if theirs.id_text == id_text(self._chain.last_txid) else 0

    async def _take(self, node: UpstreamNode, start: int, length: int, first_in_block: bytes | None) -> None:
        if start >= length:
            return
        fetch = self._runs.begin(node, start, length - 1)
        try:
            while True:
                txs = verify_txs(start, await fetch, first_in_block)
                start += len(txs)
                if start < length:
                    fetch = self._runs.begin(node, start, length - 1)
                await self._commit(node, [tx for tx in txs if not self._chain.has_tx(tx.txid)])
                if start >= length:
                    return
        finally:
            fetch.cancel()
            await asyncio.gather(fetch, return_exceptions=True)

    async def _commit(self, node: UpstreamNode, txs: Sequence[Tx]) -> None:
        """Store a batch. An import may wait once for the other chains; if its export is missing then, it is invalid."""
        waited = False
        end = self._chain.tx_count + len(txs)
        while self._chain.tx_count < end:
            self._upstreams.require(node)
            rest = txs[len(txs) - (end - self._chain.tx_count) :]
            try:
                await self._chain.accept_txs(rest)
            except MissingTransaction as incomplete:
                raise IncompleteTxIndex(f"its X/tx index is not complete: {incomplete}") from incomplete
            except ContainerRejected as refused:
                failed = txs[len(txs) - (end - self._chain.tx_count)]
                raise InvalidContainer(
                    f"X transaction {id_text(failed.txid)} breaks the chain's rules: {refused}"
                ) from refused
            except ImportPending as not_yet:
                if waited:
                    raise InvalidContainer(str(not_yet)) from not_yet
                await self._imports.wait(node, str(not_yet))
                waited = True
            finally:
                self._rate.note(self._clock.now(), self._chain.tx_count)

    # -- other upstreams -----------------------------------------------------------------------------------------

    async def _is_longer_elsewhere(self, node: UpstreamNode) -> bool:
        """Whether another upstream has more. One that lags, is down or keeps no index is skipped."""
        for other in self._upstreams.others(node):
            if other in self.unfit:
                continue
            try:
                length = await self._length_of(other, await self._first_in_block(other))
            except (IncompleteTxIndex, UpstreamError):
                continue
            except InvalidContainer as invalid:
                self._upstreams.disable(other, str(invalid))
                continue
            except UpstreamFailure as failure:
                self._upstreams.back_off(other, failure)
                continue
            if length is not None and length > self._chain.tx_count:
                return True
        return False
