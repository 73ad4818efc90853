"""Makes batches of fetched blocks, ready to be stored: verified, linked, derived, with unknown values read from state.

Fetched blocks go to the decoder in chunks, which works ahead while a batch is resolved and stored. A chunk takes up to
three steps, because what a block becomes may depend on what its contracts are:

1. `decoder.verify` decodes and verifies it, in another process, and derives the blocks up to the first one that needs a
   lookup. Most need none where there are traces.
2. Here, in the process that may ask upstreams: `ContractCache` looks up code and token standards (state_lookups.py).
3. `decoder.derive` derives the rest with the result, in the same process as step 1, which holds the verified blocks. It
   stops early after a block whose changes of code only state can show, and steps 2 and 3 are repeated from there.

At last balances and code that no diff shows are read from state, block by block, and the batch goes to the store.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from icefall.evm.contract_calls import NewestStateSource, balance_of, balance_of_id, uint_of
from icefall.evm.indexing.decoder import BlockDecoder, BlockOutline, Rejection, VerifiedChunk
from icefall.evm.indexing.state_lookups import ContractCache, NativeBalances, resolve_code
from icefall.evm.indexing.token_layouts import NOTHING_CHANGED, TokenLayouts
from icefall.evm.model import ContractInfo, StoredRaw
from icefall.evm.packed import PackedBlock, ResolvedBlock
from icefall.evm.storing.batch import FoundLayout, ProbedStandards
from icefall.evm.storing.folding import NO_ID, Baselines, newly_held
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.upstream.evm.errors import NoState

# A batch ends with whichever comes first; at the tip a batch is what is there. A page of the store is written once per
# commit, however many of its rows are in the batch: where batches grow with the store, the cost of a row hardly does.
BATCH_TXS = (5_000, 40_000)
BATCH_PART = 5  # of the stored transactions, between those bounds
BATCH_BLOCKS = 8192
BATCH_BYTES = 16 << 20  # packed
BATCH_S = 5.0
CHUNK_BLOCKS = 512
CHUNK_BYTES = 384 << 10  # as fetched; with its last block it should fit into a pipe of a decoder
CHUNK_S = 1.0
UNDECODED_CHUNKS = 16  # fetched ahead of the decoder, or waiting in it for their second step
DECODED_CHUNKS = 128  # what the decoder may do meanwhile, while a batch is stored


_NAMES_BLOCK = "block "  # how a reason begins that says which block it is about


class InvalidBlock(Exception):
    """A fetched block failed verification. The message says which one, why, and which setting turns the check off."""

    def __init__(self, number: int, source: str, rejection: Rejection) -> None:
        reason = rejection.reason
        text = reason if reason.startswith(_NAMES_BLOCK) else f"{_NAMES_BLOCK}{number}: {reason}"
        if rejection.by_root:
            text += "; it is stored unproven with --verify-roots=false, or verify_roots = false in its [[chain]]"
        super().__init__(text)
        self.number, self.source = number, source


class UnlinkedBlock(InvalidBlock):
    """A fetched block is not the child of the one before: a reorganisation, or an upstream that contradicts itself."""


class BlockBatch(msgspec.Struct, frozen=True):
    """A batch of consecutive blocks, ready to be stored."""

    blocks: list[ResolvedBlock]
    probed: ProbedStandards
    baselines: Baselines
    layouts: list[FoundLayout]
    unverified: list[str]


class BatchMaker:
    """The maker of batches of one chain. Call `forget` whenever a batch was not stored."""

    def __init__(
        self,
        store: ChainStore,
        state: NewestStateSource,
        contracts: ContractCache,
        decoder: BlockDecoder,
        start_block: int,
        *,
        verify_roots: bool,
        raw: StoredRaw,
        has_webhooks: Callable[[], Awaitable[bool]] | None = None,
        layouts: TokenLayouts | None = None,
    ) -> None:
        """`has_webhooks` tells whether blocks that are decoded now will be matched with webhooks."""
        self._store = store
        self._state = state
        self._contracts = contracts
        self._native = NativeBalances(store.newest_native, state)
        self._decoder = decoder
        self._start_block = start_block
        self._layouts = layouts
        self._verify_roots = verify_roots
        self._raw = raw
        self._has_webhooks = has_webhooks

    def forget(self) -> None:
        self._contracts.forget()
        self._native.forget()
        if self._layouts is not None:
            self._layouts.forget()

    async def batches(
        self, blocks: AsyncIterator[FetchedBlock], parent: bytes | None, on_fetched: Callable[[FetchedBlock], None]
    ) -> AsyncGenerator[BlockBatch, None]:
        """Make batches of the blocks. Raises InvalidBlock where one fails verification or does not follow the one
        before it, or what ended the fetching: in any case after a batch of the blocks before it."""
        self._trim()
        tip = self._store.tip()
        stored_txs = tip.cumulative_txs if tip is not None else 0
        batch = _OpenBatch(stored_txs)
        fixed = self._contracts.fixed()
        ahead = _DecodeAhead(blocks, partial(self._verify, fixed), on_fetched)
        try:
            async for chunk in ahead.chunks():
                linked = _linked(chunk.verified.outlines, parent)
                await self._add(batch, chunk.verified, linked)
                failure = _failure(chunk, linked)
                if failure is not None:
                    if batch.blocks:
                        yield await self._finished(batch)
                    raise failure
                parent = linked[-1].block_hash
                if batch.is_full:
                    yield await self._finished(batch)
                    stored_txs += batch.txs
                    batch = _OpenBatch(stored_txs)
                    self._trim()
            if batch.blocks:
                yield await self._finished(batch)
            await ahead.finish()
        finally:
            await ahead.close()

    async def _verify(self, fixed: ContractInfo, blocks: list[FetchedBlock]) -> VerifiedChunk:
        raw = self._raw
        if self._has_webhooks is not None and await self._has_webhooks():
            raw = msgspec.structs.replace(raw, matched=True)
        return await self._decoder.verify(id(self), blocks, fixed, roots=self._verify_roots, raw=raw)

    def _trim(self) -> None:
        """Bound the memory between batches, when all that were made are stored."""
        self._contracts.trim()
        self._native.trim()
        if self._layouts is not None:
            self._layouts.trim()

    async def _add(self, batch: "_OpenBatch", verified: VerifiedChunk, outlines: list[BlockOutline]) -> None:
        """Derive a verified chunk and resolve it block by block."""
        batch.unverified.update(dict.fromkeys(verified.unverified))
        if not outlines:
            return
        fetched_code = await self._contracts.fetch_code(outlines)
        done, derived = 0, verified.derived[: len(outlines)]
        while done < len(outlines):
            if done or not derived:
                for outline in outlines[done:]:  # known ones cost nothing; a deployment makes one unknown again
                    batch.probed += await self._contracts.fetch_standards(outline)
                info = self._contracts.info_for(outlines[done:])
                derived = await self._decoder.derive(verified.ticket, range(done, len(outlines)), info)
            self._native.load(
                rows for rows, outline in zip(derived, outlines[done:], strict=False) if outline.has_diffs
            )
            layouts = self._layouts if all(one.has_diffs for one in outlines[done : done + len(derived)]) else None
            if layouts is not None:
                await layouts.prepare(derived)
            for rows, outline in zip(derived, outlines[done:], strict=False):  # it may stop early
                needed = sorted(outline.lookups.code & fetched_code.keys())
                earlier_code = tuple((address, fetched_code.pop(address)) for address in needed)
                code = await resolve_code(rows, self._state)
                self._contracts.update_code(code)
                self._contracts.forget_standards(rows.deployed)
                for address, _ in code:
                    fetched_code.pop(address, None)  # from here on the block's own row counts
                balances = await self._native.resolve(rows) if outline.has_diffs else ()
                advanced = NOTHING_CHANGED if layouts is None else await layouts.advance(rows)
                batch.layouts += advanced.layouts
                batch.add(rows.resolved(balances, code, earlier_code, advanced.slots, advanced.others))
            done += len(derived)
            await asyncio.sleep(0)  # fetching goes on

    async def _finished(self, batch: "_OpenBatch") -> BlockBatch:
        baselines = await self._baselines([one.rows for one in batch.blocks])
        if self._layouts is not None and self._start_block == 0:
            baselines = await self._layouts.baselines(batch.blocks)
        if self._layouts is not None:
            baselines = {**baselines, **await self._layouts.owners(batch.blocks)}
        return BlockBatch(batch.blocks, batch.probed, baselines, batch.layouts, list(batch.unverified))

    async def _baselines(self, rows: list[PackedBlock]) -> Baselines:
        """The balances of new holders right before an index that begins inside the chain. Where that state is pruned,
        those right before the batch: they are the same, for no log has named these holders since. Where that is pruned
        too they count as 0, and audits of newer blocks find the tokens of which that is wrong."""
        if self._start_block == 0:
            return {}
        held = self._store.not_held(sorted(newly_held(one.balance_changes() for one in rows)))
        if not held:
            return {}
        calls = [
            balance_of(token, holder) if token_id == NO_ID else balance_of_id(token, holder, token_id)
            for token, holder, token_id in held
        ]
        try:
            answers = await self._state.answers(calls, self._start_block - 1)
        except NoState:
            try:
                answers = await self._state.answers(calls, rows[0].block.parent_hash)
            except NoState:
                return {}
        return {key: uint_of(answer) or 0 for key, answer in zip(held, answers, strict=True)}


def batch_txs(stored: int) -> int:
    """The most transactions in a batch, with so many stored."""
    return min(max(stored // BATCH_PART, BATCH_TXS[0]), BATCH_TXS[1])


def _linked(outlines: list[BlockOutline], parent: bytes | None) -> list[BlockOutline]:
    """The first blocks, as many as follow one another from `parent` on."""
    for index, outline in enumerate(outlines):
        if parent is not None and outline.parent_hash != parent:
            return outlines[:index]
        parent = outline.block_hash
    return outlines


def _failure(chunk: "_DecodedChunk", linked: list[BlockOutline]) -> InvalidBlock | None:
    """The error of the block after the linked ones, if there is one."""
    index, outlines, rejected = len(linked), chunk.verified.outlines, chunk.verified.rejected
    if index < len(outlines):
        reason = f"its parent 0x{outlines[index].parent_hash.hex()} is not the block before it"
        return UnlinkedBlock(*chunk.origins[index], Rejection(index, reason, by_root=False))
    return InvalidBlock(*chunk.origins[rejected.index], rejected) if rejected is not None else None


class _OpenBatch:
    """A batch that is being filled."""

    def __init__(self, stored_txs: int) -> None:
        self.blocks: list[ResolvedBlock] = []
        self.probed: list[tuple[bytes, int, str]] = []
        self.layouts: list[FoundLayout] = []
        self.unverified: dict[str, None] = {}
        self.txs = 0
        self._txs_max = batch_txs(stored_txs)
        self._size = 0
        self._ends = _now() + BATCH_S

    def add(self, block: ResolvedBlock) -> None:
        self.blocks.append(block)
        self.txs += block.rows.block.tx_count
        self._size += block.rows.size

    @property
    def is_full(self) -> bool:
        has_many = len(self.blocks) >= BATCH_BLOCKS or self.txs >= self._txs_max or self._size >= BATCH_BYTES
        return has_many or _now() >= self._ends


def _now() -> float:
    return asyncio.get_running_loop().time()


class _DecodedChunk(msgspec.Struct, frozen=True):
    """A chunk of blocks without what was fetched of them. `origins`: the number of each, and the upstream's name."""

    origins: list[tuple[int, str]]
    verified: VerifiedChunk

    @property
    def is_derived(self) -> bool:
        """Tell whether the decoder is done with it."""
        return len(self.verified.derived) == len(self.origins)


