"""A timeout on reading request bodies that is nearly free while none is late: one timer checks all of them.

One timer per request would cost more than parsing the request.
"""

import asyncio
from typing import Any

_CHECK_EVERY = 0.25  # of the limit


class BodyTimeout:
    """The limit on the time between `begin` and `end`: a task that waits for longer than `limit_s`, plus up to a
    quarter of it, is cancelled, and `end` raises TimeoutError. None is no limit."""

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s = limit_s
        self._waiting: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._timer_runs = False

    def begin(self) -> asyncio.Task[Any] | None:
        task = asyncio.current_task()
        if self._limit_s is None or task is None:
            return None
        loop = asyncio.get_running_loop()
        self._waiting[task] = loop.time()
        if not self._timer_runs:
            self._timer_runs = True
            loop.call_later(self._limit_s * _CHECK_EVERY, self._check, loop)
        return task

    def end(self, task: asyncio.Task[Any] | None) -> None:
        if task is None:
            return
        del self._waiting[task]
        if task in self._late:
            self._late.discard(task)
            if task.uncancel() == 0:
                raise TimeoutError from None

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._limit_s is not None
        overdue = loop.time() - self._limit_s
        for task, began in list(self._waiting.items()):
            if began <= overdue and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._timer_runs = bool(self._waiting)
        if self._timer_runs:
            loop.call_later(self._limit_s * _CHECK_EVERY, self._check, loop)
