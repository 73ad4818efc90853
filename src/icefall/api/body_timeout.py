"""A time limit on many short waits that costs next to nothing while none is late: one timer looks at all of them.

A timer of its own for every request would cost more than the request's parsing.
"""

import asyncio
from typing import Any

_LOOK_EVERY = 0.25  # of the limit


class BodyTimeout:
    """Between `begin` and `end` a task may wait for `limit_s`, give or take a quarter; then it is cancelled, and `end`
    makes that a TimeoutError. None waits for ever."""

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._waiting: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._looking = False

    def begin(self) -> asyncio.Task[Any] | None:
        task = asyncio.current_task()
        if self._limit_s is None or task is None:
            return None
        loop = asyncio.get_running_loop()
        self._waiting[task] = loop.time()
        if not self._looking:
            self._looking = True
            loop.call_later(self._limit_s * _LOOK_EVERY, self._look, loop)
        return task

    def end(self, task: asyncio.Task[Any] | None) -> None:
        if task is None:
            return
        del self._waiting[task]
        if task in self._late:
            self._late.discard(task)
            if task.uncancel() == 0:
                raise TimeoutError from None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._limit_s is not None
        overdue = loop.time() - self._limit_s
        for task, began in list(self._waiting.items()):
            if began <= overdue and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._looking = bool(self._waiting)
        if self._looking:
            loop.call_later(self._limit_s * _LOOK_EVERY, self._look, loop)
