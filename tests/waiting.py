"""Waiting for what another process does. The limit only ends a test that hangs: it measures nothing."""

import time
from collections.abc import Callable

LIMIT_S = 120.0


def until(truth: Callable[[], bool], what: str) -> None:
    """Wait for an event, however busy the machine is."""
    deadline = time.monotonic() + LIMIT_S
    while not truth():
        assert time.monotonic() < deadline, f"not within {LIMIT_S:.0f} s: {what}"
        time.sleep(0.05)  # each look takes time from what is waited for
