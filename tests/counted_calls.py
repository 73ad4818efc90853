"""How much work something is, as a count: the same on every machine, however busy or slow it is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class CallCount:
    """Functions called, of Python and of C."""

    def __init__(self) -> None:
        self.calls = 0

    def see(self, _: object, event: str, __: object) -> None:
        self.calls += event in ("call", "c_call")


@contextmanager
def counted_calls() -> Iterator[CallCount]:
    """Counts on this thread until the end of the block. Coverage traces lines, so both work at once."""
    count = CallCount()
    sys.setprofile(count.see)
    try:
        yield count
    finally:
        sys.setprofile(None)


def calls_of(act: Callable[[], Any]) -> int:
    with counted_calls() as count:
        act()
    return count.calls
