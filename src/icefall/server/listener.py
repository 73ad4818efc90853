"""The listener of a worker: limits on the number, time and memory of its connections, and the order of requests.

Each iteration of the event loop begins a few requests, does a little of each (`time_slicer.py`) and then looks for new
bytes, so that urgent requests (health) are answered at once however many others wait, and however much those do.
"""

import asyncio
import ctypes
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from email.utils import formatdate
from functools import partial
from typing import Any, Protocol

from icefall.errors import IcefallError
from icefall.server.connection import Connection, Respond
from icefall.server.first_steps import FirstSteps
from icefall.server.head import HeadReader
from icefall.server.owner import HttpLimits
from icefall.server.request import HttpRequest, overloaded
from icefall.server.response import PackedHeads, Response
from icefall.server.time_slicer import TimeSlicer

BACKLOG = 4096  # connections that the kernel keeps for us; it may allow fewer
WAITING_MAX = 1024  # requests
RUNNING_MAX = 4096  # requests that have begun, with those that wait for something else
UNFINISHED_MAX = 256  # requests that have begun and have more to do; each may hold a part of its answer
_STARTS_PER_ITERATION = 8
_URGENT_PER_ITERATION = 8  # others wait like all requests: a flood of health checks must not delay a health check
_ACCEPTS_PER_ITERATION = (
    64  # by itself the loop accepts one, and a health check would wait behind all other connections
)
_CLOSES_PER_ITERATION = 64
_CHECK_S = 0.25
_CONNECTION_SIZE = 3 << 10  # bytes of memory of a connection that holds nothing
_TRIM_SIZE = 8 << 20  # bytes; when so much less is held than at the peak, the memory goes back to the system
_TRIM_S = 5.0  # it takes milliseconds, so not more often than this
_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; other libraries return memory by themselves


class Application(Protocol):
    def respond(self, request: HttpRequest) -> Coroutine[Any, Any, Response]: ...

    def failure(self, error: IcefallError) -> Response: ...


