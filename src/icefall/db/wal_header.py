"""The sign of a commit: 96 bytes of memory that a SQLite file in WAL mode shares among all who have it open.

They are the header of the wal-index (https://sqlite.org/walformat.html), which every commit changes, whatever program
makes it. SQLite compares them before each query to learn whether its own cache is outdated, and so does this, without a
query. They are read where SQLite itself has opened them: a file that was opened and closed once more would take the
locks of all connections of this process with it.
"""

import ctypes
import mmap
import os
from contextlib import suppress
from pathlib import Path

_SIZE = 96  # the header twice: one that is just being written differs from its copy
_OPENED = Path("/proc/self/fd")
_FAILED = ctypes.c_void_p(-1).value


class WalHeader:
    """The header of one file, as long as a connection has it open. `read` returns None where it cannot be found."""

    def __init__(self, path: Path) -> None:
        """`path`: of the store, which has been read before."""
        self._libc = ctypes.CDLL(None)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        self._address = self._mapped(_descriptor(Path(f"{path.resolve()}-shm")))
        self._bytes = (ctypes.c_char * _SIZE).from_address(self._address) if self._address is not None else None

    def _mapped(self, descriptor: int | None) -> int | None:
        if descriptor is None or os.fstat(descriptor).st_size < mmap.PAGESIZE:
            return None
        size, offset = ctypes.c_size_t(mmap.PAGESIZE), ctypes.c_long(0)
        found: int = self._libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, offset)
        return None if found == _FAILED else found

    def read(self) -> bytes | None:
        return self._bytes.raw if self._bytes is not None else None

    def close(self) -> None:
        address, self._address, self._bytes = self._address, None, None
        if address is not None:
            self._libc.munmap(address, mmap.PAGESIZE)


def _descriptor(path: Path) -> int | None:
    """The number under which SQLite has opened a file; None if it has not, or the system does not tell."""
    with suppress(OSError):
        for opened in _OPENED.iterdir():
            with suppress(OSError):  # closed meanwhile
                if opened.readlink() == path:
                    return int(opened.name)
    return None
