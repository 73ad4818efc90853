"""Marks queries that must not wait for others: those of health checks.

A store on a server has few sessions, and every query of a worker waits for one of them. Urgent queries use a session
of their own instead (`ServerPool.sessions`). The listener of a worker marks the requests that it answers before others.
The mark is a context variable, so that it reaches every query of such a request, whichever reader asks it, and also
the one for the caller's API key.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_urgent: ContextVar[bool] = ContextVar("is_urgent", default=False)


@contextmanager
def urgent_queries() -> Iterator[None]:
    """Mark the queries of this block, and of the tasks that are created in it, as urgent."""
    before = _is_urgent.set(True)
    try:
        yield
    finally:
        _is_urgent.reset(before)


def is_urgent() -> bool:
    """Tell whether queries of the running task are urgent."""
    return _is_urgent.get()
