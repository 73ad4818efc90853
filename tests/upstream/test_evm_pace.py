"""How concurrency and the size of batches adapt."""

import asyncio

from tests.upstream.fake_clock import FakeClock

from icefall.upstream.evm.pace import AdaptiveLimit, BatchSize


def test_one_bad_moment_halves_once() -> None:
    async def scene() -> None:
        gate = AdaptiveLimit(FakeClock(), 8)
        async with gate.open() as first, gate.open() as second, gate.open() as third:
            gate.slower(first)
            gate.slower(second)
            gate.slower(third)
            assert gate.limit == 4
            async with gate.open() as later:
                gate.slower(later)
                assert gate.limit == 2
        for _ in range(3):
            async with gate.open() as ticket:
                gate.slower(ticket)
        assert gate.limit == 1

    asyncio.run(scene())


def test_it_grows_by_one_a_round() -> None:
    gate = AdaptiveLimit(FakeClock(), 8)
    gate.limit = 1.0
    rounds = 0
    while gate.limit < 8:
        for _ in range(int(gate.limit)):
            gate.faster()
        rounds += 1
    assert 7 <= rounds <= 10


def test_nobody_enters_while_it_is_quiet() -> None:
    async def scene() -> None:
        clock = FakeClock()
        gate = AdaptiveLimit(clock, 2)
        async with gate.open() as ticket:
            gate.slower(ticket, 7.0)
        async with gate.open():
            assert clock.slept == [7.0]

    asyncio.run(scene())


def test_who_waits_gets_a_turn_and_who_gives_up_passes_it_on() -> None:
    async def scene() -> None:
        gate = AdaptiveLimit(FakeClock(), 1)
        entered = []

        async def enter(name: str) -> None:
            async with gate.open():
                entered.append(name)
                await asyncio.sleep(0)

        async with gate.open():
            tasks = [asyncio.create_task(enter(name)) for name in "abc"]
            await asyncio.sleep(0)
            tasks[1].cancel()
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert entered == ["c"]
        assert gate.inside == 0

    asyncio.run(scene())


def test_batches_shrink_at_once_and_grow_slowly() -> None:
    batch = BatchSize(100)
    batch.halve(100)
    assert batch.size == 50
    batch.halve(10)
    assert batch.size == 5
    for _ in range(4):
        batch.fared_well(5)
    assert batch.size == 6
    for _ in range(50):
        batch.fared_well(3)
    assert batch.size == 6
    for _ in range(200):
        batch.fared_well(batch.size)
    assert batch.size == 100


def test_a_number_once_refused_is_not_tried_again() -> None:
    batch = BatchSize(100)
    batch.refuse(100)
    batch.refuse(50)
    for _ in range(200):
        batch.fared_well(batch.size)
    assert batch.size == 49
    batch.refuse(2)
    for _ in range(20):
        batch.fared_well(1)
    assert batch.size == 1
