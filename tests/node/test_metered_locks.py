"""Locks that count who waited for them."""

import asyncio

import pytest

from icefall.node.admin.pprof import Sample, StackFrame
from icefall.node.admin.profiles import LockStats, MeteredLock


@pytest.fixture
def locks() -> LockStats:
    return LockStats()


def waits(locks: LockStats) -> list[Sample]:
    return list(locks.profile().samples)


def test_asyncio_lock_reports_who_waited(locks: LockStats) -> None:
    lock = MeteredLock("store", locks)
    order: list[int] = []

    async def worker(number: int) -> None:
        async with lock:
            order.append(number)
            await asyncio.sleep(0.02)

    async def three() -> None:
        await asyncio.gather(*(worker(number) for number in range(3)))

    asyncio.run(three())
    assert order == [0, 1, 2]
    assert not lock.locked()
    (sample,) = waits(locks)
    assert sample.values[0] == 2
    assert sample.values[1] >= 50_000_000
    assert sample.stack[0] == StackFrame("lock store")
    assert sample.stack[1].function.endswith("worker")
    assert sample.stack[1].file == __file__


def test_asyncio_lock_without_rivals_reports_nothing(locks: LockStats) -> None:
    lock = MeteredLock("store", locks)

    async def alone() -> None:
        for _ in range(3):
            async with lock:
                await asyncio.sleep(0)
        await lock.acquire()
        assert lock.locked()
        lock.release()

    asyncio.run(alone())
    assert waits(locks) == []


def test_a_newcomer_behind_a_woken_waiter_counts(locks: LockStats) -> None:
    """The lock is free for a moment, but promised: whoever asks then waits all the same."""
    lock = MeteredLock("store", locks)

    async def first_in_line() -> None:
        async with lock:
            await asyncio.sleep(0)

    async def crowd() -> None:
        await lock.acquire()
        task = asyncio.create_task(first_in_line())
        await asyncio.sleep(0)
        lock.release()
        assert not lock.locked()
        await lock.acquire()
        lock.release()
        await task

    asyncio.run(crowd())
    assert sum(sample.values[0] for sample in waits(locks)) == 2


def test_a_cancelled_wait_counts_and_leaves_the_lock_usable(locks: LockStats) -> None:
    lock = MeteredLock("store", locks)

    async def give_up() -> None:
        async with lock:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(lock.acquire(), 0.01)
        async with lock:
            pass

    asyncio.run(give_up())
    assert sum(sample.values[0] for sample in waits(locks)) == 1
    assert lock._waiting == 0
