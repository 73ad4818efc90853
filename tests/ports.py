"""Ports for servers that do not choose one by themselves."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def hold_port() -> socket.socket:
    """A port of loopback that is given to no other process until this socket is closed. Nothing listens there yet; a
    server that sets SO_REUSEADDR, as they all do, may."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


@contextmanager
def held_port() -> Iterator[int]:
    with hold_port() as held:
        yield port_of(held)


def port_of(held: socket.socket) -> int:
    return int(held.getsockname()[1])
