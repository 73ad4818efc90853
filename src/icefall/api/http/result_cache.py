"""The results of JSON-RPC calls that a worker keeps, for clients that ask the same again and again.

A result is given again only where the same bytes would be made anew: nothing was committed to the store since before it
was made, and the clock shows the same second. All results of another version or second are dropped at once, so that
there is nothing to outdate. Rows of the endpoint table say which results depend on nothing else (`repeatable`).
"""

import time
from collections.abc import Callable
from typing import NamedTuple

SIZE_MAX = 8 << 20  # bytes of all results of one path
_RESULT_SIZE_MAX = 256 << 10
_OVERHEAD = 200  # bytes of an entry besides its result and parameters, roughly

ResultKey = tuple[str, bytes]  # the method, and its parameters as they were sent


class ResultStamp(NamedTuple):
    """The moment from which a result is: the version of the store, and the second."""

    version: int
    second: int


def no_version() -> int:
    """The version of a store that tells none."""
    return 0


class ResultCache:
    """Results of one path. `version`: a number that is the same while nothing is committed; 0 if that is not known,
    and then nothing is kept."""

    def __init__(
        self, version: Callable[[], int], clock: Callable[[], float] = time.time, size_max: int = SIZE_MAX
    ) -> None:
        self._version = version
        self._clock = clock
        self._size_max = size_max
        self.moment = ResultStamp(0, 0)  # at which a result was looked for last
        self._results: dict[ResultKey, bytes] = {}
        self._size = 0

    def find(self, key: ResultKey) -> bytes | None:
        """The result of a call that was made already; drops what is not valid any more."""
        stamp = self.stamp()
        if stamp != self.moment:
            self._results.clear()
            self.moment, self._size = stamp, 0
        return self._results.get(key)

    def stamp(self) -> ResultStamp:
        """This moment. It is taken before a result is made: whatever changes meanwhile, that is not given again."""
        return ResultStamp(self._version(), int(self._clock()))

    def put(self, key: ResultKey, stamp: ResultStamp, result: bytes) -> None:
        """Keep a result that was made from `stamp` on, if that is the moment of the others."""
        size = len(key[1]) + len(result) + _OVERHEAD
        fits = len(result) <= _RESULT_SIZE_MAX and self._size + size <= self._size_max
        if stamp.version and stamp == self.moment and fits and key not in self._results:
            self._results[key] = result
            self._size += size
