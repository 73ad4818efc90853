"""The request as the app sees it: a head, and a body that may still be arriving."""

import asyncio
from collections.abc import Callable

from icefall.errors import BadRequest, BodyTooLarge, IcefallError, Unavailable
from icefall.server.body import Chunks, KnownLength, reader_of
from icefall.server.head import RequestHead

_NOTHING_MISSING = KnownLength(0)
SMALL_BODY_SIZE = 1024


def cut_off() -> BadRequest:
    return BadRequest("the request body ended before it was complete; nothing was executed")


def too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"a request body may be {limit} bytes long at most")


def overloaded() -> Unavailable:
    return Unavailable("too many requests are being answered; try again")


class HttpRequest:
    """A request whose head has arrived.

    A body longer than `body_max` is not kept: `body` raises BodyTooLarge then. `whole` is the body, if all of it is
    there and it is not too long. With `is_last`, the connection ends after the answer.
    """

    __slots__ = (
        "_body",
        "_body_max",
        "_continue",
        "_failure",
        "_head",
        "_reader",
        "_waiting",
        "host",
        "is_last",
        "method",
        "path",
        "peer",
        "query",
        "size",
    )

    def __init__(
        self,
        head: RequestHead,
        peer: str,
        body_max: int,
        send_continue: Callable[[], None],
        whole: bytes | None = None,
    ) -> None:
        self._head = head
        self.method = head.method
        self.path = head.path
        self.query = head.query
        self.host = head.host
        self.peer = peer
        self._body_max = body_max
        self._continue = send_continue if head.expects else None
        self.is_last = False
        self._failure: IcefallError | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._body: bytes | bytearray = whole or b""
        self.size = len(self._body)  # bytes of the body that are kept
        if whole is not None:
            self._reader: KnownLength | Chunks = _NOTHING_MISSING
            return
        self._reader = reader_of(head.length)
        if head.length is not None and head.length > body_max:
            self.fail(too_large(body_max))

    @property
    def is_complete(self) -> bool:
        return self._reader.is_complete

    @property
    def is_small(self) -> bool:
        """Tell whether the body is short enough to be a single call."""
        return self._head.length is not None and self._head.length <= SMALL_BODY_SIZE

    @property
    def held(self) -> int:
        """The memory that the request takes, in bytes."""
        return self._head.size + self.size

    @property
    def keep_alive(self) -> bool:
        return self._head.keep_alive and self._reader.is_complete and not self.is_last

    @property
    def is_http10(self) -> bool:
        return not self._head.minor

    def header(self, name: str) -> str | None:
        return self._head.text(name)

    def headers(self, name: str) -> list[str]:
        key = name.encode()
        first = self._head.fields.get(key)
        rest = [value for field, value in self._head.repeated if field == key]
        return [value.decode("latin-1") for value in ([] if first is None else [first, *rest])]

    # -- the body, from the connection's side --------------------------------------------------------------------

    def take(self, data: bytes | bytearray) -> int:
        """Take the part of the body at the start of `data`, and return how many bytes that was.

        Raises InvalidChunk for what is not a chunk.
        """
        piece, used = self._reader.take(data)
        if self._failure is None:
            if not self.size:
                self._body = piece
            else:
                if isinstance(self._body, bytes):
                    self._body = bytearray(self._body)
                self._body += piece
            self.size += len(piece)
            if self.size > self._body_max:
                self.fail(too_large(self._body_max))
        if self._reader.is_complete:
            self._body = bytes(self._body)  # the only copy from now on
            self._wake()
        return used

    def fail(self, failure: IcefallError) -> None:
        """Drop the body, which is of no use: `body` raises `failure`."""
        if self._failure is None:
            self._failure = failure
            self._body = b""
            self.size = 0
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # -- from the app's side -------------------------------------------------------------------------------------

    def body_now(self, limit: int) -> bytes | None:
        """Return the whole body if it is there and can be used, else None: `body` waits for it, or says why not."""
        if self._failure is None and self._reader.is_complete and self.size <= limit:
            return bytes(self._body)
        return None

    async def body(self, limit: int) -> bytes:
        """Return the whole body. Raises BodyTooLarge as soon as it exceeds `limit`, BadRequest when it breaks off."""
        if self._failure is None and not self._reader.is_complete:
            if self._continue is not None:
                self._continue()
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        if self._failure is not None:
            raise self._failure
        if self.size > limit:
            raise too_large(limit)
        return bytes(self._body)
