"""The proof that a block is what its hash says, run beside everything else: most of the work, and it shares nothing."""

import asyncio
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

from icefall.upstream.evm_parts import FetchedBlock
from icefall.wire.evm import decode_full
from icefall.wire.evm_types import FullBlock
from icefall.wire.evm_verify import verify_full

_Parts = tuple[bytes, bytes, bytes | None, bytes | None, str, str]  # as decode_full takes them


class Prover(Protocol):
    """Proves blocks; EvmLie where one is not what it claims. What could not be proven comes back in words."""

    async def prove(self, blocks: Sequence[FetchedBlock], decoded: Sequence[FullBlock]) -> list[str]: ...

    def close(self) -> None: ...


def _proven(decoded: Sequence[FullBlock], roots: bool) -> list[str]:
    problems: dict[str, None] = {}
    for full in decoded:
        problems.update(dict.fromkeys(verify_full(full, None, roots=roots)))
    return list(problems)


def _decoded_and_proven(parts: Sequence[_Parts], roots: bool) -> list[str]:
    return _proven([decode_full(*part) for part in parts], roots)


class InlineProver:
    """On this core."""

    def __init__(self, *, roots: bool) -> None:
        self._roots = roots

    async def prove(self, blocks: Sequence[FetchedBlock], decoded: Sequence[FullBlock]) -> list[str]:
        return _proven(decoded, self._roots)

    def close(self) -> None:
        pass


class BesideProver:
    """On another core: to decode there anew costs less than to send what was decoded.

    A prover process that dies is replaced: a proof has no memory.
    """

    def __init__(self, *, roots: bool) -> None:
        self._roots = roots
        self._pool: Executor | None = None

    async def prove(self, blocks: Sequence[FetchedBlock], decoded: Sequence[FullBlock]) -> list[str]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        parts = [(one.block, one.receipts, one.calls, one.diffs, one.calls_by, one.diffs_by) for one in blocks]
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, _decoded_and_proven, parts, self._roots)
        except BrokenProcessPool:
            self.close()
            return _proven(decoded, self._roots)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
