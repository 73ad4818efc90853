"""Processes that index a recorded chain with a webhook, or deliver its messages, and are killed with SIGKILL at a given
statement, or whose PostgreSQL server is."""

import asyncio
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.postgres.server import PostgresServer
from tests.store.opened import die_at
from tests.waiting import LIMIT_S
from tests.webhooks.scene import Scene, blocks

from icefall.compose.stores import Stores
from icefall.db import postgres
from icefall.db.engine import StoreError
from icefall.evm.model import BlockRows
from icefall.webhooks.retrying import LEASE_S, Outcome

BATCH, BLOCKS = 2, 40
SESSION_LOST = 3  # the exit code of a process whose server was killed
STEP_S = LEASE_S + 1.0  # from one process to the next: what a killed one had claimed may be tried again
_forks = multiprocessing.get_context("fork")  # the recorded blocks are derived once, before


def chain() -> list[BlockRows]:
    """The blocks that are indexed."""
    return blocks()[:BLOCKS]


class Installation(NamedTuple):
    """The stores of a run, and the file that stands for the receiver. `url` is empty for SQLite."""

    folder: Path
    url: str = ""
    prefix: str = ""

    def scene(self) -> Scene:
        return Scene(self.folder, Stores(self.folder, self.url, self.prefix) if self.url else None)

    @property
    def received(self) -> Path:
        return self.folder / "received"


class Sink:
    """A receiver that takes everything, and notes it before it answers."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __call__(self, url: str, body: bytes, headers: Mapping[str, str], owner: str) -> Outcome:
        line = json.dumps({"id": headers["webhook-id"], "body": body.decode()}).encode() + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line)
        os.close(file)
        return Outcome(200)


def index(at: Installation, _: float) -> None:
    """Store the blocks that are missing."""
    scene = at.scene()

    async def run() -> None:
        tip = scene.store.tip()
        left = [block for block in chain() if tip is None or block.block.number > tip.number]
        for first in range(0, len(left), BATCH):
            await scene.put(left[first : first + BATCH])

    asyncio.run(run())
    scene.close()


def deliver(at: Installation, now: float) -> None:
    """Send what is due."""
    scene = at.scene()
    scene.now = now
    asyncio.run(scene.delivery(Sink(at.received)).drain())
    scene.close()


def kill_server_at(server: PostgresServer, statement: int, is_killed: Any, restarted: threading.Event) -> None:
    """Kill the server, not this process, at the n-th statement of a transaction, and start it again."""
    left = statement

    def counted(method: Any) -> Any:
        def run(*args: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                is_killed.value = 1  # before: other threads lose their sessions too
                server.kill()
                server.start()
                restarted.set()
            return method(*args)

        return run

    for name in ("rows", "rows_of_each", "run", "run_many"):
        setattr(postgres._PostgresTransaction, name, counted(getattr(postgres._PostgresTransaction, name)))


class Ended(NamedTuple):
    """How a process ended: whether it did all its work, and whether it or its server was killed."""

    is_done: bool
    is_killed: bool


def run_killed(
    run: Callable[[Installation, float], None],
    at: Installation,
    now: float,
    point: int = 0,
    server: PostgresServer | None = None,
) -> Ended:
    """Run a process that is killed, or whose server is, at a statement; 0: never."""
    is_killed, restarted = _forks.Value("i", 0), threading.Event()

    def child() -> None:
        if point and server is None:
            die_at(point)
        elif point and server is not None:
            kill_server_at(server, point, is_killed, restarted)
        try:
            run(at, now)
        except StoreError:
            if not is_killed.value:
                raise
            sys.exit(SESSION_LOST)
        finally:
            if is_killed.value:  # by a thread that still waits for it
                restarted.wait(LIMIT_S)

    process = _forks.Process(target=child, daemon=True)
    process.start()
    process.join(LIMIT_S)
    code = process.exitcode
    process.kill()
    assert code is not None, "it hangs"
    if point and server is None:
        assert code in (0, -signal.SIGKILL), "it failed for another reason than the kill"
        return Ended(code == 0, code != 0)
    assert code == 0 or (code == SESSION_LOST and is_killed.value), "it failed for another reason than the kill"
    return Ended(code == 0, bool(is_killed.value))
