"""A disk on which nothing fits any more."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_files(size: int = 0) -> Iterator[None]:
    """No file of this process may grow beyond `size` bytes: the kernel refuses the space, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