class Listener:
    """All connections of one worker.

    `urgent` are the beginnings of the paths whose requests do not wait for others. They are answered inside
    `urgently()`, if it is given, which can mark them in a context variable. `report` gets what failed and why.
    """

    def __init__(
        self,
        app: Application,
        limits: HttpLimits,
        urgent: tuple[str, ...],
        report: Callable[[str, Exception], None],
        urgently: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> None:
        self.limits = limits
        self.use(app)
        self.report = report
        self._urgent = urgent
        self._marked = None if urgently is None else partial(self._respond_inside, urgently)
        self._connections: dict[Connection, None] = {}  # those used last at the end
        self._waiting: deque[tuple[Connection, HttpRequest]] = deque()
        self._running = 0
        self._is_planned = False
        self._urgent_left = _URGENT_PER_ITERATION
        self._slicer = TimeSlicer(self._plan_iteration)
        self._first_steps = FirstSteps(self._slicer)
        self._more_to_accept = False  # the loop has accepted one, and others may wait behind it
        self._listening: socket.socket | None = None
        self._accepting: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._empty = asyncio.Event()
        self.held = 0
        self.remembering: dict[HeadReader, None] = {}
        self._held_peak = 0
        self._next_trim = 0.0
        self.is_stopping = False
        self.now = self._loop.time
        self.heads = PackedHeads()
        self._check()

    def use(self, app: Application) -> None:
        """Ask this app from the next request on."""
        self.respond = app.respond
        self.failure = app.failure

    # -- connections ---------------------------------------------------------------------------------------------

    def add(self, connection: Connection) -> None:
        """Add a connection. Beyond the limit, the one that has been idle the longest is closed."""
        self._connections[connection] = None
        self._empty.clear()
        if len(self._connections) > self.limits.connections_max:
            idle = next((one for one in self._connections if one.is_idle), connection)
            del self._connections[idle]
            idle.abort()
        self._more_to_accept = True
        self._plan_iteration()

    def _accept_more(self) -> bool:
        """Accept connections that the kernel has for us, and tell whether there were any."""
        for count in range(_ACCEPTS_PER_ITERATION):
            try:
                if self._listening is None:
                    return False
                accepted, _ = self._listening.accept()
            except OSError:  # none is left, or the process has too many files open
                return count > 0
            task = self._loop.create_task(self._adopt(accepted))
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)
        return True

    async def _adopt(self, accepted: socket.socket) -> None:
        with suppress(OSError):  # the client is gone again
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(lambda: Connection(self), accepted)

    def remove(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        if not self._connections:
            self._empty.set()

    def _check(self) -> None:
        """Closes connections whose time is over, again and again."""
        self.heads.set_date(formatdate(time.time(), usegmt=True))
        now = self._loop.time()
        self._trim(now)
        over = [one for one in self._connections if one.deadline <= now]
        for connection in over[:_CLOSES_PER_ITERATION]:
            connection.abort()
        self._loop.call_later(_CHECK_S if len(over) <= _CLOSES_PER_ITERATION else 0, self._check)

    def has_room(self, more: int = 0) -> bool:
        """Tell whether connections may hold that many bytes more, besides what they are themselves."""
        return self.held + more + _CONNECTION_SIZE * len(self._connections) <= self.limits.held_max

    def _trim(self, now: float) -> None:
        """Return freed memory to the system after clients have held much of it."""
        self._held_peak = max(self._held_peak, self.held)
        if self._held_peak - self.held > _TRIM_SIZE and now >= self._next_trim and _malloc_trim is not None:
            self._held_peak, self._next_trim = self.held, now + _TRIM_S
            _malloc_trim(0)

    # -- requests ------------------------------------------------------------------------------------------------

    def submit(self, connection: Connection, request: HttpRequest) -> None:
        if self._urgent_left and request.is_small and request.path.startswith(self._urgent):
            self._urgent_left -= 1
            self._plan_iteration()
            self._start(connection, request, self._marked or self.respond)
        elif len(self._waiting) >= WAITING_MAX or self._running >= RUNNING_MAX:
            self._loop.call_soon(connection.refuse, request, self.failure(overloaded()))
        else:
            self._waiting.append((connection, request))
            self._plan_iteration()

    def submit_whole(self, connection: Connection, request: HttpRequest) -> None:
        """Answer a request in the callback that has received it, if no other one waits and there is time."""
        if (
            self._is_planned
            or self._running >= RUNNING_MAX
            or request.path.startswith(self._urgent)
            or not self._first_steps.is_ready
        ):
            self.submit(connection, request)
        else:
            self._running += 1
            connection.begin(request, self.respond, self._first_steps)

    def _start(self, connection: Connection, request: HttpRequest, respond: Respond) -> None:
        self._running += 1
        connection.start(request, respond)

    async def _respond_inside(
        self, urgently: Callable[[], AbstractContextManager[None]], request: HttpRequest
    ) -> Response:
        """Answer with the mark of urgent requests, which the next request of this connection must not inherit."""
        with urgently():
            return await self.respond(request)

    def _respond_in_slices(self, request: HttpRequest) -> Awaitable[Response]:
        return self._slicer.run(self.respond(request))

    def _plan_iteration(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._loop.call_soon(self._iterate)

    def _iterate(self) -> None:
        self._is_planned = False
        self._urgent_left = _URGENT_PER_ITERATION
        starts = self._starts_now()
        self._slicer.begin_slice()
        for _ in range(starts):
            connection, request = self._waiting.popleft()
            self._start(connection, request, self._respond_in_slices)
        if self._more_to_accept:
            self._more_to_accept = self._accept_more()
        if self._more_to_accept or self._waiting:
            self._plan_iteration()

    def _starts_now(self) -> int:
        """Return how many requests begin now: at least one, unless too many have begun and have more to do."""
        unfinished = self._slicer.waiting
        if unfinished >= UNFINISHED_MAX:
            return 0
        return min(len(self._waiting), max(1, _STARTS_PER_ITERATION - unfinished))

    def finished(self, connection: Connection) -> None:
        self._running -= 1
        if connection in self._connections:
            del self._connections[connection]
            self._connections[connection] = None

    # -- start and stop ------------------------------------------------------------------------------------------

    async def serve(self, listening: socket.socket, stop: asyncio.Event, limit_s: float) -> None:
        """Serve until `stop`; then requests that have begun get `limit_s` to finish."""
        server = await self._loop.create_server(lambda: Connection(self), sock=listening, backlog=BACKLOG)
        self._listening = listening
        await stop.wait()
        self.is_stopping = True
        self._listening = None
        server.close()
        for connection in list(self._connections):
            connection.stop()
        if self._connections:
            try:
                await asyncio.wait_for(self._empty.wait(), limit_s)
            except TimeoutError:
                for connection in list(self._connections):
                    connection.abort()
