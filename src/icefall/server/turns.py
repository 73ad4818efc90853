"""How much requests do in one turn of the event loop, however many there are and however long they take.

What a request does between two awaits is a step. It begins a step while the turn is short, else it waits in order for
another turn. So a turn takes TURN_S and the rest of one step, and those that do not ask here (health) wait no longer
than a few of them. `asyncio.sleep(0)` ends a step, and costs no turn of the loop while the turn is short.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")

TURN_S = 0.002
_WAKES_PER_TURN = 8


class Turns:
    """`plan`: called when a step waits; `begin` must follow in another turn of the loop. `now`: a clock in seconds."""

    def __init__(self, plan: Callable[[], None], now: Callable[[], float] = time.perf_counter) -> None:
        self._plan = plan
        self._now = now
        self._until = 0.0
        self._is_first = True  # one step begins in every turn, however long it has taken to read new bytes
        self._paused: deque[asyncio.Future[None]] = deque()

    @property
    def paused(self) -> int:
        """How many steps wait."""
        return len(self._paused)

    def begin(self) -> None:
        self._until = self._now() + TURN_S
        self._is_first = True
        for _ in range(min(_WAKES_PER_TURN, len(self._paused))):
            waiter = self._paused.popleft()
            if not waiter.done():  # it may have been cancelled
                waiter.set_result(None)

    @coroutine
    def run(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """The result of `work`, step by step."""
        error: BaseException | None = None
        while True:
            if self._is_first:
                self._is_first = False
            elif self._now() >= self._until:
                try:
                    yield from self._pause()
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

    def _pause(self) -> Generator[Any, Any, None]:
        add = self._paused.append
        while True:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            add(waiter)
            self._plan()
            yield from waiter
            if self._is_first or self._now() < self._until:
                self._is_first = False
                return
            add = self._paused.appendleft
