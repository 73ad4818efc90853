"""Writes answers to one client, and knows how much of them the client has not read."""

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

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
