"""The files of a store: the lock that keeps a second writer out, and writing that stops before the disk is full."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from icefall.db.engine import Row, StatementParams, Store, StoreError, StoreInUse, Transaction
from icefall.observe.program import program_pid

T = TypeVar("T")

_CHECK_EVERY_S = 1.0


class FreeSpace(NamedTuple):
    available_bytes: int
    percent: int


def free_space(directory: Path) -> FreeSpace:
    usage = os.statvfs(directory)
    return FreeSpace(usage.f_bavail * usage.f_frsize, 100 * usage.f_bavail // max(1, usage.f_blocks))


class DiskLow(StoreError):
    """Less disk space is free than is required."""


class DiskGuard:
    """Raises DiskLow while less than the required share of a disk is free; looks at most once a second."""

    def __init__(self, directory: Path, required_percent: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._required_percent = required_percent
        self._clock = clock
        self._percent, self._checked_at = 100, -_CHECK_EVERY_S

    def check(self) -> None:
        now = self._clock()
        if now - self._checked_at >= _CHECK_EVERY_S:
            self._percent, self._checked_at = free_space(self._directory).percent, now
        if self._percent < self._required_percent:
            raise DiskLow(
                f"{self._percent} % of the disk of {self._directory} is free and {self._required_percent} % is "
                "required: nothing is stored until there is room"
            )


class GuardedStore:
    """A store that is written only while the guard allows it. Reads are not affected."""

    def __init__(self, store: Store, guard: DiskGuard) -> None:
        self._store = store
        self._guard = guard

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        return await self._store.rows(statement, params)

    async def rows_of_each(self, statement: str, keys: Sequence[Sequence[Any]]) -> list[Row]:
        return await self._store.rows_of_each(statement, keys)

    @property
    def is_embedded(self) -> bool:
        return self._store.is_embedded

    @property
    def joins_are_slow(self) -> bool:
        return self._store.joins_are_slow

    @property
    def generation(self) -> int:
        return self._store.generation

    def version(self) -> int | None:
        return self._store.version()

    async def current_version(self) -> int | None:
        return await self._store.current_version()

    def read(self, statement: str, params: StatementParams = ()) -> list[Row]:
        return self._store.read(statement, params)

    def read_each(self, statement: str, params: Sequence[Mapping[str, Any]]) -> list[list[Row]]:
        return self._store.read_each(statement, params)

    async def write(self, change: Callable[[Transaction], T]) -> T:
        self._guard.check()
        return await self._store.write(change)

    async def write_in_steps(self, change: Callable[[Transaction], Iterator[None]]) -> None:
        self._guard.check()
        await self._store.write_in_steps(change)

    def write_here(self, change: Callable[[Transaction], T]) -> T:
        self._guard.check()
        return self._store.write_here(change)

    def close(self) -> None:
        self._store.close()


class StoreLock:
    def __init__(self, path: Path) -> None:
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{path.parent} cannot be written: {error.strerror}; use another --data-dir") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            owner = f"process {holder}" if holder else "another process"
            raise StoreInUse(
                f"{path.parent} is in use by {owner}: stop that Icefall first, or use another --data-dir"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{program_pid()}\n".encode(), 0)  # the one to stop: its supervisor would restart it

    def release(self) -> None:
        os.close(self._fd)
