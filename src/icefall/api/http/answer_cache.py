"""The cache of whole answers of a worker, for clients that ask for the same page again and again.

A cached answer is given only where a new one would be the same byte for byte: nothing was committed to the chain's
store since before it was made, and it was not read from state. Page tokens contain the minute in which they were
issued: an answer with one is cached for that minute. Every answer from a server is cached for a second: its URL may
lead to several replicas, and the version may be that of one and the rows those of another, which lags behind. Rows of
the endpoint table say which answers depend on nothing else (`cacheable`). Only what is asked for a second time is
cached: most pages are not, and would cost memory and the version of a store for nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

import msgspec

from icefall.access.page_tokens import ISSUE_STEP_S
from icefall.server.response import Response

SIZE_MAX = 8 << 20  # bytes of all answers of a worker
_ANSWER_SIZE_MAX = 64 << 10
_SEEN_MAX = 4096  # requests that are remembered, of those without a cached answer
_OVERHEAD = 400  # bytes of an entry besides its answer and query, roughly
_SERVER_STEP_S = 1

CacheKey = tuple[str, str]  # path and query


class RestAnswer(msgspec.Struct, frozen=True):
    """The answer to one request, as a handler or the cache gave it."""

    response: Response
    units: int = 0  # to charge besides the row's weight
    has_page_token: bool = False
    is_cached: bool = False


class AnswerVersion(Protocol):
    """The version of what an answer is made from (`ChainDirectory.version`)."""

    @property
    def store(self) -> int: ...

    @property
    def is_of_server(self) -> bool: ...

    def is_without_state(self) -> bool: ...


class CacheStamp(NamedTuple):
    """The moment from which an answer is: the version of the store, and the second."""

    version: int
    second: int


class _CachedAnswer(NamedTuple):
    """A cached answer. `step_s` is 1 or 60 if it is valid to the end of its second or minute, None if it is as long as
    the version stays."""

    stamp: CacheStamp
    step_s: int | None
    answer: RestAnswer
    size: int

    def is_valid_at(self, stamp: CacheStamp) -> bool:
        same_step = self.step_s is None or self.stamp.second // self.step_s == stamp.second // self.step_s
        return same_step and self.stamp.version == stamp.version


class _Inflight(NamedTuple):
    """An answer that one request is making, and the requests that wait for it."""

    stamp: CacheStamp
    waiting: list[asyncio.Future[RestAnswer | None]]


class AnswerCache:
    """Answers by path and query. It holds `size_max` bytes at most."""

    def __init__(self, clock: Callable[[], float] = time.time, size_max: int = SIZE_MAX) -> None:
        self._clock = clock
        self._size_max = size_max
        self._answers: dict[CacheKey, _CachedAnswer] = {}
        self._seen: set[CacheKey] = set()
        self._inflight: dict[CacheKey, _Inflight] = {}
        self._size = 0

    async def around(
        self,
        key: CacheKey,
        version: Callable[[], Awaitable[AnswerVersion | None]],
        make: Callable[[], Awaitable[RestAnswer]],
    ) -> RestAnswer:
        """Return the cached answer, or make it, and cache it if nothing but the store decided what it says.

        The version is read before an answer is made: whatever changes meanwhile, the answer is then not given again.
        None: there is no store yet, or its version is unknown."""
        known = await version() if self._is_repeated(key) else None
        if known is None:
            return await make()
        stamp = CacheStamp(known.store, int(self._clock()))
        cached = self._find(key, stamp)
        if cached is None and known.is_of_server:
            cached = await self._join_inflight(key, stamp)
        if cached is not None:
            return cached
        try:
            answer = await make()
            if known.is_without_state():
                step_s = _SERVER_STEP_S if known.is_of_server else ISSUE_STEP_S if answer.has_page_token else None
                self._put(key, stamp, answer, step_s)
            return answer
        finally:
            self._finish_inflight(key, stamp)

    def _is_repeated(self, key: CacheKey) -> bool:
        """Whether it was asked for before, not too long ago."""
        if key in self._answers or key in self._seen:
            return True
        if len(self._seen) >= _SEEN_MAX:
            self._seen.clear()
        self._seen.add(key)
        return False

    def _find(self, key: CacheKey, stamp: CacheStamp) -> RestAnswer | None:
        found = self._answers.get(key)
        return found.answer if found is not None and found.is_valid_at(stamp) else None

    async def _join_inflight(self, key: CacheKey, stamp: CacheStamp) -> RestAnswer | None:
        """Wait for the answer that another request is making already, from the same version in the same second: an
        answer that is outdated is missed by all requests at once. None if there is none, or it was not cached: the
        caller makes it, and calls `_finish_inflight` however that ends. What was never cached, as it reads state, is
        not waited for."""
        inflight = self._inflight.get(key)
        if inflight is not None and inflight.stamp == stamp:
            own: asyncio.Future[RestAnswer | None] = asyncio.get_running_loop().create_future()
            inflight.waiting.append(own)
            return await own
        if key in self._answers:
            self._finish_inflight(key)
            self._inflight[key] = _Inflight(stamp, [])
        return None

    def _finish_inflight(
        self, key: CacheKey, stamp: CacheStamp | None = None, answer: RestAnswer | None = None
    ) -> None:
        """Give those who wait the answer, or leave it to them to make it. `stamp` None: of any version."""
        inflight = self._inflight.get(key)
        if inflight is not None and stamp in (None, inflight.stamp):
            del self._inflight[key]
            for one in inflight.waiting:
                if not one.done():  # cancelled
                    one.set_result(answer)

    def _put(self, key: CacheKey, stamp: CacheStamp, answer: RestAnswer, step_s: int | None = None) -> None:
        body = answer.response.body
        if not isinstance(body, bytes) or len(body) > _ANSWER_SIZE_MAX:
            return
        cached = msgspec.structs.replace(answer, units=0, is_cached=True)
        self._finish_inflight(key, stamp, cached)
        self._seen.discard(key)
        old = self._answers.pop(key, None)
        if old is not None:
            self._size -= old.size
        size = len(key[0]) + len(key[1]) + len(body) + _OVERHEAD
        self._answers[key] = _CachedAnswer(stamp, step_s, cached, size)
        self._size += size
        if self._size > self._size_max:
            self._drop_older()

    def _drop_older(self) -> None:
        """Drop those that were not made again lately: half of the bytes."""
        for key in list(self._answers):
            if self._size <= self._size_max // 2:
                break
            self._size -= self._answers.pop(key).size
