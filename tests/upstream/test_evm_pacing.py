"""How concurrency and the size of batches adapt."""

import asyncio

from tests.upstream.fake_clock import FakeClock

from icefall.upstream.evm.pacing import AdaptiveLimit, BatchSize, WholeBlocks


def test_one_bad_moment_halves_once() -> None:
    async def scene() -> None:
        concurrency = AdaptiveLimit(FakeClock(), 8)
        async with concurrency.slot() as first, concurrency.slot() as second, concurrency.slot() as third:
            concurrency.reduce(first)
            concurrency.reduce(second)
            concurrency.reduce(third)
            assert concurrency.limit == 4
            async with concurrency.slot() as later:
                concurrency.reduce(later)
                assert concurrency.limit == 2
        for _ in range(3):
            async with concurrency.slot() as ticket:
                concurrency.reduce(ticket)
        assert concurrency.limit == 1

    asyncio.run(scene())


def test_it_grows_by_one_a_round() -> None:
    concurrency = AdaptiveLimit(FakeClock(), 8)
    concurrency.limit = 1.0
    rounds = 0
    while concurrency.limit < 8:
        for _ in range(int(concurrency.limit)):
            concurrency.increase()
        rounds += 1
    assert 7 <= rounds <= 10


def test_no_slot_is_given_during_a_pause() -> None:
    async def scene() -> None:
        clock = FakeClock()
        concurrency = AdaptiveLimit(clock, 2)
        async with concurrency.slot() as ticket:
            concurrency.reduce(ticket, 7.0)
        async with concurrency.slot():
            assert clock.slept == [7.0]

    asyncio.run(scene())


def test_waiters_get_slots_in_turn_and_cancelled_ones_pass_them_on() -> None:
    async def scene() -> None:
        concurrency = AdaptiveLimit(FakeClock(), 1)
        entered = []

        async def enter(name: str) -> None:
            async with concurrency.slot():
                entered.append(name)
                await asyncio.sleep(0)

        async with concurrency.slot():
            tasks = [asyncio.create_task(enter(name)) for name in "abc"]
            await asyncio.sleep(0)
            tasks[1].cancel()
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert entered == ["c"]
        assert concurrency.in_use == 0

    asyncio.run(scene())


def test_one_that_is_cancelled_during_a_pause_passes_its_slot_on() -> None:
    """Otherwise the next ones would wait for ever: nothing is left that could end and wake them."""

    async def scene() -> None:
        clock = FakeClock()
        concurrency = AdaptiveLimit(clock, 1)
        entered = []

        async def enter(name: str) -> None:
            async with concurrency.slot():
                entered.append(name)

        async with concurrency.slot() as ticket:
            tasks = [asyncio.create_task(enter(name)) for name in "ab"]
            await asyncio.sleep(0)
            concurrency.reduce(ticket, 7.0)
        await asyncio.sleep(0)
        assert clock.slept == [7.0]
        tasks[0].cancel()
        _, waiting = await asyncio.wait(tasks, timeout=10)
        assert (entered, waiting) == (["b"], set())

    asyncio.run(scene())


def test_batches_shrink_at_once_and_grow_slowly() -> None:
    batch = BatchSize(100)
    batch.halve(100)
    assert batch.size == 50
    batch.halve(10)
    assert batch.size == 5
    for _ in range(4):
        batch.succeeded(5)
    assert batch.size == 6
    for _ in range(50):
        batch.succeeded(3)
    assert batch.size == 6
    for _ in range(200):
        batch.succeeded(batch.size)
    assert batch.size == 100


def test_a_number_once_refused_is_not_tried_again() -> None:
    batch = BatchSize(100)
    batch.refuse(100)
    batch.refuse(50)
    for _ in range(200):
        batch.succeeded(batch.size)
    assert batch.size == 49
    batch.refuse(2)
    for _ in range(20):
        batch.succeeded(1)
    assert batch.size == 1


def test_large_blocks_are_tried_as_a_whole_again_after_a_while() -> None:
    whole = WholeBlocks()
    assert whole.fits(10_000)
    whole.refuse(300)
    whole.refuse(500)
    assert [whole.fits(299), whole.fits(300), whole.fits(10_000)] == [True, False, False]
    splits = 2
    while not whole.fits(300):
        splits += 1
    assert splits == 64
    assert whole.fits(599)
    assert not whole.fits(600)
