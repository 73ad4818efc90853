"""An event loop whose time is simulated: it jumps to the next timer, so timeouts and back-offs cost nothing.

No sockets and no threads. Work for an executor runs in the loop itself, after a simulated delay. With one seeded
random generator the same seed therefore gives the same run.
"""

import asyncio
import random
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable
from typing import Any

from icefall.upstream.meter import Clock

_DISK_S = 0.004  # the longest that work for an executor takes


class Deadlock(AssertionError):
    """Nothing is ready and nothing is timed: the program waits for something that can never happen."""


class _Jump:
    """In place of a selector: instead of waiting it moves the time."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock("every task waits, and no timer is set")
        self._loop.now += max(0.0, timeout)
        return []


class VirtualLoop(BaseEventLoop):
    def __init__(self, source: random.Random) -> None:
        super().__init__()
        self.now = 0.0
        self.source = source
        self._selector = _Jump(self)
        self.set_exception_handler(lambda loop, context: None)  # tasks of a killed program report nothing

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        done: asyncio.Future[Any] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except BaseException as error:
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        self.call_later(self.source.uniform(0.0, _DISK_S), work)  # it is done even if its caller was cancelled
        return done

    def _process_events(self, events: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nothing sleeps that would have to be woken."""


class VirtualClock(Clock):
    """What the program reads in place of the monotonic clock."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()
