"""The response that the app returns, and the writing side of a connection, with what its client has not read."""

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

Headers = list[tuple[str, str]]
CLOSE, KEEP_ALIVE = b"connection: close\r\n", b"connection: keep-alive\r\n"
WITHOUT_BODY = (204, 304)
_REASONS = {status.value: status.phrase for status in HTTPStatus} | {413: "Content Too Large"}


class Response(NamedTuple):
    """An answer of the app.

    `headers` may be shared by many answers and are never changed. `body` is bytes, or pieces that are sent as they
    come, for as long as the client reads them. `length`: of all pieces together, where it is known.
    """

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None]
    length: int | None = None


class PackedHeads:
    """Makes the heads of answers. Most answers of a worker have the same list of headers: its bytes are kept."""

    __slots__ = ("_begin", "_date", "_headers", "_status")

    def __init__(self) -> None:
        self._headers: Headers | None = None
        self._status = 0
        self._begin = b""
        self._date = b""

    def set_date(self, date: str) -> None:
        self._date = f"date: {date}\r\n\r\n".encode()

    def pack(self, response: Response, length: int | None, connection: bytes = b"", *, chunked: bool = False) -> bytes:
        """Return the bytes of a head.

        `length` is the length of the body, None if it is sent in chunks, or where not `chunked` until the connection
        ends. `connection` is the line of the header of that name, or nothing.
        """
        if response.headers is not self._headers or response.status != self._status:
            self._begin = _pack(response)
            self._headers, self._status = response.headers, response.status
        if length is None:
            return self._begin + (b"transfer-encoding: chunked\r\n" if chunked else b"") + connection + self._date
        if response.status in WITHOUT_BODY:
            return self._begin + connection + self._date
        return b"%bcontent-length: %d\r\n%b%b" % (self._begin, length, connection, self._date)


def _pack(response: Response) -> bytes:
    """Return the status line and the headers, without the end of the head."""
    status = f"HTTP/1.1 {response.status} {_REASONS.get(response.status, '')}"
    lines = [status, *[f"{name}: {value}" for name, value in response.headers], ""]
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1 or "\0" in head:
        raise ValueError("a header with a line break")
    return head.encode("latin-1", "replace")


SMALL_ANSWER_SIZE = 16 << 10  # bytes; cheaper to copy than to send in two pieces
_STALL_SIZE = 1 << 10  # bytes of memory of a write that waits
_NO_LINGER = struct.pack("ii", 1, 0)


class Output:
    """The writing side of a connection.

    Whatever the kernel does not take at once stalls it, so that every unsent byte is counted. `stalled` is done when
    the client has read all that was written, and None when there is nothing to wait for. `unsent` is the memory in
    bytes of what was written since it stalled.
    """

    __slots__ = ("_transport", "stalled", "unsent")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._transport.set_write_buffer_limits(high=0)
        self.stalled: asyncio.Future[None] | None = None
        self.unsent = 0

    def send(self, head: bytes, body: bytes) -> None:
        if len(body) <= SMALL_ANSWER_SIZE:
            self._transport.write(head + body)
        else:
            self._transport.writelines([head, body])
        if self.stalled is not None:
            self.unsent += len(head) + len(body)  # all of it is kept until the last byte is sent

    async def send_pieces(
        self, pieces: AsyncGenerator[bytes, None], count_unsent: Callable[[], None], *, chunked: bool
    ) -> None:
        """Send pieces as they come. When the client does not read them, call `count_unsent` and wait until it does."""
        async for piece in pieces:
            self.send(b"", b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if self.stalled is not None:
                count_unsent()
                await self.stalled
        if chunked:
            self._transport.write(b"0\r\n\r\n")

    def stall(self) -> None:
        self.stalled = asyncio.get_running_loop().create_future()
        self.unsent += _STALL_SIZE

    def resume(self) -> None:
        stalled, self.stalled = self.stalled, None
        self.unsent = 0
        if stalled is not None and not stalled.done():
            stalled.set_result(None)

    def reset(self) -> None:
        """End the connection at once and drop what its client has not received, in the kernel too.

        The kernel would keep unsent bytes, and try to send them, for minutes. Without any, the client sees a usual end.
        """
        opened = self._transport.get_extra_info("socket")
        if opened is not None:
            with suppress(OSError):
                unsent = any(fcntl.ioctl(opened.fileno(), termios.TIOCOUTQ, bytes(4)))
                if unsent or self._transport.get_write_buffer_size():
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._transport.abort()
