"""The proof that a block is what its hash says, run beside everything else: most of the work, and it shares nothing."""

import asyncio
import multiprocessing
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

from icefall.upstream.evm_parts import FetchedBlock
from icefall.wire.evm import decode_full
from icefall.wire.evm_verify import verify_full


class Prover(Protocol):
    """Proves blocks; EvmLie where one is not what it claims. What could not be proven comes back in words."""

    async def prove(self, blocks: list[FetchedBlock]) -> list[str]: ...

    def close(self) -> None: ...


def _prove(parts: list[tuple[bytes, bytes, bytes | None, bytes | None]], roots: bool) -> list[str]:
    problems: dict[str, None] = {}
    for part in parts:
        problems.update(dict.fromkeys(verify_full(decode_full(*part), None, roots=roots)))
    return list(problems)


def _parts(blocks: list[FetchedBlock]) -> list[tuple[bytes, bytes, bytes | None, bytes | None]]:
    return [(one.block, one.receipts, one.calls, one.diffs) for one in blocks]


class InlineProver:
    """On this core."""

    def __init__(self, *, roots: bool) -> None:
        self._roots = roots

    async def prove(self, blocks: list[FetchedBlock]) -> list[str]:
        return _prove(_parts(blocks), self._roots)

    def close(self) -> None:
        pass


class BesideProver:
    """On another core. A prover process that dies is replaced: a proof has no memory."""

    def __init__(self, *, roots: bool) -> None:
        self._roots = roots
        self._pool: Executor | None = None

    async def prove(self, blocks: list[FetchedBlock]) -> list[str]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, _prove, _parts(blocks), self._roots)
        except BrokenProcessPool:
            self.close()
            return await InlineProver(roots=self._roots).prove(blocks)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
