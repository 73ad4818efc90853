"""The two small processes beside engine, indexer and workers.

`run_limits` owns budgets and usage where no engine runs, next to `icefall data` and `icefall metrics`. It is not a
thread of a listener, which forks its workers: they would inherit its locks and its open store. `run_replay` serves the
recorded chains of the demo as a node would.
"""

import asyncio
import socket
from pathlib import Path

from icefall.access.budget_server import serve_budgets
from icefall.compose.child import watch_stop
from icefall.compose.stores import stores_of
from icefall.config.settings import Config
from icefall.demo.chains import recordings
from icefall.demo.replay import Replay, ReplayServer
from icefall.observe.counters import clear


async def run_limits(config: Config) -> int:
    """Own budgets and usage until stopped; return the process's exit code."""
    data_dir = Path(config.data_dir)
    clear(data_dir / "run")  # as the engine does
    codes: list[int] = []
    stores = stores_of(config)
    owning = asyncio.create_task(serve_budgets(data_dir, stores.access_store, drops_old=not stores.url))

    def stop(code: int) -> None:
        codes.append(code)
        owning.cancel()

    watch_stop(stop)
    await asyncio.wait({owning})
    stores.close()
    return codes[0] if codes else 1


async def run_replay(listening: socket.socket) -> int:
    """Serves until it is stopped; the process's exit code."""
    stopped = asyncio.Event()
    watch_stop(lambda _: stopped.set())
    server = ReplayServer({name: Replay(recording) for name, recording in recordings().items()})
    await server.start(listening)
    await stopped.wait()
    await server.stop()
    return 0
