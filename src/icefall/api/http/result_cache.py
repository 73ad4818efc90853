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
        self._at_version = self._second = 0
        self.moment = ResultStamp(0, 0)  # at which a result was looked for last
        self._results: dict[ResultKey, bytes] = {}
        self._size = 0

    def find(self, key: ResultKey) -> bytes | None:
        """The result of a call that was made already; drops what is not valid any more."""
        version, now_s = self._version(), self._clock()
        if version != self._at_version or not self._second <= now_s < self._second + 1:
            self._results.clear()
            self._at_version, self._second, self._size = version, int(now_s), 0
            self.moment = ResultStamp(version, self._second)
        return self._results.get(key)

    def put(self, key: ResultKey, stamp: ResultStamp, result: bytes) -> None:
        """Keep a result that was made from `stamp` on, if that is the moment of the others. It is taken before a result
        is made: whatever changes meanwhile, that is not given again."""
        if not stamp.version or stamp != self.moment or len(result) > _RESULT_SIZE_MAX or key in self._results:
            return
        size = self._size + len(key[1]) + len(result) + _OVERHEAD
        if size <= self._size_max:
            self._results[key] = result
            self._size = size
