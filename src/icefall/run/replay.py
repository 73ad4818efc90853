"""The replay process: recorded chains as an upstream of the demo, for as long as the program runs."""

import asyncio
import socket

from icefall.demo.chains import recordings
from icefall.demo.replay import Replay, ReplayServer
from icefall.run.child import watch_stop


async def run_replay(listening: socket.socket) -> int:
    """Serves until it is stopped; the process's exit code."""
    stopped = asyncio.Event()
    watch_stop(lambda _: stopped.set())
    server = ReplayServer({name: Replay(recording) for name, recording in recordings().items()})
    await server.start(listening)
    await stopped.wait()
    await server.stop()
    return 0
