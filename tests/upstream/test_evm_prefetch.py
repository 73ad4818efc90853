"""Fetching ahead: in order, within its limits, and nothing left behind when the reader goes away."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from tests.upstream.evm_recording import recorded_blocks
from tests.upstream.evm_replay import EvmReplay
from tests.upstream.evm_scene import fetched, upstream_of

from icefall.upstream.client import ByteBudgetExceeded, UpstreamDown
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.upstream.evm.prefetch import Prefetcher, PrefetchLimits

KB = 1 << 10


class Well:
    """Blocks of given sizes, each run delivered when the test says so, or after some turns of the loop."""

    def __init__(self, sizes: Callable[[int], int], *, seed: int = 1, end: int = 1 << 30) -> None:
        self.sizes = sizes
        self.asked: list[range] = []
        self.under_way = 0
        self._random = random.Random(seed)
        self._end = end

    async def fetch(self, numbers: range, size: int) -> list[FetchedBlock]:
        self.asked.append(numbers)
        self.under_way += 1
        try:
            for _ in range(self._random.randrange(8)):
                await asyncio.sleep(0)
            if numbers[0] >= self._end:
                raise UpstreamDown("dry")
            blocks = [self.block(number) for number in numbers if number < self._end]
            if sum(block.size for block in blocks) > size:
                raise ByteBudgetExceeded("full")
            return blocks
        finally:
            self.under_way -= 1

    def block(self, number: int) -> FetchedBlock:
        return FetchedBlock(number, bytes(self.sizes(number)), b"", None, None)


def read(look: Prefetcher, numbers: range, each: Callable[[FetchedBlock], Awaitable[None]] | None = None) -> list[int]:
    async def run() -> list[int]:
        got = []
        async for block in look.blocks(numbers):
            got.append(block.number)
            if each is not None:
                await each(block)
        return got

    return asyncio.run(run())


SHAPES: dict[str, Callable[[int], int]] = {
    "small": lambda number: 500,
    "large": lambda number: 200 * KB,
    "growing": lambda number: number * 700,
    "shrinking": lambda number: max(1, 300 - number) * KB,
    "a giant now and then": lambda number: 900 * KB if number % 37 == 5 else 2 * KB,
    "at random": lambda number: random.Random(number).randrange(300 * KB),
}


@pytest.mark.parametrize("slow", [False, True], ids=["eager", "slow reader"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", SHAPES)
def test_order_and_limits_for_any_sizes(shape: str, seed: int, slow: bool) -> None:
    limits = PrefetchLimits(
        blocks_max=64, bytes_max=2048 * KB, alone_bytes_max=1024 * KB, run_blocks_max=8, run_bytes=256 * KB
    )
    well = Well(SHAPES[shape], seed=seed)
    look = Prefetcher(well.fetch, limits)

    async def wait(block: FetchedBlock) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    assert read(look, range(300), wait if slow else None) == list(range(300))
    assert look.peak_blocks <= limits.blocks_max + limits.run_blocks_max
    assert look.peak_bytes <= limits.bytes_max + limits.alone_bytes_max
    if shape == "small":
        assert look.peak_bytes <= limits.bytes_max
        assert look.peak_blocks <= limits.blocks_max
    assert max(len(numbers) for numbers in well.asked) <= 8
    assert (look.held_blocks, look.held_bytes, well.under_way) == (0, 0, 0)


def test_a_reader_that_stands_still_stops_the_fetching() -> None:
    limits = PrefetchLimits(blocks_max=32, bytes_max=2048 * KB, run_blocks_max=4)
    well = Well(lambda number: KB)
    look = Prefetcher(well.fetch, limits)

    async def run() -> None:
        blocks = look.blocks(range(1000))
        assert (await anext(blocks)).number == 0
        for _ in range(500):
            await asyncio.sleep(0)
        assert sum(map(len, well.asked)) <= 32
        assert well.under_way == 0
        await blocks.aclose()
        assert (look.held_blocks, look.held_bytes) == (0, 0)

    asyncio.run(run())


def test_runs_grow_once_the_size_of_blocks_is_known() -> None:
    limits = PrefetchLimits()
    for size, then in ((KB, limits.run_blocks_max), (200 * KB, limits.run_bytes // (200 * KB))):
        well = Well(lambda number, size=size: size)  # type: ignore[misc]
        look = Prefetcher(well.fetch)
        assert read(look, range(1000)) == list(range(1000))
        lengths = [len(numbers) for numbers in well.asked]
        assert set(lengths[:4]) == {limits.first_run_blocks}
        assert lengths[-2] == then
        known = Well(well.sizes)
        assert read(Prefetcher(known.fetch, per_block=look.per_block), range(300)) == list(range(300))
        assert len(known.asked[0]) == then


def test_a_block_that_fits_nowhere_is_a_failure() -> None:
    look = Prefetcher(
        Well(lambda number: 5000 * KB if number == 7 else 100).fetch, PrefetchLimits(alone_bytes_max=1024 * KB)
    )
    got: list[int] = []

    async def note(block: FetchedBlock) -> None:
        got.append(block.number)

    with pytest.raises(ByteBudgetExceeded):
        read(look, range(20), note)
    assert got == list(range(7))
    assert (look.held_blocks, look.held_bytes) == (0, 0)


def test_what_came_before_a_failure_is_handed_out_first() -> None:
    for end in (0, 1, 15, 16, 17, 50):
        got: list[int] = []

        async def note(block: FetchedBlock, got: list[int] = got) -> None:
            got.append(block.number)

        look = Prefetcher(Well(lambda number: 100, end=end).fetch)
        with pytest.raises(UpstreamDown, match="dry"):
            read(look, range(200), note)
        assert got == list(range(end))


def test_a_reader_that_leaves_ends_what_is_under_way() -> None:
    well = Well(lambda number: 100)

    async def run() -> None:
        look = Prefetcher(well.fetch)
        async for block in look.blocks(range(1000)):
            if block.number == 20:
                break
        await asyncio.sleep(0)

    asyncio.run(run())
    assert well.under_way == 0


@pytest.mark.parametrize("bytes_max", [200 * KB, 1024 * KB, 64 << 20])
def test_a_recorded_chain_within_a_small_budget(bytes_max: int) -> None:
    async def run() -> None:
        limits = PrefetchLimits(bytes_max=bytes_max, alone_bytes_max=4 << 20)
        async with upstream_of(EvmReplay("cchain-1"), prefetch_limits=limits) as upstream:
            blocks = await fetched(upstream, range(199))
            assert [block.block for block in blocks] == [block.block for block in recorded_blocks("cchain-1").values()]
            look = upstream.last_prefetch
            assert look is not None
            largest = max(block.size for block in blocks)
            assert look.peak_bytes <= bytes_max + (2 * largest if bytes_max < 8 << 20 else 0)

    asyncio.run(run())
