"""The process that owns the budgets of a data directory and leases slices of them to workers over a socket.

The engine owns them where there is one, else a listener's own process. The first process holds a lock and the others
wait for it, so that `icefall data` and `icefall metrics` share the budgets when both run.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from icefall.access.budgets import Budgets, Grant, Tier
from icefall.db.engine import StoreError
from icefall.db.lock import StoreLock
from icefall.errors import StartRefused
from icefall.ipc.socket import SocketServer, socket_path

_RETRY_S = 1.0


def budget_socket(data_dir: Path) -> Path:
    return socket_path(data_dir, "limits.sock")


def budget_commands(budgets: Budgets, clock: Callable[[], float] = time.time) -> dict[str, Callable[..., Any]]:
    """The commands that a worker may send to the owner."""

    def lease(caller: str, per_minute: int, per_day: int, need: int) -> Grant:
        return budgets.lease(caller, Tier("", per_minute, per_day), need, int(clock()))

    def give_back(minute: int, unspent: list[tuple[str, int]]) -> None:
        for caller, units in unspent:
            budgets.give_back(caller, units, minute)

    return {"lease": lease, "give_back": give_back}


async def serve_budgets(data_dir: Path) -> None:
    """Own the budgets as soon as no other process does, until cancelled."""
    lock = await _lock(data_dir / "run" / "limits.lock")
    server = SocketServer(budget_socket(data_dir), budget_commands(Budgets()), lambda: lambda: None)
    try:
        while True:
            try:
                await server.start()
                break
            except (OSError, StartRefused):  # until then each worker grants its share
                await asyncio.sleep(_RETRY_S)
        await asyncio.Event().wait()
    finally:
        await server.stop()
        lock.release()


async def _lock(path: Path) -> StoreLock:
    while True:
        try:
            return StoreLock(path)
        except StoreError:
            await asyncio.sleep(_RETRY_S)
