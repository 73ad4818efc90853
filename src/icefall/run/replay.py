"""The replay process: recorded chains as an upstream of the demo, for as long as the program runs."""

import asyncio
import signal
from functools import partial

from icefall.demo.chains import recordings
from icefall.demo.replay import Replay, ReplayServer
from icefall.run.supervisor import when_orphaned


async def run_replay(port: int) -> int:
    """Until told to stop; the process's exit code."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    when_orphaned(lambda line: None if line else _end(loop, stopped))
    server = ReplayServer({name: Replay(recording) for name, recording in recordings().items()})
    await server.start(port)
    await stopped.wait()
    await server.stop()
    return 0


def _end(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    """The supervisor is gone; a thread has heard it."""
    loop.call_soon_threadsafe(partial(stopped.set))
