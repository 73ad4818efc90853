"""A failure of the health checks that could not be stored: on a full disk the store takes no results.

The engine allocates one page of a file when it starts and only overwrites it later, which needs no space; workers read
it.
"""

import mmap
import os
from pathlib import Path

from icefall.observe.allocated import map_allocated


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


def unstored_failure(path: Path) -> bytes | None:
    """The worker's side: the failed check result, or None."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, mmap.PAGESIZE).rstrip(b"\0") or None
    finally:
        os.close(fd)
