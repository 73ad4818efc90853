"""One writer per store: an advisory lock on a file next to it, which the kernel releases when its holder ends."""

import fcntl
import os
from pathlib import Path

from icefall.db.engine import StoreError, StoreInUse
from icefall.observe.program import program_pid


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
