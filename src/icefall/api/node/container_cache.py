"""The JSON of containers that a worker has shown before, of one series of the index.

A container never changes, and clients that follow a chain all ask for the newest ones.
"""

from collections.abc import Iterable, Sequence

SIZE_MAX = 4 << 20  # bytes of a series in a worker
_OVERHEAD = 200  # of each besides its text, roughly


class ContainerCache:
    """Texts by encoding and number, valid for one stamp of the index. The older half makes room."""

    def __init__(self, size_max: int = SIZE_MAX) -> None:
        self._size_max = size_max
        self._size = 0
        self._stamp: int | None = None
        self._texts: dict[tuple[str, int], bytes] = {}

    def find(self, stamp: int | None, encoding: str, numbers: Sequence[int]) -> list[bytes] | None:
        """Return the texts of these containers; None if not all of them are there."""
        if stamp != self._stamp:
            return None
        try:
            return [self._texts[encoding, number] for number in numbers]
        except KeyError:
            return None

    def put(self, stamp: int | None, encoding: str, numbered: Iterable[tuple[int, bytes]]) -> None:
        """Add texts by number; nothing is cached without a stamp."""
        if stamp is None:
            return
        if stamp != self._stamp:
            self._stamp, self._size, self._texts = stamp, 0, {}
        for number, text in numbered:
            if self._texts.setdefault((encoding, number), text) is text:
                self._size += len(text) + _OVERHEAD
        if self._size > self._size_max:
            for key in list(self._texts):
                if self._size <= self._size_max // 2:
                    break
                self._size -= len(self._texts.pop(key)) + _OVERHEAD
