"""A failure of the health checks that could not be stored: on a full disk the store takes no results.

The engine allocates one page of a file when it starts and only overwrites it later, which needs no space; workers read
it.
"""

import mmap
from pathlib import Path

from icefall.observe.allocated import map_allocated, map_existing


class UnstoredFailure:
    """The engine's side. `path` None: there is none."""

    def __init__(self, path: Path | None) -> None:
        self._memory = map_allocated(path, mmap.PAGESIZE) if path else None
        self.clear()

    def put(self, answer: bytes) -> None:
        """`answer` is a check result as it is sent."""
        if self._memory is not None and len(answer) <= mmap.PAGESIZE:
            self._memory[:] = answer.ljust(mmap.PAGESIZE, b"\0")

    def clear(self) -> None:
        if self._memory is not None and self._memory[0]:
            self._memory[:] = bytes(mmap.PAGESIZE)


class UnstoredFailureReader:
    """The worker's side."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._memory: mmap.mmap | None = None

    def read(self) -> bytes | None:
        """The failed check result, or None."""
        if self._memory is None:
            self._memory = map_existing(self._path)  # the engine may not have made it yet
        if self._memory is None or not self._memory[0]:
            return None
        return self._memory[:].rstrip(b"\0") or None
