"""Lists that are kept elsewhere: a file that is read when it changed, or an address that is asked now and then."""

import asyncio
import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from icefall.db.engine import Store, Transaction
from icefall.evm.enriching.counts import EnrichCounts
from icefall.evm.enriching.guard import GuardedFetcher, TooLarge, Unreachable
from icefall.upstream.meter import Clock
from icefall.upstream.pool import PoolLog

SIZE_MAX = 64 << 20
_RETRY_S = 60.0
T = TypeVar("T")


class FeedError(Exception):
    """There is nothing to be had, or nothing that makes sense. What was had before stays."""


class FileFeed:
    """A file. Changed means another time of change, size or file."""

    def __init__(self, path: str) -> None:
        self.name = path
        self._path = Path(path)
        self._seen: tuple[int, int, int] | None = None
        self._taking: tuple[int, int, int] | None = None

    async def fresh(self) -> bytes | None:
        """Its bytes, if they are not those that were taken last."""
        try:
            stat = self._path.stat()
            self._taking = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if self._taking == self._seen:
                return None
            if stat.st_size > SIZE_MAX:
                raise FeedError(f"{self.name} has more than {SIZE_MAX} bytes")
            return await asyncio.to_thread(self._path.read_bytes)
        except OSError as error:
            self._taking = None  # what is mended may look the same
            raise FeedError(f"{self.name} cannot be read: {error.strerror}") from error

    def taken(self) -> None:
        self._seen = self._taking


class HttpFeed:
    """An address, asked every so often; sooner if it failed."""

    def __init__(self, url: str, guard: GuardedFetcher, every_s: float, clock: Clock) -> None:
        parts = urlsplit(url)
        self.name = f"{parts.scheme}://{parts.hostname}"  # the rest may be secret
        self._url = url
        self._guard = guard
        self._every_s = every_s
        self._clock = clock
        self._next_s = clock.now()
        self._last = self._taking = b""  # digests

    async def fresh(self) -> bytes | None:
        if self._clock.now() < self._next_s:
            return None
        self._next_s = self._clock.now() + min(self._every_s, _RETRY_S)
        try:
            body = await self._guard.get(self._url, trusted=True)
        except (Unreachable, TooLarge) as error:
            raise FeedError(f"{self.name} gives nothing: {error}") from error
        self._next_s = self._clock.now() + self._every_s
        self._taking = hashlib.sha256(body).digest()
        return None if self._taking == self._last else body

    def taken(self) -> None:
        self._last = self._taking


class FeedImport(Generic[T]):
    """One list, from its feed into its table: all of it in one transaction, or what was there before stays.

    Without a feed the table is emptied once.
    """

    def __init__(
        self,
        what: str,
        feed: FileFeed | HttpFeed | None,
        parse: Callable[[bytes], T],
        put: Callable[[T, Transaction], None],
        empty: T,
        *,
        store: Store,
        counts: EnrichCounts,
        log: PoolLog,
    ) -> None:
        self._what = what
        self._feed = feed
        self._parse = parse
        self._put = put
        self._empty: T | None = empty
        self._store = store
        self._counts = counts
        self._log = log
        self._said = ""

    async def round(self) -> bool:
        """Take what is new. Whether there was anything."""
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
        except FeedError as trouble:
            self._feed.taken()  # nonsense is not read twice
            self._complain(str(trouble))
            return False
        await self._store.write(partial(self._put, rows))
        self._feed.taken()
        self._counts.lists_loaded[self._what] += 1
        self._said = ""
        return True

    def _complain(self, trouble: str) -> None:
        self._counts.failures[self._what] += 1
        if trouble != self._said:
            self._log.warn(f"{self._what}: the list cannot be used, what was read before stays", reason=trouble)
            self._said = trouble
