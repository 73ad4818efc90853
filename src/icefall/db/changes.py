"""Whether a store has changed, from one page of shared memory: a query per request is saved for what rarely changes.

The writer makes the number odd before each commit and even after it. A reader keeps what it read under an even number
for as long as the number is the same. While it is odd, or without a page, it reads the store.
"""

import mmap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar

from icefall.observe.counters import map_allocated, map_existing

T = TypeVar("T")


class ChangeCount:
    """The writer's side. Without space for the page there is none, and readers find none."""

    def __init__(self, path: Path) -> None:
        memory = map_allocated(path, mmap.PAGESIZE)
        self._words = memoryview(memory).cast("Q") if memory is not None else None
        self.end()  # an earlier writer may have been killed within a commit

    def begin(self) -> None:
        """Announce a commit that begins."""
        if self._words is not None:
            self._words[0] |= 1

    def end(self) -> None:
        """Announce the end of a commit, whether it succeeded or not."""
        if self._words is not None:
            self._words[0] = ((self._words[0] | 1) + 1) % (1 << 64)


class StoreVersion:
    """The reader's side."""

    def __init__(self, path: Path) -> None:
        memory = map_existing(path)
        self._words = memoryview(memory).cast("Q") if memory is not None else None

    def __call__(self) -> int:
        """A number that stays the same while nothing is committed; 0 if that is not known now."""
        if self._words is None:
            return 0
        number = self._words[0]
        return 0 if number & 1 else number


def unknown_version() -> int:
    """Report no version, for stores without such a page: every request reads them."""
    return 0


class LastRead(Generic[T]):
    """The last value that `read` gave, read again after the store has changed."""

    __slots__ = ("_read", "_value", "_version", "_version_of_value")

    def __init__(self, version: Callable[[], int], read: Callable[[], Awaitable[T]]) -> None:
        self._version = version
        self._read = read
        self._version_of_value = 0
        self._value: T

    def known(self) -> T | None:
        """The last value if the store has not changed since; None: it must be read."""
        version = self._version()
        return self._value if version and version == self._version_of_value else None

    async def get(self) -> T:
        version = self._version()  # before the store is read: a commit in between makes the value newer, never older
        if version and version == self._version_of_value:
            return self._value
        value = await self._read()
        self._value, self._version_of_value = value, version
        return value


class StampedCache(Generic[T]):
    """A value that is valid for one stamp: the generation of a store, with the number of its rollbacks or its version.
    Asked for with another stamp, it is made anew. `make` is called for each."""

    __slots__ = ("_make", "_stamp", "_value")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._stamp: object = self  # equal to no stamp
        self._value: T

    def of(self, stamp: object) -> T:
        if stamp != self._stamp:
            self._value, self._stamp = self._make(), stamp
        return self._value
