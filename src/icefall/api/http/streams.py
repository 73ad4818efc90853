"""Server-Sent Events: an answer that goes on, and how many of them a client may have open at a worker."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from icefall.errors import TooManyRequests

PER_CLIENT_MAX = 8
PER_WORKER_MAX = 256
_RETRY_S = 5


class EventStream(msgspec.Struct, frozen=True):
    """The result of a handler: the pieces of an answer, as the client takes them. Nothing is made ahead of it."""

    pieces: Callable[[], AsyncGenerator[bytes, None]]


class OpenStreams:
    """The open streams of this worker, counted per client."""

    def __init__(self, per_client_max: int = PER_CLIENT_MAX, per_worker_max: int = PER_WORKER_MAX) -> None:
        self._per_client_max = per_client_max
        self._per_worker_max = per_worker_max
        self._open: Counter[str] = Counter()

    def limited(self, client: str, stream: EventStream) -> AsyncGenerator[bytes, None]:
        """Open a stream. Raises TooManyRequests if the client, or all together, have too many open."""
        if self._open[client] >= self._per_client_max or self._open.total() >= self._per_worker_max:
            raise TooManyRequests(f"a client may have {self._per_client_max} streams open: close one", _RETRY_S)

        async def pieces() -> AsyncGenerator[bytes, None]:
            self._open[client] += 1
            try:
                async for piece in stream.pieces():
                    yield piece
            finally:
                self._open[client] -= 1
                if not self._open[client]:
                    del self._open[client]

        return pieces()


def event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


def position(text: str) -> bytes:
    """Set the ID from which a client resumes, without an event."""
    return f"id: {text}\n\n".encode()


KEEP_ALIVE = b": still here\n\n"
