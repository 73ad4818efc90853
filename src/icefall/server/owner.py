"""What a connection needs of the listener that owns it: limits, the memory that all of them hold, and whom to tell."""

from typing import Protocol, TypeVar

import msgspec

from icefall.errors import IcefallError
from icefall.server.head import HeadReader
from icefall.server.request import HttpRequest
from icefall.server.response import PackedHeads, Response

Owned_contra = TypeVar("Owned_contra", contravariant=True)


class HttpLimits(msgspec.Struct, frozen=True):
    """Limits of a listener's worker on its connections; times are in seconds.

    `head_s` is the time for the head of a request, from the connection or the request's first byte on. `held_max` is
    the memory in bytes for everything that is kept for clients: requests, and answers that they have not read.
    """

    head_s: float
    idle_s: float
    write_s: float
    connections_max: int
    held_max: int
    body_max: int


class ConnectionOwner(Protocol[Owned_contra]):
    """The part of the listener that a connection needs; `held` is the memory in bytes kept for all clients."""

    limits: HttpLimits
    held: int
    is_stopping: bool
    heads: PackedHeads
    remembering: dict[HeadReader, None]

    def now(self) -> float: ...

    def has_room(self, more: int = 0) -> bool: ...

    def add(self, connection: Owned_contra) -> None: ...

    def remove(self, connection: Owned_contra) -> None: ...

    def submit(self, connection: Owned_contra, request: HttpRequest) -> None: ...

    def submit_whole(self, connection: Owned_contra, request: HttpRequest) -> None:
        """Take a request from the callback that has received all of it."""
        ...

    def finished(self, connection: Owned_contra) -> None: ...

    def failure(self, error: IcefallError) -> Response: ...

    def report(self, request: str, bug: Exception) -> None: ...
