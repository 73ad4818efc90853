"""The child's side of the supervisor: its arguments, and what the supervisor sends while it runs.

A child reads messages from its standard input, a line each. The end of that input means that the supervisor is gone,
and the child stops too. The engine writes `ready` to its standard output.
"""

import asyncio
import os
import resource
import signal
import socket
from collections.abc import Callable

import msgspec

from icefall.config.settings import Config

# the roles besides the listeners
ENGINE, INDEXER, REPLAY, LIMITS, WEBHOOKS, EXPORTS = "engine", "indexer", "replay", "limits", "webhooks", "exports"
READY = b"ready\n"
GC_THRESHOLDS = (50_000, 20, 100)  # rows and structs come and go by the thousand, none of them in a cycle
TRY_AGAIN = 75  # exit code of a restarted child whose store cannot be used now, on a full disk for example
DRAINING = "draining"  # the message that a shutdown has begun
ENGINE_READY = "engine-ready"  # to workers, which serve health only until then


class ChildArguments(msgspec.Struct, frozen=True):
    """`role` is `engine`, `indexer`, `replay`, `limits`, `webhooks`, `exports` or the name of a listener. `listening`:
    the socket to accept from. `restarted`: it takes the place of one that has ended while the program runs."""

    role: str
    verb: str
    config: Config
    listening: socket.socket | None = None
    restarted: bool = False

    @property
    def own_socket(self) -> socket.socket:
        assert self.listening is not None
        return self.listening

    @property
    def is_engine(self) -> bool:
        return self.role == ENGINE


def watch_stop(
    stop: Callable[[int], None], *, supervised: bool = True, received: Callable[[str], None] = lambda _: None
) -> None:
    """Calls `stop` with an exit code in the running event loop: 0 at SIGTERM or SIGINT, 1 when the supervisor is gone.
    `received` gets its messages."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, 0)
    unread = b""

    def read() -> None:
        nonlocal unread
        more = os.read(0, 1024)
        if not more:
            loop.remove_reader(0)
            stop(1)
        *lines, unread = (unread + more).split(b"\n")
        for line in lines:
            received(line.decode())

    if supervised:
        loop.add_reader(0, read)


def raise_file_limit() -> int:
    """Raise the limit on open files as far as the system allows; return the limit then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # above what the kernel allows
        return soft
    return hard if hard != resource.RLIM_INFINITY else 1 << 20
