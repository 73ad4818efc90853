"""Fetching ahead of whoever reads: in order, and never more than there is room for."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import NamedTuple

import msgspec

from icefall.upstream.client import ByteBudgetExceeded
from icefall.upstream.evm.parts import FetchedBlock

_RESERVE = 4  # times what a run is expected to come to
_RESERVE_LEAST = 256 << 10
GUESS = 64 << 10  # bytes a block, before any was seen


class PrefetchLimits(msgspec.Struct, frozen=True):
    """How far ahead. `bytes_max` holds for everything that was fetched or is on its way.

    Only the one run that everybody waits for may take up to `alone_bytes_max` besides, if it turns out larger than what
    was set aside for it.
    """

    blocks_max: int = 512
    bytes_max: int = 64 << 20
    alone_bytes_max: int = 128 << 20
    run_blocks_max: int = 16
    run_bytes: int = 1 << 20  # what a run should come to


AHEAD = PrefetchLimits()
Fetch = Callable[[range, int], Awaitable[list[FetchedBlock]]]  # some numbers, within so many bytes


class _Run(NamedTuple):
    numbers: range
    size: int  # set aside for it
    task: "asyncio.Task[list[FetchedBlock]]"


class Prefetcher:
    """`per_block` is how many bytes a block is expected to have: learnt on the way."""

    def __init__(self, fetch: Fetch, limits: PrefetchLimits = AHEAD, per_block: float = GUESS) -> None:
        self.per_block = per_block
        self.held_blocks = 0
        self.held_bytes = 0
        self.peak_blocks = 0
        self.peak_bytes = 0
        self._fetch = fetch
        self._limits = limits
        self._runs: deque[_Run] = deque()

    async def blocks(self, numbers: Iterable[int]) -> AsyncGenerator[FetchedBlock, None]:
        """Every block of `numbers`, in their order; whatever keeps one from coming is raised in its place."""
        todo = _Numbers(numbers)
        try:
            while todo or self._runs:
                self._fill(todo)
                run = self._runs[0]
                try:
                    blocks = await run.task
                except ByteBudgetExceeded:
                    self._drop_first()
                    self.per_block *= 2 if run.size >= self._reserve(len(run.numbers)) else 1
                    half = run.numbers[: max(1, len(run.numbers) // 2)]
                    self._push_first(run.numbers[len(half) :])
                    blocks = await self._alone(half)
                else:
                    self._runs.popleft()
                    self._push_first(run.numbers[len(blocks) :])
                for block in blocks:
                    yield block
                    self._count(-1, -block.size)
        finally:
            await self._stop()

    def _fill(self, todo: "_Numbers") -> None:
        limits = self._limits
        while todo and self.held_blocks < limits.blocks_max:
            most = min(
                limits.run_blocks_max, int(limits.run_bytes / self.per_block), limits.blocks_max - self.held_blocks
            )
            if self._runs and self.held_bytes + self._reserve(max(1, most)) > limits.bytes_max:
                return
            self._runs.append(self._start(todo.take(max(1, most))))

    def _reserve(self, blocks: int) -> int:
        return min(self._limits.bytes_max, max(_RESERVE_LEAST, int(blocks * self.per_block * _RESERVE)))

    def _start(self, numbers: range) -> _Run:
        size = max(0, min(self._reserve(len(numbers)), self._limits.bytes_max - self.held_bytes))
        self._count(len(numbers), size)
        return _Run(numbers, size, asyncio.create_task(self._fetched(numbers, size)))

    async def _fetched(self, numbers: range, size: int) -> list[FetchedBlock]:
        """What was set aside and is not needed is free again at once; for a failure only when its turn has come."""
        blocks = await self._fetch(numbers, size)
        came_to = sum(block.size for block in blocks)
        self._count(len(blocks) - len(numbers), came_to - size)
        mean = came_to / max(1, len(blocks))
        self.per_block = max(1.0, mean, 0.8 * self.per_block + 0.2 * mean)
        return blocks

    async def _alone(self, numbers: range) -> list[FetchedBlock]:
        """The run that everybody waits for is never refused its room while others keep theirs."""
        size = self._limits.alone_bytes_max
        while True:
            try:
                blocks = await self._fetch(numbers, size)
            except ByteBudgetExceeded:
                if len(numbers) == 1:
                    raise
                rest = numbers[len(numbers) // 2 :]
                numbers = numbers[: len(numbers) // 2]
                self._push_first(rest)
            else:
                self._push_first(numbers[len(blocks) :])
                self._count(len(blocks), sum(block.size for block in blocks))
                return blocks

    def _push_first(self, numbers: range) -> None:
        if numbers:
            self._runs.appendleft(self._start(numbers))

    def _drop_first(self) -> None:
        run = self._runs.popleft()
        self._count(-len(run.numbers), -run.size)

    def _count(self, blocks: int, size: int) -> None:
        self.held_blocks += blocks
        self.held_bytes += size
        self.peak_blocks = max(self.peak_blocks, self.held_blocks)
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)

    async def _stop(self) -> None:
        tasks = [run.task for run in self._runs]
        self._runs.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.held_blocks = self.held_bytes = 0


class _Numbers:
    """Numbers still to be fetched, taken off in runs without a gap."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._rest = iter(numbers)
        self._next = next(self._rest, None)

    def __bool__(self) -> bool:
        return self._next is not None

    def take(self, most: int) -> range:
        assert self._next is not None
        first = self._next
        end = first
        while self._next == end and end - first < most:
            end += 1
            self._next = next(self._rest, None)
        return range(first, end)
