"""The one process of a data directory that owns the budgets, and hands out slices of them over a socket.

The engine does it where there is one, else a listener's own process. Whoever is first holds a lock; the others wait for
their turn, so that the budgets stay one when `icefall data` and `icefall metrics` run side by side.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from icefall.access.limits import Budgets, Grant, Tier
from icefall.db.engine import StoreError
from icefall.db.lock import StoreLock
from icefall.errors import StartRefused
from icefall.ipc.socket import EngineServer, socket_path

_RETRY_S = 1.0


def limits_socket(data_dir: Path) -> Path:
    return socket_path(data_dir, "limits.sock")


def commands(budgets: Budgets, clock: Callable[[], float] = time.time) -> dict[str, Callable[..., Any]]:
    """What a worker may ask of the owner."""

    def lease(who: str, per_minute: int, per_day: int, need: int) -> Grant:
        return budgets.lease(who, Tier("", per_minute, per_day), need, int(clock()))

    def give_back(minute: int, unspent: list[tuple[str, int]]) -> None:
        for who, units in unspent:
            budgets.give_back(who, units, minute)

    return {"lease": lease, "give_back": give_back}


async def keep_limits(data_dir: Path) -> None:
    """Own the budgets as soon as nobody else does, until cancelled."""
    lock = await _owned(data_dir / "run" / "limits.lock")
    server = EngineServer(limits_socket(data_dir), commands(Budgets()), lambda: lambda: None)
    try:
        while True:
            try:
                await server.start()
                break
            except (OSError, StartRefused):  # meanwhile every worker grants its share by itself
                await asyncio.sleep(_RETRY_S)
        await asyncio.Event().wait()
    finally:
        await server.stop()
        lock.release()


async def _owned(path: Path) -> StoreLock:
    while True:
        try:
            return StoreLock(path)
        except StoreError:
            await asyncio.sleep(_RETRY_S)
