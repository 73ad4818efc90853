"""Limits how long requests run in one iteration of the event loop, however many there are and however long they take.

What a request does between two awaits is a step. A step begins only while the iteration is short; otherwise it waits,
in order, for a later one. So an iteration takes SLICE_S and the rest of one step, and requests that do not pass here
(health) wait for a few iterations at most. `asyncio.sleep(0)` ends a step; while the iteration is short, the next step
follows at once. The first step of a request may run while new bytes are read: all of these together have one more
slice, and the request after it waits for an iteration like all others.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from types import coroutine
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

SLICE_S = 0.002
_WAKES_PER_ITERATION = 8
_FIRST_PER_ITERATION = 64  # what comes behind them may be urgent


class BegunWork(NamedTuple, Generic[T]):
    """Work whose first step has run, in that context; it waits for what it yielded then."""

    work: Coroutine[Any, Any, T]
    context: Context
    awaited: Any


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
        self._woken = 0  # steps that were woken and have not run yet
        self._first_left = _FIRST_PER_ITERATION  # first steps that may still run before the next iteration
        self._first_s = 0.0  # the time that those have taken that ran since the last one

    @property
    def waiting(self) -> int:
        """The number of steps that wait for a later iteration."""
        return len(self._waiting)

    def begin_slice(self) -> None:
        """Start the 2 ms of this iteration, and wake the steps that have waited the longest."""
        self._until = self._now() + SLICE_S
        self._is_first = True
        self._first_left, self._first_s = _FIRST_PER_ITERATION, 0.0
        for _ in range(min(_WAKES_PER_ITERATION, len(self._waiting))):
            waiter = self._waiting.popleft()
            if not waiter.done():  # it may have been cancelled
                waiter.set_result(None)
                self._woken += 1
        if self._waiting:
            self._plan()  # those that were woken may end without another step

    def may_begin(self) -> bool:
        """Tell whether a first step may run before the next iteration: none waits for its turn, and those since the
        last one were short and few."""
        return not (self._waiting or self._woken) and self._first_left > 0 and self._first_s < SLICE_S

    def run_first(self, step: Callable[[], T]) -> T:
        """Run the first step of some work, which counts as one since the last iteration."""
        began = self._now()
        try:
            return step()
        finally:
            self._first_left -= 1
            self._first_s += self._now() - began

    @coroutine
    def run(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Run `work` step by step and return its result."""
        result: T = yield from self._steps(work.send, work.throw, None)
        return result

    @coroutine
    def run_begun(self, begun: BegunWork[T]) -> Generator[Any, Any, T]:
        """Run the rest of the work step by step and return its result."""
        error: BaseException | None = None
        if begun.awaited is not None:
            try:
                yield begun.awaited
            except BaseException as raised:
                error = raised
        run, work = begun.context.run, begun.work

        def throw(raised: BaseException) -> Any:
            return run(work.throw, raised)

        def send(_: None) -> Any:
            return run(work.send, None)

        result: T = yield from self._steps(send, throw, error)
        return result

    def _steps(
        self, send: Callable[[None], Any], throw: Callable[[BaseException], Any], error: BaseException | None
    ) -> Generator[Any, Any, Any]:
        while True:
            if self._is_first:
                self._is_first = False
            elif self._now() >= self._until:
                try:
                    yield from self._wait()
                except BaseException as cancelled:
                    error = cancelled
            try:
                awaited = send(None) if error is None else throw(error)
            except StopIteration as ended:
                return ended.value
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
            try:
                yield from waiter
            finally:
                if waiter.done() and not waiter.cancelled():
                    self._woken -= 1
            if self._is_first or self._now() < self._until:
                self._is_first = False
                return
            add = self._waiting.appendleft
