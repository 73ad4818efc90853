"""Connections to receivers that stay open for a moment after an answer, so that the next request needs no new one.

A connection is reused for the same caller, origin and set of addresses alone, so it always leads to an address that
was checked for the request. Idle ones are closed after a few seconds, earlier than most servers do, and their number is
bounded. What a server closes meanwhile is noticed by `Exchange.is_reused`: the caller then sends once more over a new
connection.
"""

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar

import aiohttp
from aiohttp import AddrInfoType

IDLE_S = 4.0  # the servers that people use close after 5 s or later
KEPT_MAX = 512  # connections that may be idle at a time
_ANSWER_MAX = 8192  # bytes of an answer that are read to reuse its connection; a longer one costs a new connection
_READ_S = 0.25  # for the rest of an answer whose head has come

Key = tuple[str, str, tuple[str, ...]]  # the caller, the origin, and the addresses that were checked
OpenSession = Callable[[Sequence[str], float], aiohttp.ClientSession]


class Exchange:
    """One request. `is_reused`: it was sent over a connection that had been idle."""

    __slots__ = ("is_reused",)

    def __init__(self) -> None:
        self.is_reused = True  # until a socket is made for it
        _EXCHANGE.set(self)


_EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")  # of this task


def noted_socket(address: AddrInfoType) -> socket.socket:
    """Make the socket of a new connection, and note that the task's request is sent over it."""
    _EXCHANGE.get().is_reused = False
    family, kind, protocol, _, _ = address
    return socket.socket(family, kind, protocol)


class Receiver:
    """The connections of one key. `places`: how many there may be, used or idle."""

    __slots__ = ("busy", "idle_since", "is_retired", "key", "places", "session")

    def __init__(self, key: Key, session: aiohttp.ClientSession) -> None:
        self.key = key
        self.session = session
        self.busy = 0
        self.places = 0
        self.idle_since = 0.0
        self.is_retired = False  # it closes idle connections too early to use them again


class KeptConnections:
    """The connections of all receivers. `open_session` makes a session that connects to given addresses and closes what
    is idle for a time."""

    def __init__(
        self, open_session: OpenSession, kept_max: int = KEPT_MAX, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._open_session = open_session
        self._kept_max = kept_max
        self._clock = clock
        self._receivers: dict[Key, Receiver] = {}
        self._idle: OrderedDict[Key, Receiver] = OrderedDict()  # those without a request, the longest idle one first
        self._places = 0
        self._closing: set[asyncio.Task[None]] = set()

    def take(self, caller: str, origin: str, addresses: Sequence[str]) -> Receiver:
        """Begin a request; `give_back` ends it."""
        key = (caller, origin, tuple(sorted(addresses)))
        receiver = self._receivers.get(key)
        if receiver is None:
            receiver = self._receivers[key] = Receiver(key, self._open_session(addresses, IDLE_S))
        self._idle.pop(key, None)
        receiver.busy += 1
        if receiver.busy > receiver.places:
            receiver.places += 1
            self._places += 1
        self._close_idle()
        return receiver

    def give_back(self, receiver: Receiver) -> None:
        receiver.busy -= 1
        if receiver.busy:
            return
        if receiver.is_retired or self._places > self._kept_max:
            self._close(receiver)
            return
        receiver.idle_since = self._clock()
        self._idle[receiver.key] = receiver

    def _close_idle(self) -> None:
        """Close what is idle for too long, and the longest idle ones of too many."""
        before = self._clock() - IDLE_S
        while self._idle:
            oldest = next(iter(self._idle.values()))
            if self._places <= self._kept_max and oldest.idle_since > before:
                return
            del self._idle[oldest.key]
            self._close(oldest)

    def _close(self, receiver: Receiver) -> None:
        del self._receivers[receiver.key]
        self._places -= receiver.places
        task = asyncio.ensure_future(receiver.session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all connections, also those of requests that are not answered yet."""
        for receiver in list(self._receivers.values()):
            self._close(receiver)
        self._idle.clear()
        await asyncio.gather(*self._closing, return_exceptions=True)


async def read_rest(response: aiohttp.ClientResponse, receiver: Receiver) -> None:
    """Read the rest of a short answer, so that its connection can be reused; give the connection up otherwise."""
    if _closes_early(response.headers.get("keep-alive", "")):
        receiver.is_retired = True
    if response.closed:  # it was whole when its head was read
        return
    try:
        if (response.content_length or 0) <= _ANSWER_MAX:
            async with asyncio.timeout(_READ_S):
                await _read(response)
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
        pass
    finally:
        response.close()  # without effect on a connection that was given back at the end of the answer


async def _read(response: aiohttp.ClientResponse) -> None:
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > _ANSWER_MAX:
            return


def _closes_early(keep_alive: str) -> bool:
    """Whether a server says, as in `timeout=5, max=100`, that it may close before we do."""
    for part in keep_alive.lower().split(","):
        name, _, value = part.strip().partition("=")
        if name == "timeout" and value.isascii() and value.isdigit():
            return int(value[:9]) <= IDLE_S
    return False
