"""Memory-mapped files on a disk that may be full: the space is allocated first, because a write to a page without space
kills the process (SIGBUS)."""

import mmap
import os
from pathlib import Path


def map_allocated(path: Path, size: int, *, truncate: bool = False) -> mmap.mmap | None:
    """A shared mapping of at least `size` bytes, created if needed; None where there is no space for it."""
    size = max(size, mmap.PAGESIZE)
    fd = -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if truncate else 0), 0o600)
        os.posix_fallocate(fd, 0, size)
        return mmap.mmap(fd, size)
    except OSError:
        return None
    finally:
        if fd >= 0:
            os.close(fd)


def map_existing(path: Path) -> mmap.mmap | None:
    """The first page of such a file, to be read; None if it was not made, or not with all of its space."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return mmap.mmap(fd, mmap.PAGESIZE, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
