"""Fetches blocks ahead of the reader: in order, and within a byte budget."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import NamedTuple

import msgspec

from icefall.upstream.client import ByteBudgetExceeded
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.upstream.evm.errors import IncompleteAnswer

_RESERVE = 4  # times the expected size of a run
_RESERVE_LEAST = 256 << 10
BLOCK_SIZE_GUESS = 64 << 10  # bytes per block, before any was seen


class PrefetchLimits(msgspec.Struct, frozen=True):
    """The limits of fetching ahead. `bytes_max` holds for everything that was fetched or is being fetched.

    Only the run that the reader waits for may take up to `alone_bytes_max` in addition, if it is larger than what was
    reserved for it.
    """

    blocks_max: int = 256
    bytes_max: int = 64 << 20
    alone_bytes_max: int = 128 << 20
    run_blocks_max: int = 32
    run_bytes: int = 2 << 20  # intended size of a run: three requests, each of which has its own cost
    first_run_blocks: int = 16  # before any block was seen


PREFETCH_LIMITS = PrefetchLimits()
Fetch = Callable[[range, int], Awaitable[list[FetchedBlock]]]  # block numbers, byte budget


class _Run(NamedTuple):
    numbers: range
    size: int  # reserved for it
    task: "asyncio.Task[list[FetchedBlock]]"


class Prefetcher:
    """A reader of blocks that fetches ahead. `per_block` is how many bytes a block is expected to have, None before any
    was seen: updated from what was fetched."""

    def __init__(self, fetch: Fetch, limits: PrefetchLimits = PREFETCH_LIMITS, per_block: float | None = None) -> None:
        self.per_block: float = BLOCK_SIZE_GUESS if per_block is None else per_block
        first = min(limits.first_run_blocks, limits.run_blocks_max)
        self._run_blocks_max = first if per_block is None else limits.run_blocks_max
        self.held_blocks = 0
        self.held_bytes = 0
        self.peak_blocks = 0
        self.peak_bytes = 0
        self._fetch = fetch
        self._limits = limits
        self._runs: deque[_Run] = deque()

    async def blocks(self, numbers: Iterable[int]) -> AsyncGenerator[FetchedBlock, None]:
        """Yield every block of `numbers`, in their order; a failure is raised where its block would have come."""
        todo = _Numbers(numbers)
        try:
            while todo or self._runs:
                self._fill(todo)
                run = self._runs[0]
                try:
                    blocks = await run.task
                except (ByteBudgetExceeded, IncompleteAnswer) as failure:
                    if isinstance(failure, IncompleteAnswer) and len(run.numbers) == 1:
                        raise
                    self._drop_first()
                    if isinstance(failure, ByteBudgetExceeded) and run.size >= self._reserve(len(run.numbers)):
                        self.per_block *= 2
                    half = run.numbers[: max(1, len(run.numbers) // 2)]
                    self._push_first(run.numbers[len(half) :])
                    blocks = await self._fetch_alone(half)
                else:
                    self._runs.popleft()
                    self._push_first(run.numbers[len(blocks) :])
                for block in blocks:
                    yield block
                    self._count(-1, -block.size)
        finally:
            await self._stop()

    def _fill(self, todo: "_Numbers") -> None:
        """Start as many whole runs as there is room for: as soon as a block is read there is room for one, but a
        request for it would cost as much."""
        limits = self._limits
        while todo:
            most = max(1, min(self._run_blocks_max, int(limits.run_bytes / self.per_block)))
            room = limits.blocks_max - self.held_blocks
            if room <= 0 or (self._runs and (room < most or self.held_bytes + self._reserve(most) > limits.bytes_max)):
                return
            self._runs.append(self._start(todo.take(min(most, room))))

    def _reserve(self, blocks: int) -> int:
        return min(self._limits.bytes_max, max(_RESERVE_LEAST, int(blocks * self.per_block * _RESERVE)))

    def _start(self, numbers: range) -> _Run:
        size = max(0, min(self._reserve(len(numbers)), self._limits.bytes_max - self.held_bytes))
        self._count(len(numbers), size)
        return _Run(numbers, size, asyncio.create_task(self._fetched(numbers, size)))

    async def _fetched(self, numbers: range, size: int) -> list[FetchedBlock]:
        """Reserved bytes that are not needed are released at once; those of a failed run when the reader gets to it."""
        blocks = await self._fetch(numbers, size)
        size_of_all = sum(block.size for block in blocks)
        self._count(len(blocks) - len(numbers), size_of_all - size)
        mean = size_of_all / max(1, len(blocks))
        self.per_block = max(1.0, mean, 0.8 * self.per_block + 0.2 * mean)
        self._run_blocks_max = self._limits.run_blocks_max
        return blocks

    async def _fetch_alone(self, numbers: range) -> list[FetchedBlock]:
        """The run that the reader waits for is fetched even if the other runs have used up the budget. One that fails
        is halved, so that one incomplete block does not hold up those before it."""
        size = self._limits.alone_bytes_max
        while True:
            try:
                blocks = await self._fetch(numbers, size)
            except (ByteBudgetExceeded, IncompleteAnswer):
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
    """Numbers still to be fetched, taken in consecutive ranges."""

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
