"""The processes that decode blocks, as the process that fetches and stores them sees them."""

import asyncio
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

import msgspec

from icefall.evm.following.decoder import (
    DecoderDied,
    RawChunk,
    Ticket,
    VerifiedChunk,
    decode_raw,
    derive_here,
    parts_of,
    prepare_process,
    verify_here,
)
from icefall.evm.model import ContractInfo, RawKinds
from icefall.evm.packed import PackedBlock, from_bytes
from icefall.upstream.evm.block_parts import FetchedBlock

T = TypeVar("T")
_PROCESSES_MAX = 4  # by default; one writer can store what about as many decode


def default_processes() -> int:
    """One core is left for fetching and storing."""
    return max(1, min((os.cpu_count() or 1) - 1, _PROCESSES_MAX))


class ProcessBlockDecoder:
    """Decodes in other processes, one chunk after the other in each. One that died is replaced at the next call."""

    def __init__(self, processes: int = 1) -> None:
        self._processes = [_DecoderProcess() for _ in range(processes)]
        self._tickets = itertools.count()

    async def verify(
        self, chain: int, blocks: Sequence[FetchedBlock], fixed: ContractInfo, *, roots: bool, kept: RawKinds
    ) -> VerifiedChunk:
        ticket = chain, next(self._tickets)
        chunk, derived = await self._of(ticket).run(verify_here, ticket, parts_of(blocks), roots, kept, fixed)
        return msgspec.structs.replace(chunk, derived=from_bytes(derived))

    async def derive(self, ticket: Ticket, indices: range, info: ContractInfo) -> list[PackedBlock]:
        return from_bytes(await self._of(ticket).run(derive_here, ticket, indices, info))

    async def raw(self, blocks: Sequence[FetchedBlock], *, roots: bool, kept: RawKinds) -> RawChunk:
        process = self._processes[next(self._tickets) % len(self._processes)]
        return await process.run(decode_raw, parts_of(blocks), roots, kept)

    def _of(self, ticket: Ticket) -> "_DecoderProcess":
        """The same for both steps of a chunk: it holds the verified blocks in between."""
        return self._processes[ticket[1] % len(self._processes)]

    def close(self) -> None:
        for process in self._processes:
            process.close()


class _DecoderProcess:
    """Started by its first call."""

    def __init__(self) -> None:
        self._pool: Executor | None = None

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=prepare_process)
        pool = self._pool
        try:
            # The first call starts the process, which inherits the mask: a ^C in the terminal is ours to act on.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                running = asyncio.get_running_loop().run_in_executor(pool, work, *args)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return await running
        except BrokenProcessPool as died:
            if pool is self._pool:  # it may have been replaced since
                self.close()
            raise DecoderDied("the process that decodes blocks has died") from died

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
