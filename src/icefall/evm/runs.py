"""From fetched blocks to settled runs: decoded, proven, linked, derived, with nothing left open."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import msgspec

from icefall.evm.derive import derive
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
        gathered: list[FetchedBlock] = []
        decoded: list[FullBlock] = []
        async for block in blocks:
            arrived(block)
            full = _decoded(block)
            if parent is not None and full.block.parent_hash != parent:
                if decoded:
                    yield await self._settled(gathered, decoded)
                raise Detached(f"block {block.number} does not follow the one before")
            parent = full.block.block_hash
            gathered.append(block)
            decoded.append(full)
            if len(gathered) >= RUN_BLOCKS or sum(one.size for one in gathered) >= RUN_BYTES:
                yield await self._settled(gathered, decoded)
                gathered, decoded = [], []
        if decoded:
            yield await self._settled(gathered, decoded)

    async def _settled(self, gathered: list[FetchedBlock], decoded: list[FullBlock]) -> Run:
        proof = asyncio.ensure_future(self._prover.prove(gathered))
        try:
            run = await self._derived(decoded)
            return msgspec.structs.replace(run, unproven=await _proven(proof, gathered, self._prover))
        finally:
            proof.cancel()

    async def _derived(self, decoded: list[FullBlock]) -> Run:
        asked_code = await self._facts.ask_code(decoded)
        native = NativeSettling(self._store.newest_native, self._state)
        settled: list[SettledBlock] = []
        kinds: list[tuple[bytes, int, str]] = []
        for full in decoded:
            facts, asked = await self._facts.of(full)
            kinds += asked
            rows = derive(full, facts)
            code = await settled_code(rows, self._state)
            self._facts.learn(code)
            balances = await native.settle(rows) if full.diffs is not None else ()
            settled.append(SettledBlock(rows, balances, code, () if settled else tuple(asked_code.items())))
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
        return decode_full(block.block, block.receipts, block.calls, block.diffs)
    except WireError as error:
        raise Lie(block, str(error)) from error


async def _proven(proof: Awaitable[list[str]], blocks: list[FetchedBlock], prover: Prover) -> list[str]:
    """Of many blocks the one that lies is looked for only when one does."""
    try:
        return await proof
    except WireError:
        pass
    for block in blocks:
        try:
            await prover.prove([block])
        except WireError as error:
            raise Lie(block, str(error)) from error
    return []
