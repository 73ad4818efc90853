"""Runs the first step of a request in the callback that has received it.

Most requests need a single step. A task for each, and two more turns of the event loop until it has run, cost more than
many answers do. A request that has to wait for something goes on in a task, the one that was the current task during
its first step: time limits and cancellation hold as in a task of its own.
"""

import asyncio
from asyncio.tasks import _enter_task, _leave_task  # as the documents of asyncio name them for those who run tasks
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from icefall.server.time_slicer import BegunWork, TimeSlicer

T = TypeVar("T")
_GoOn = Callable[[Callable[[Any], Awaitable[T]]], Coroutine[Any, Any, None]]


class FirstSteps:
    """The first steps of requests. What follows them runs in the slices of `slicer`."""

    def __init__(self, slicer: TimeSlicer) -> None:
        self._loop = asyncio.get_running_loop()
        self._slicer = slicer
        self._spare = _SpareTask(self._loop)

    @property
    def is_ready(self) -> bool:
        """Whether there is a task that could go on. One that was made just now cannot: it has not begun to wait."""
        if self._spare.task.done():
            self._spare = _SpareTask(self._loop)
        return self._spare.is_waiting and self._slicer.may_begin()

    def run(self, work: Coroutine[Any, Any, T], go_on: "_GoOn[T]") -> "T | asyncio.Task[None]":
        """Run `work` up to its end or its first wait, from a callback of the loop, when `is_ready`. Return its
        result, or the task that goes on with it: `go_on` gives what that task runs, of a function that returns the rest
        of the work.
        """
        spare = self._spare
        context = copy_context()  # what the request sets in it, no other one sees
        _enter_task(self._loop, spare.task)
        try:
            awaited = self._slicer.run_first(partial(context.run, work.send, None))
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            _leave_task(self._loop, spare.task)
        self._spare = _SpareTask(self._loop)
        begun = BegunWork(work, context, awaited)
        spare.hand(go_on(lambda _: self._slicer.run_begun(begun)))
        return spare.task


class _SpareTask:
    """A task that waits for the work that it will go on with."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._handed: asyncio.Future[None] = loop.create_future()
        self._rest: Coroutine[Any, Any, None] | None = None
        self.is_waiting = False
        self.task = loop.create_task(self._run())

    def hand(self, rest: Coroutine[Any, Any, None]) -> None:
        self._rest = rest
        if not self._handed.done():  # the first step may have cancelled its task, and with it the wait for this
            self._handed.set_result(None)

    async def _run(self) -> None:
        self.is_waiting = True
        try:
            await self._handed
        except asyncio.CancelledError:
            if self._rest is None:
                raise
            own = asyncio.current_task()
            assert own is not None
            own.uncancel()
            own.cancel()  # again: it was meant for the work, which has begun and waits
        assert self._rest is not None
        await self._rest
