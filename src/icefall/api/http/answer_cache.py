"""Whole answers that a worker keeps, for clients that ask for the same page again and again.

An answer is given again only where it would be the same byte for byte: nothing was committed to the chain's store since
before it was made. Page tokens contain the minute in which they were issued: an answer with one is kept for that
minute. Every answer from a server is kept for a second: its URL may lead to several replicas, and the version may be
that of one and the rows those of another, which lags behind. Rows of the endpoint table say which answers depend on
nothing else (`keeps_answers`). Only what is asked for a second time is kept: most pages are not, and would cost memory
and the version of a store for nothing.
"""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

SIZE_MAX = 8 << 20  # bytes of all answers of a worker
_ANSWER_SIZE_MAX = 64 << 10
_SEEN_MAX = 4096  # requests that are remembered, of those without a kept answer
_OVERHEAD = 400  # bytes of an entry besides its answer and query, roughly

Key = tuple[str, str]  # path and query


class KeptMark(NamedTuple):
    """What an answer depends on: the version of the store, and the second."""

    version: int
    second: int


class _KeptAnswer(NamedTuple):
    mark: KeptMark
    step_s: int | None
    body: bytes

    def is_of(self, mark: KeptMark) -> bool:
        same_step = self.step_s is None or self.mark.second // self.step_s == mark.second // self.step_s
        return same_step and self.mark.version == mark.version


class _Making(NamedTuple):
    """An answer that is being made, and the requests that wait for it."""

    mark: KeptMark
    waiting: list[asyncio.Future[bytes | None]]


class KeptAnswers:
    def __init__(self, clock: Callable[[], float] = time.time, size_max: int = SIZE_MAX) -> None:
        self._clock = clock
        self._size_max = size_max
        self._answers: dict[Key, _KeptAnswer] = {}
        self._seen: set[Key] = set()
        self._making: dict[Key, _Making] = {}
        self._size = 0

    def is_repeated(self, key: Key) -> bool:
        """Whether it was asked for before, not too long ago."""
        if key in self._answers or key in self._seen:
            return True
        if len(self._seen) >= _SEEN_MAX:
            self._seen.clear()
        self._seen.add(key)
        return False

    def mark(self, version: int) -> KeptMark:
        """To be taken before an answer is made: whatever changes meanwhile, the answer is then not given again."""
        return KeptMark(version, int(self._clock()))

    def find(self, key: Key, mark: KeptMark) -> bytes | None:
        found = self._answers.get(key)
        return found.body if found is not None and found.is_of(mark) else None

    async def made_by_another(self, key: Key, mark: KeptMark) -> bytes | None:
        """The answer that another request is making already, from the same version in the same second: an answer that
        is outdated is missed by all requests at once. None if there is none, or it was not kept: the caller makes it,
        and calls `end_making` however that ends. What was never kept, as it reads state, is not waited for."""
        making = self._making.get(key)
        if making is not None and making.mark == mark:
            own: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
            making.waiting.append(own)
            return await own
        if key in self._answers:
            self.end_making(key)
            self._making[key] = _Making(mark, [])
        return None

    def end_making(self, key: Key, mark: KeptMark | None = None, body: bytes | None = None) -> None:
        """`mark` None: of any version."""
        making = self._making.get(key)
        if making is not None and mark in (None, making.mark):
            del self._making[key]
            for one in making.waiting:
                if not one.done():  # cancelled
                    one.set_result(body)

    def keep(self, key: Key, mark: KeptMark, body: object, step_s: int | None = None) -> None:
        """`step_s`: 1 or 60, it is kept to the end of its second or minute; None: as long as the version stays."""
        if not isinstance(body, bytes) or len(body) > _ANSWER_SIZE_MAX:
            return
        self.end_making(key, mark, body)
        self._seen.discard(key)
        old = self._answers.pop(key, None)
        if old is not None:
            self._size -= _size(key, old.body)
        self._answers[key] = _KeptAnswer(mark, step_s, body)
        self._size += _size(key, body)
        if self._size > self._size_max:
            self._drop_older()

    def _drop_older(self) -> None:
        """All that were not made again lately: half of the bytes."""
        for key in list(self._answers):
            if self._size <= self._size_max // 2:
                break
            self._size -= _size(key, self._answers.pop(key).body)


def _size(key: Key, body: bytes) -> int:
    return len(key[0]) + len(key[1]) + len(body) + _OVERHEAD