class _DecodeAhead:
    """The reader of fetched blocks: it gives them to the decoder some chunks ahead of the one that is being
    resolved."""

    def __init__(
        self,
        blocks: AsyncIterator[FetchedBlock],
        verify: Callable[[list[FetchedBlock]], Coroutine[Any, Any, VerifiedChunk]],
        on_fetched: Callable[[FetchedBlock], None],
    ) -> None:
        self._blocks = blocks
        self._verify = verify
        self._on_fetched = on_fetched
        self._undecoded = asyncio.Semaphore(UNDECODED_CHUNKS)
        self._queue: asyncio.Queue[asyncio.Task[_DecodedChunk] | None] = asyncio.Queue(DECODED_CHUNKS)
        self._reading = asyncio.create_task(self._read())

    async def chunks(self) -> AsyncIterator[_DecodedChunk]:
        while (taken := await self._queue.get()) is not None:
            chunk = await taken
            yield chunk
            if not chunk.is_derived:
                self._undecoded.release()

    async def finish(self) -> None:
        """Raise what ended the fetching, if something did."""
        await self._reading

    async def _read(self) -> None:
        chunk: list[FetchedBlock] = []
        size, began = 0, 0.0
        failure: Exception | None = None  # raised after the blocks before it; a cancellation ends at once
        try:
            async for block in self._blocks:
                self._on_fetched(block)
                began = began if chunk else _now()
                chunk.append(block)
                size += block.size
                full = len(chunk) >= min(CHUNK_BLOCKS, BATCH_BLOCKS) or size >= CHUNK_BYTES
                if full or _now() - began >= CHUNK_S:
                    await self._submit(chunk)
                    chunk, size = [], 0
        except Exception as error:
            failure = error
        if chunk:
            await self._submit(chunk)
        await self._queue.put(None)
        if failure is not None:
            raise failure

    async def _submit(self, chunk: list[FetchedBlock]) -> None:
        await self._undecoded.acquire()
        decoding = asyncio.create_task(self._decoded(chunk))
        try:
            await self._queue.put(decoding)
        except asyncio.CancelledError:
            decoding.cancel()
            raise

    async def _decoded(self, chunk: list[FetchedBlock]) -> _DecodedChunk:
        decoded = _DecodedChunk([(block.number, block.source) for block in chunk], await self._verify(chunk))
        if decoded.is_derived:
            self._undecoded.release()
        return decoded

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        while not self._queue.empty():
            taken = self._queue.get_nowait()
            if taken is not None:
                taken.cancel()
                await asyncio.gather(taken, return_exceptions=True)
