"""From fetched blocks to settled runs: proven, linked, derived, with nothing left open.

Batches go to the workshop as they come in, and it works ahead while a run is settled and stored.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import msgspec

from icefall.evm.auditing.token_calls import balance_of, balance_of_id, uint_of
from icefall.evm.following.contracts import ContractCache
from icefall.evm.following.decoder import BlockDecoder, BlockOutline, VerifiedBatch
from icefall.evm.following.settling import NativeBalances, SettledBlock, StateSource, settled_code
from icefall.evm.model import BlockRows
from icefall.evm.storing.folding import NO_ID, Baselines, newly_held
from icefall.evm.storing.store import ChainStore
from icefall.upstream.evm.parts import FetchedBlock
from icefall.wire.evm.types import ParentMismatch

RUN_BLOCKS = 512
RUN_BYTES = 16 << 20  # as fetched; rows that share pages are written once, so more at once costs less
BATCH_BYTES = 512 << 10
BATCHES_AHEAD = 8


class InvalidBlock(Exception):
    """A fetched block is not what it claims to be."""

    def __init__(self, block: FetchedBlock, why: str) -> None:
        super().__init__(why)
        self.block = block


class BlockBatch(msgspec.Struct, frozen=True):
    """Ready to be stored."""

    blocks: list[SettledBlock]
    kinds: list[tuple[bytes, int, str]]
    baselines: Baselines
    unproven: list[str]


class BatchMaker:
    """Of one chain. After anything but a stored run, begin again with `forget`."""

    def __init__(
        self, store: ChainStore, state: StateSource, facts: ContractCache, workshop: BlockDecoder, start_block: int
    ) -> None:
        self._store = store
        self._state = state
        self._facts = facts
        self._workshop = workshop
        self._start_block = start_block

    def forget(self) -> None:
        self._facts.forget()

    async def runs(
        self, blocks: AsyncIterator[FetchedBlock], parent: bytes | None, arrived: Callable[[FetchedBlock], None]
    ) -> AsyncGenerator[BlockBatch, None]:
        """Detached where the chain turned out to be another one than the stored; Lie where a block is none."""
        run = _OpenBatch(self._store, self._state)
        ahead = _DecodeAhead(id(self), blocks, self._workshop, arrived)
        try:
            async for batch, proven in ahead.batches():
                if proven.lie is not None:
                    raise InvalidBlock(batch[proven.lie[0]], proven.lie[1])
                linked = _linked(proven.sketches, parent)
                await self._add(run, proven, linked)
                run.size += sum(block.size for block in batch)
                if len(linked) < len(proven.sketches):
                    if run.blocks:
                        yield await self._finished(run)
                    raise ParentMismatch(f"block {proven.sketches[len(linked)].number} does not follow the one before")
                parent = linked[-1].block_hash
                if run.is_full:
                    yield await self._finished(run)
                    run = _OpenBatch(self._store, self._state)
                    self._facts.trim()
            if run.blocks:
                yield await self._finished(run)
        finally:
            await ahead.close()

    async def _add(self, run: "_OpenBatch", proven: VerifiedBatch, sketches: list[BlockOutline]) -> None:
        """A proven batch, derived and settled block by block."""
        run.unproven.update(dict.fromkeys(proven.unproven))
        if not sketches:
            return
        asked_code = await self._facts.ask_code(sketches)
        for sketch in sketches:
            run.kinds += await self._facts.ask_kinds(sketch)
        done = 0
        while done < len(sketches):
            facts = self._facts.of(sketches[done:])
            derived = await self._workshop.derive(proven.ticket, range(done, len(sketches)), facts)
            for rows, sketch in zip(derived, sketches[done:], strict=False):  # it may stop early
                wanted = sorted(sketch.questions.code & asked_code.keys())
                had = tuple((address, asked_code.pop(address)) for address in wanted)
                code = await settled_code(rows, self._state)
                self._facts.learn(code)
                for address, _ in code:
                    asked_code.pop(address, None)  # from here on its own row tells
                balances = await run.native.settle(rows) if sketch.has_diffs else ()
                run.blocks.append(SettledBlock(rows, balances, code, had))
            done += len(derived)
            await asyncio.sleep(0)  # fetching goes on

    async def _finished(self, run: "_OpenBatch") -> BlockBatch:
        baselines = await self._baselines([one.rows for one in run.blocks])
        return BlockBatch(run.blocks, run.kinds, baselines, list(run.unproven))

    async def _baselines(self, rows: list[BlockRows]) -> Baselines:
        """What holders had before an index that begins inside the chain."""
        if self._start_block == 0:
            return {}
        held = sorted(newly_held(rows))
        calls = [
            balance_of(token, holder) if token_id == NO_ID else balance_of_id(token, holder, token_id)
            for token, holder, token_id in held
        ]
        answers = await self._state.answers(calls, self._start_block - 1) if calls else []
        return {key: uint_of(answer) or 0 for key, answer in zip(held, answers, strict=True)}


def _linked(sketches: list[BlockOutline], parent: bytes | None) -> list[BlockOutline]:
    """As many as follow one another, from `parent` on."""
    for place, sketch in enumerate(sketches):
        if parent is not None and sketch.parent_hash != parent:
            return sketches[:place]
        parent = sketch.block_hash
    return sketches


class _OpenBatch:
    """A run in the making."""

    def __init__(self, store: ChainStore, state: StateSource) -> None:
        self.blocks: list[SettledBlock] = []
        self.kinds: list[tuple[bytes, int, str]] = []
        self.unproven: dict[str, None] = {}
        self.native = NativeBalances(store.newest_native, state)
        self.size = 0

    @property
    def is_full(self) -> bool:
        return len(self.blocks) >= RUN_BLOCKS or self.size >= RUN_BYTES


class _DecodeAhead:
    """Fetched blocks in batches, given to the workshop some batches ahead of whoever takes them."""

    def __init__(
        self,
        chain: int,
        blocks: AsyncIterator[FetchedBlock],
        workshop: BlockDecoder,
        arrived: Callable[[FetchedBlock], None],
    ) -> None:
        self._chain = chain
        self._blocks = blocks
        self._workshop = workshop
        self._arrived = arrived
        self._queue: asyncio.Queue[tuple[list[FetchedBlock], asyncio.Future[VerifiedBatch]] | None] = asyncio.Queue(
            BATCHES_AHEAD
        )
        self._reading = asyncio.create_task(self._read())

    async def batches(self) -> AsyncIterator[tuple[list[FetchedBlock], VerifiedBatch]]:
        while (taken := await self._queue.get()) is not None:
            batch, proof = taken
            yield batch, await proof
        await self._reading  # what ended the fetching, if something did

    async def _read(self) -> None:
        batch: list[FetchedBlock] = []
        failure: Exception | None = None  # told after what came before it; to be cancelled is to end at once
        try:
            async for block in self._blocks:
                self._arrived(block)
                batch.append(block)
                if len(batch) >= RUN_BLOCKS or sum(one.size for one in batch) >= BATCH_BYTES:
                    await self._submit(batch)
                    batch = []
        except Exception as error:
            failure = error
        if batch:
            await self._submit(batch)
        await self._queue.put(None)
        if failure is not None:
            raise failure

    async def _submit(self, batch: list[FetchedBlock]) -> None:
        await self._queue.put((batch, asyncio.ensure_future(self._workshop.prove(self._chain, batch))))

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        while not self._queue.empty():
            taken = self._queue.get_nowait()
            if taken is not None:
                taken[1].cancel()
                await asyncio.gather(taken[1], return_exceptions=True)
