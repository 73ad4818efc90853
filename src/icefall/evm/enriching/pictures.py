"""Pictures of NFTs and tokens on other hosts: fetched for all readers together, so that no host learns who looks.

Callers give URLs that the store knows, and none that a client names. A file on disk is a picture by the hash of its
URL, shared by all workers; the oldest are removed when there is too much of them. What cannot be had is not asked for
again for a while.
"""

import asyncio
import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from icefall.errors import NotFound, Unavailable
from icefall.evm.enriching.nft_metadata import scheme_of, web_url_of
from icefall.evm.enriching.nft_outcomes import UnusableNft
from icefall.evm.enriching.picture_types import NotAPicture, picture_type

if TYPE_CHECKING:
    from icefall.evm.enriching.guarded_fetcher import GuardedFetcher

SIZE_MAX = 4 << 20  # bytes of one picture
TOTAL_S, AT_ONCE = 8.0, 6  # of fetches
FRESH_S = 7 * 86_400.0  # then it is fetched again
FAILED_S = 600.0
FAILED_MAX = 4_096
WAITING_MAX = 64  # requests for pictures that are not there yet
_KEPT = 0.9  # of the room, after some were removed
_GONE = "the picture cannot be had: its host does not answer, or sends something else"


def no_picture(_: str) -> bytes | None:
    """Nothing is shipped."""
    return None


class Pictures:
    """`room`: bytes on disk; 0 fetches none. `shipped`: pictures that are here without being fetched, by URI."""

    def __init__(
        self,
        folder: Path,
        room: int,
        gateway: str,
        allow: Sequence[str] = (),
        *,
        fetcher: "GuardedFetcher | None" = None,
        shipped: Callable[[str], bytes | None] = no_picture,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._room, self._gateway = folder, room, gateway
        self._allow, self._given_fetcher = allow, fetcher
        self._shipped, self._wall = shipped, wall
        self._failed: OrderedDict[str, float] = OrderedDict()  # by URL, when it may be asked for again
        self._fetches: dict[str, asyncio.Task[bytes]] = {}
        self._waiting = 0

    @cached_property
    def _fetcher(self) -> "GuardedFetcher":
        from icefall.evm.enriching.guarded_fetcher import FetchLimits, GuardedFetcher  # noqa: PLC0415 - if ever

        limits = FetchLimits(total_s=TOTAL_S, size_max=SIZE_MAX, at_once=AT_ONCE)
        return self._given_fetcher or GuardedFetcher(allow=self._allow, trusted=[self._gateway], limits=limits)

    async def get(self, uri: str) -> tuple[str, bytes]:
        """Return the type and the content of a picture; NotFound where there is none, Unavailable where too many are
        being fetched."""
        shipped = self._shipped(uri)
        if shipped is not None:
            return picture_type(shipped), shipped
        try:
            url = web_url_of(uri, self._gateway)
        except UnusableNft:
            raise NotFound("there is no picture at an address that is fetched") from None
        body = await asyncio.to_thread(self._stored, url) or await self._fetched(url, scheme_of(uri) == "ipfs")
        return picture_type(body), body

    async def _fetched(self, url: str, trusted: bool) -> bytes:
        if not self._room:
            raise NotFound("pictures of other hosts are not fetched here (--picture-cache)")
        if self._failed.get(url, 0.0) > self._wall():
            raise NotFound(_GONE)
        if self._waiting >= WAITING_MAX:
            raise Unavailable("too many pictures are being fetched: try again in a moment")
        task = self._fetches.get(url)
        if task is None:
            task = self._fetches[url] = asyncio.create_task(self._fetch(url, trusted))
            task.add_done_callback(lambda done: self._end(url, done))
        self._waiting += 1
        try:
            return await asyncio.shield(task)  # the others wait on when one client leaves
        finally:
            self._waiting -= 1

    def _end(self, url: str, done: asyncio.Task[bytes]) -> None:
        del self._fetches[url]
        if not done.cancelled():
            done.exception()  # whoever waits has it; the last client may have left

    async def _fetch(self, url: str, trusted: bool) -> bytes:
        from icefall.evm.enriching.guarded_fetcher import FetchFailed, TooLarge  # noqa: PLC0415 - as above

        try:
            body = await self._fetcher.get(url, trusted=trusted)
            picture_type(body)
        except (FetchFailed, TooLarge, NotAPicture):
            self._failed[url] = self._wall() + FAILED_S
            if len(self._failed) > FAILED_MAX:
                self._failed.popitem(last=False)
            raise NotFound(_GONE) from None
        await asyncio.to_thread(self._store, url, body)
        return body

    # -- on disk -----------------------------------------------------------------------------------------------

    def _path(self, url: str) -> Path:
        return self._folder / hashlib.sha256(url.encode()).hexdigest()

    def _stored(self, url: str) -> bytes | None:
        path = self._path(url)
        try:
            body = path.read_bytes() if path.stat().st_mtime > self._wall() - FRESH_S else None
            if body is not None:
                picture_type(body)  # a file that was damaged is fetched again
        except (OSError, NotAPicture):
            return None
        return body

    def _store(self, url: str, body: bytes) -> None:
        """Write it whole or not at all. A full disk is no reason to show no picture."""
        path = self._path(url)
        unready = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._make_room(len(body))
            unready.write_bytes(body)
            unready.replace(path)

    def _make_room(self, size: int) -> None:
        """Remove the oldest where the next one would not fit."""
        files = sorted((one.stat().st_mtime, one.stat().st_size, one.path) for one in os.scandir(self._folder))
        used = size + sum(file_size for _, file_size, _ in files)
        if used <= self._room:
            return
        for _, file_size, path in files:
            if used <= self._room * _KEPT:
                break
            Path(path).unlink(missing_ok=True)
            used -= file_size
