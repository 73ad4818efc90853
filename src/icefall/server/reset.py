"""Ending a connection at once: what its client has not received is dropped, by the kernel too."""

import asyncio
import fcntl
import socket
import struct
import termios
from contextlib import suppress

_NO_LINGER = struct.pack("ii", 1, 0)


def abort(transport: asyncio.Transport) -> None:
    """With unsent bytes the kernel would keep them, and try to send them, for minutes. Others see a usual end."""
    opened = transport.get_extra_info("socket")
    if opened is not None:
        with suppress(OSError):
            unsent = any(fcntl.ioctl(opened.fileno(), termios.TIOCOUTQ, bytes(4)))
            if unsent or transport.get_write_buffer_size():
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    transport.abort()
