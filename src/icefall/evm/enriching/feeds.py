"""Imports of external lists (prices, reputations): a file that is read when it changes, or a URL polled regularly."""

import asyncio
import hashlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from icefall.db.engine import Store, Transaction
from icefall.evm.enriching.counts import EnrichCounts
from icefall.evm.enriching.guarded_fetcher import FetchFailed, GuardedFetcher, TooLarge
from icefall.upstream.meter import Clock
from icefall.upstream.pool import PoolLog

SIZE_MAX = 64 << 20  # bytes of a list
ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")  # of a token, as lists contain it
_RETRY_S = 60.0
T = TypeVar("T")


class FeedError(Exception):
    """The list cannot be read or is invalid. What was imported before stays."""


class FileFeed:
    """A file. It has changed if its modification time, size or inode differ."""

    def __init__(self, path: str) -> None:
        self.name = path
        self._path = Path(path)
        self._imported: tuple[int, int, int] | None = None
        self._pending: tuple[int, int, int] | None = None

    async def fresh(self) -> bytes | None:
        """Its bytes, if they differ from what was imported last."""
        try:
            stat = self._path.stat()
            self._pending = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if self._pending == self._imported:
                return None
            if stat.st_size > SIZE_MAX:
                raise FeedError(f"{self.name} has more than {SIZE_MAX} bytes")
            return await asyncio.to_thread(self._path.read_bytes)
        except OSError as error:
            self._pending = None  # a repaired file may have the same time and size
            raise FeedError(f"{self.name} cannot be read: {error.strerror}") from error

    def mark_imported(self) -> None:
        self._imported = self._pending


class HttpFeed:
    """A URL, fetched every `every_s` seconds; sooner after a failure."""

    def __init__(self, url: str, guard: GuardedFetcher, every_s: float, clock: Clock) -> None:
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.hostname}"  # path and query may contain a secret
        self._url = url
        self._guard = guard
        self._every_s = every_s
        self._clock = clock
        self._next_s = clock.now()
        self._last = self._pending = b""  # digests

    async def fresh(self) -> bytes | None:
        if self._clock.now() < self._next_s:
            return None
        self._next_s = self._clock.now() + min(self._every_s, _RETRY_S)
        try:
            body = await self._guard.get(self._url, trusted=True)
        except (FetchFailed, TooLarge) as error:
            raise FeedError(f"{self.name} cannot be fetched: {error}") from error
        self._next_s = self._clock.now() + self._every_s
        self._pending = hashlib.sha256(body).digest()
        return None if self._pending == self._last else body

    def mark_imported(self) -> None:
        self._last = self._pending


class FeedImport(Generic[T]):
    """Imports one list from its feed into its table, in one transaction. Without a feed the table is emptied once."""

    def __init__(
        self,
        name: str,
        feed: FileFeed | HttpFeed | None,
        parse: Callable[[bytes], T],
        put: Callable[[T, Transaction], None],
        empty: T,
        *,
        store: Store,
        counts: EnrichCounts,
        log: PoolLog,
    ) -> None:
        self._name = name
        self._feed = feed
        self._parse = parse
        self._put = put
        self._empty: T | None = empty
        self._store = store
        self._counts = counts
        self._log = log
        self._last_error = ""

    async def round(self) -> bool:
        """Import the list if it has changed. Whether it had."""
        if self._feed is None:
            if self._empty is not None:
                await self._store.write(partial(self._put, self._empty))
                self._empty = None
            return False
        try:
            raw = await self._feed.fresh()
            if raw is None:
                return False
            rows = await asyncio.to_thread(self._parse, raw)
        except FeedError as error:
            self._feed.mark_imported()  # an invalid list is not parsed twice
            self._report(str(error))
            return False
        await self._store.write(partial(self._put, rows))
        self._feed.mark_imported()
        self._counts.lists_loaded[self._name] += 1
        self._last_error = ""
        return True

    def _report(self, error: str) -> None:
        self._counts.failures[self._name] += 1
        if error != self._last_error:
            self._log.warn(f"{self._name}: list not imported, the previous one stays", error=error)
            self._last_error = error
