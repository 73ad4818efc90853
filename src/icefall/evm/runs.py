"""From fetched blocks to settled runs: decoded, proven, linked, derived, with nothing left open."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import msgspec

from icefall.evm.derive import derive, questions
from icefall.evm.facts import FactBook
from icefall.evm.folding import NO_ID, Baselines, newly_held
from icefall.evm.model import BlockRows
from icefall.evm.proving import Prover
from icefall.evm.settling import NativeSettling, SettledBlock, StateSource, settled_code
from icefall.evm.store import ChainStore
from icefall.evm.token_calls import balance_of, balance_of_id, uint_of
from icefall.upstream.evm_parts import FetchedBlock
from icefall.wire.errors import WireError
from icefall.wire.evm import decode_full
from icefall.wire.evm_types import Detached, FullBlock

RUN_BLOCKS = 256
RUN_BYTES = 4 << 20  # as fetched; in memory it is a multiple
PROOF_BYTES = 512 << 10


class Lie(Exception):
    """A fetched block is not what it claims to be."""

    def __init__(self, block: FetchedBlock, why: str) -> None:
        super().__init__(why)
        self.block = block


class Run(msgspec.Struct, frozen=True):
    """Ready to be stored."""

    blocks: list[SettledBlock]
    kinds: list[tuple[bytes, int, str]]
    baselines: Baselines
    unproven: list[str]


class RunMaker:
    """Of one chain. After anything but a stored run, begin again with `forget`."""

    def __init__(
        self, store: ChainStore, state: StateSource, facts: FactBook, prover: Prover, start_block: int
    ) -> None:
        self._store = store
        self._state = state
        self._facts = facts
        self._prover = prover
        self._start_block = start_block

    def forget(self) -> None:
        self._facts.forget()

    async def runs(
        self, blocks: AsyncIterator[FetchedBlock], parent: bytes | None, arrived: Callable[[FetchedBlock], None]
    ) -> AsyncGenerator[Run, None]:
        """Detached where the chain turned out to be another one than the stored; Lie where a block is none."""
        gathering = _Gathering(self._prover)
        try:
            async for block in blocks:
                arrived(block)
                full = _decoded(block)
                if parent is not None and full.block.parent_hash != parent:
                    if gathering.blocks:
                        yield await self._settled(gathering)
                    raise Detached(f"block {block.number} does not follow the one before")
                parent = full.block.block_hash
                gathering.add(block, full)
                if gathering.is_full:
                    yield await self._settled(gathering)
                    gathering = _Gathering(self._prover)
            if gathering.blocks:
                yield await self._settled(gathering)
        finally:
            gathering.abandon()

    async def _settled(self, gathering: "_Gathering") -> Run:
        run = await self._derived(gathering.decoded)
        return msgspec.structs.replace(run, unproven=await gathering.proven())

    async def _derived(self, decoded: list[FullBlock]) -> Run:
        asked_code = await self._facts.ask_code(decoded)
        native = NativeSettling(self._store.newest_native, self._state)
        settled: list[SettledBlock] = []
        kinds: list[tuple[bytes, int, str]] = []
        for full in decoded:
            had = {address: asked_code.pop(address) for address in sorted(questions(full).code & asked_code.keys())}
            facts, asked = await self._facts.of(full)
            kinds += asked
            rows = derive(full, facts)
            code = await settled_code(rows, self._state)
            self._facts.learn(code)
            for address, _ in code:
                asked_code.pop(address, None)  # from here on its own row tells
            balances = await native.settle(rows) if full.diffs is not None else ()
            settled.append(SettledBlock(rows, balances, code, tuple(had.items())))
            await asyncio.sleep(0)  # fetching goes on
        return Run(settled, kinds, await self._baselines([one.rows for one in settled]), [])

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


def _decoded(block: FetchedBlock) -> FullBlock:
    try:
        return decode_full(block.block, block.receipts, block.calls, block.diffs, block.calls_by, block.diffs_by)
    except WireError as error:
        raise Lie(block, str(error)) from error


class _Gathering:
    """A run in the making. Proofs begin as blocks come in, a few at a time."""

    def __init__(self, prover: Prover) -> None:
        self.blocks: list[FetchedBlock] = []
        self.decoded: list[FullBlock] = []
        self._prover = prover
        self._proofs: list[tuple[int, asyncio.Future[list[str]]]] = []  # with the block each begins at
        self._size = 0
        self._unproven_size = 0
        self._counts: list[int] = []

    def add(self, block: FetchedBlock, full: FullBlock) -> None:
        self.blocks.append(block)
        self.decoded.append(full)
        self._size += block.size
        self._unproven_size += block.size
        if self._unproven_size >= PROOF_BYTES:
            self._prove()

    @property
    def is_full(self) -> bool:
        return len(self.blocks) >= RUN_BLOCKS or self._size >= RUN_BYTES

    def _prove(self) -> None:
        start = sum(self._counts)
        if start < len(self.blocks):
            proof = self._prover.prove(self.blocks[start:], self.decoded[start:])
            self._proofs.append((start, asyncio.ensure_future(proof)))
            self._counts.append(len(self.blocks) - start)
        self._unproven_size = 0

    async def proven(self) -> list[str]:
        """What could not be; of many blocks the one that lies is looked for only when one does."""
        self._prove()
        problems: dict[str, None] = {}
        for start, proof in self._proofs:
            try:
                problems.update(dict.fromkeys(await proof))
            except WireError:
                await self._find_lie(start)
        return list(problems)

    async def _find_lie(self, start: int) -> None:
        for block, full in zip(self.blocks[start:], self.decoded[start:], strict=True):
            try:
                await self._prover.prove([block], [full])
            except WireError as error:
                raise Lie(block, str(error)) from error

    def abandon(self) -> None:
        for _, proof in self._proofs:
            proof.cancel()
