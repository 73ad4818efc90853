"""Limits how long requests run in one iteration of the event loop, however many there are and however long they take.

What a request does between two awaits is a step. A step begins only while the iteration is short; otherwise it waits,
in order, for a later one. So an iteration takes SLICE_S and the rest of one step, and requests that do not pass here
(health) wait for a few iterations at most. `asyncio.sleep(0)` ends a step; while the iteration is short, the next step
follows at once.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")

SLICE_S = 0.002
_WAKES_PER_ITERATION = 8


class TimeSlicer:
    """Runs at most 2 ms of request code per loop iteration.

    `plan` is called when a step has to wait: the owner must then call `begin_slice` in a later iteration of the loop.
    `now` is a clock in seconds.
    """

    def __init__(self, plan: Callable[[], None], now: Callable[[], float] = time.perf_counter) -> None:
        self._plan = plan
        self._now = now
        self._until = 0.0
        self._is_first = True  # one step begins in every iteration, however long it has taken to read new bytes
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """The number of steps that wait for a later iteration."""
        return len(self._waiting)

    def begin_slice(self) -> None:
        """Start the 2 ms of this iteration, and wake the steps that have waited the longest."""
        self._until = self._now() + SLICE_S
        self._is_first = True
        for _ in range(min(_WAKES_PER_ITERATION, len(self._waiting))):
            waiter = self._waiting.popleft()
            if not waiter.done():  # it may have been cancelled
                waiter.set_result(None)
        if self._waiting:
            self._plan()  # those that were woken may end without another step

    @coroutine
    def run(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Run `work` step by step and return its result."""
        error: BaseException | None = None
        while True:
            if self._is_first:
                self._is_first = False
            elif self._now() >= self._until:
                try:
                    yield from self._wait()
                except BaseException as cancelled:
                    error = cancelled
            try:
                awaited = work.send(None) if error is None else work.throw(error)
            except StopIteration as ended:
                result: T = ended.value
                return result
            error = None
            if awaited is not None:
                try:
                    yield awaited
                except BaseException as raised:
                    error = raised

    def _wait(self) -> Generator[Any, Any, None]:
        """Wait for an iteration that has time left; a step that was woken too late is the first of the next one."""
        add = self._waiting.append
        while True:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            add(waiter)
            self._plan()
            yield from waiter
            if self._is_first or self._now() < self._until:
                self._is_first = False
                return
            add = self._waiting.appendleft
