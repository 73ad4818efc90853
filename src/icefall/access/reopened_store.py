"""The access store as a process writes it for long: opened at its first write, and again when its session was lost."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from icefall.db.engine import Store, StoreLost, Transaction

T = TypeVar("T")


class ReopenedStore:
    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._opening = asyncio.Lock()
        self._store: Store | None = None

    async def write(self, change: Callable[[Transaction], T]) -> T:
        store = await self._opened()
        try:
            return await store.write(change)
        except StoreLost:
            if self._store is store:
                self._store = None
                store.close()
            raise

    async def _opened(self) -> Store:
        """In a thread: a server that does not answer must not hold up the loop."""
        async with self._opening:
            if self._store is None:
                self._store = await asyncio.to_thread(self._open_store)
            return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
