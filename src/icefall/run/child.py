"""The child's side of the supervisor: its arguments, and what the supervisor sends while it runs.

A child reads its arguments as one line of JSON from its standard input; further lines are messages. The end of that
input means that the supervisor is gone, and the child stops too. The engine writes `ready` to its standard output.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable

import msgspec

from icefall.config.settings import Config

ENGINE, INDEXER, REPLAY, LIMITS = "engine", "indexer", "replay", "limits"  # the roles besides the listeners
READY = b"ready\n"
TRY_AGAIN = 75  # exit code of a restarted child whose store cannot be used now, on a full disk for example
DRAINING = "draining"  # the message that a shutdown has begun
ENGINE_READY = "engine-ready"  # to workers, which serve health only until then


class ChildArguments(msgspec.Struct, frozen=True):
    """`role` is `engine`, `indexer`, `replay`, `limits` or the name of a listener. `listening`: the descriptor of the
    socket to accept from. `restarted`: it takes the place of one that has ended while the program runs."""

    role: str
    verb: str
    config: Config
    listening: int = 0
    restarted: bool = False


def child_arguments() -> ChildArguments:
    """The first line of standard input. Read unbuffered, because a thread reads the lines after it."""
    return msgspec.json.decode(_line(), type=ChildArguments)


def _line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            break
        line += piece
    return line


def watch_supervisor(received: Callable[[str], None]) -> None:
    """Calls `received` with each message, from a thread; with an empty text when the supervisor is gone."""

    def read() -> None:
        while line := _line():
            received(line.decode().strip())
        received("")

    threading.Thread(target=read, daemon=True).start()


def watch_stop(
    stop: Callable[[int], None], *, supervised: bool = True, received: Callable[[str], None] = lambda _: None
) -> None:
    """Calls `stop` with an exit code in the running event loop: 0 at SIGTERM or SIGINT, 1 when the supervisor is gone.
    `received` gets its messages, in the event loop too."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, 0)

    def hand_over(line: str) -> None:
        if line:
            loop.call_soon_threadsafe(received, line)
        else:
            loop.call_soon_threadsafe(stop, 1)

    if supervised:
        watch_supervisor(hand_over)
