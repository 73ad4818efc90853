"""Blocks made into rows: decoded, proven, derived. Most of the work, and it shares nothing, so another core may do it.

In two steps, because between them somebody must say what the contracts are that a block speaks of.
"""

import asyncio
import itertools
import multiprocessing
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol, TypeVar

import msgspec

from icefall.evm.deriving.derive import derive, questions
from icefall.evm.model import BlockRows, ContractFacts, ContractQuestions
from icefall.upstream.evm.parts import FetchedBlock
from icefall.wire.errors import WireError
from icefall.wire.evm.decode import decode_full
from icefall.wire.evm.types import FullBlock
from icefall.wire.evm.verify import verify_full

T = TypeVar("T")
_HELD_MAX = 16  # batches of a chain between the two steps; of a run that was given up the second never comes
Ticket = tuple[int, int]  # of a chain, and its own number
_Parts = tuple[bytes, bytes, bytes | None, bytes | None, str, str]  # as decode_full takes them


class BlockOutline(msgspec.Struct, frozen=True):
    """What must be known of a proven block before it can be derived."""

    number: int
    block_hash: bytes
    parent_hash: bytes
    questions: ContractQuestions
    has_diffs: bool


class VerifiedBatch(msgspec.Struct, frozen=True):
    """A batch after its first step. `lie`: the place of the first block that is not what it claims, and why."""

    ticket: Ticket
    sketches: list[BlockOutline]
    unproven: list[str]  # what could not be told, in words
    lie: tuple[int, str] | None = None


class DecoderDied(Exception):
    """The process that did the work has died: nothing is lost, the work must be done again."""


class DecoderState:
    """Where the work is done, here or in another process."""

    def __init__(self) -> None:
        self._held: dict[int, OrderedDict[int, list[FullBlock]]] = {}

    def prove(self, ticket: Ticket, parts: Sequence[_Parts], roots: bool) -> VerifiedBatch:
        sketches: list[BlockOutline] = []
        unproven: dict[str, None] = {}
        held: list[FullBlock] = []
        for place, part in enumerate(parts):
            try:
                full = decode_full(*part)
                unproven.update(dict.fromkeys(verify_full(full, None, roots=roots)))
            except WireError as error:
                return VerifiedBatch(ticket, sketches, list(unproven), (place, str(error)))
            block = full.block
            asked = questions(full)
            sketches.append(
                BlockOutline(block.number, block.block_hash, block.parent_hash, asked, full.diffs is not None)
            )
            held.append(full)
        chain, number = ticket
        of_chain = self._held.setdefault(chain, OrderedDict())
        of_chain[number] = held
        while len(of_chain) > _HELD_MAX:
            of_chain.popitem(last=False)
        return VerifiedBatch(ticket, sketches, list(unproven))

    def derive(self, ticket: Ticket, places: range, facts: ContractFacts) -> list[BlockRows]:
        """Those of the batch, or as many of them as come before somebody's code is anybody's guess."""
        chain, number = ticket
        held = self._held.setdefault(chain, OrderedDict()).get(number)
        if held is None:
            raise DecoderDied("a batch was proven by a process that has died since")
        has_code, found = dict(facts.has_code), []
        facts = msgspec.structs.replace(facts, has_code=has_code)
        for full in held[places.start : places.stop]:
            rows = derive(full, facts)
            found.append(rows)
            if any(change.has_code is None for change in rows.code_changes):
                break
            has_code.update((change.address, bool(change.has_code)) for change in rows.code_changes)
        if places.start + len(found) == len(held):
            del self._held[chain][number]
        return found


class BlockDecoder(Protocol):
    async def prove(self, chain: int, blocks: Sequence[FetchedBlock]) -> VerifiedBatch: ...

    async def derive(self, ticket: Ticket, places: range, facts: ContractFacts) -> list[BlockRows]: ...

    def close(self) -> None: ...


def _parts(blocks: Sequence[FetchedBlock]) -> list[_Parts]:
    return [(one.block, one.receipts, one.calls, one.diffs, one.calls_by, one.diffs_by) for one in blocks]


class InlineBlockDecoder:
    """On this core."""

    def __init__(self, *, roots: bool) -> None:
        self._roots = roots
        self._bench = DecoderState()
        self._tickets = itertools.count()

    async def prove(self, chain: int, blocks: Sequence[FetchedBlock]) -> VerifiedBatch:
        return self._bench.prove((chain, next(self._tickets)), _parts(blocks), self._roots)

    async def derive(self, ticket: Ticket, places: range, facts: ContractFacts) -> list[BlockRows]:
        return self._bench.derive(ticket, places, facts)

    def close(self) -> None:
        pass


_bench = DecoderState()  # of the other process


def _die_with_parent() -> None:
    """A parent that was killed cannot tell its pool to end."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _prove(ticket: Ticket, parts: Sequence[_Parts], roots: bool) -> VerifiedBatch:
    return _bench.prove(ticket, parts, roots)


def _derive(ticket: Ticket, places: range, facts: ContractFacts) -> list[BlockRows]:
    return _bench.derive(ticket, places, facts)


class ProcessBlockDecoder:
    """On another core. A process that dies is replaced at the next question."""

    def __init__(self, *, roots: bool) -> None:
        self._roots = roots
        self._pool: Executor | None = None
        self._tickets = itertools.count()

    async def prove(self, chain: int, blocks: Sequence[FetchedBlock]) -> VerifiedBatch:
        return await self._run(_prove, (chain, next(self._tickets)), _parts(blocks), self._roots)

    async def derive(self, ticket: Ticket, places: range, facts: ContractFacts) -> list[BlockRows]:
        return await self._run(_derive, ticket, places, facts)

    async def _run(self, work: Callable[..., T], *args: Any) -> T:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_die_with_parent)
        pool = self._pool
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work, *args)
        except BrokenProcessPool as died:
            if pool is self._pool:  # it may have been replaced since
                self.close()
            raise DecoderDied("the process that proves and derives blocks has died") from died

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
