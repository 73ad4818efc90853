"""A replayed upstream in a thread of its own, for tests that follow it from another process."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from tests.waiting import LIMIT_S


class Upstream(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


U = TypeVar("U", bound=Upstream)


@contextmanager
def in_thread(upstream: U) -> Iterator[U]:
    """On a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(upstream.start(), loop).result(LIMIT_S)
        try:
            yield upstream
        finally:  # of a failed test too: an open socket would fail a later one
            asyncio.run_coroutine_threadsafe(upstream.stop(), loop).result(LIMIT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LIMIT_S)
        loop.close()
