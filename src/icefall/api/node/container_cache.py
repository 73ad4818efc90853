"""The JSON of containers that a worker has shown before, of one series of the index.

A container never changes, and clients that follow a chain all ask for the newest ones.
"""

from collections.abc import Iterable, Sequence

from icefall.db.changes import StampedCache

SIZE_MAX = 4 << 20  # bytes of a series in a worker
_OVERHEAD = 200  # of each besides its text, roughly


class _Texts:
    __slots__ = ("by_key", "size")

    def __init__(self) -> None:
        self.by_key: dict[tuple[str, int], bytes] = {}
        self.size = 0


class ContainerCache:
    """Texts by encoding and number, of one stamp of the index. The older half makes room."""

    def __init__(self, size_max: int = SIZE_MAX) -> None:
        self._size_max = size_max
        self._texts = StampedCache(_Texts)

    def find(self, stamp: int | None, encoding: str, numbers: Sequence[int]) -> list[bytes] | None:
        """Return the texts of these containers; None if not all of them are there."""
        by_key = self._texts.of(stamp).by_key
        try:
            return [by_key[encoding, number] for number in numbers]
        except KeyError:
            return None

    def put(self, stamp: int | None, encoding: str, numbered: Iterable[tuple[int, bytes]]) -> None:
        """Add texts by number; nothing is cached without a stamp."""
        if stamp is None:
            return
        texts = self._texts.of(stamp)
        for number, text in numbered:
            if texts.by_key.setdefault((encoding, number), text) is text:
                texts.size += len(text) + _OVERHEAD
        if texts.size > self._size_max:
            for key in list(texts.by_key):
                if texts.size <= self._size_max // 2:
                    break
                texts.size -= len(texts.by_key.pop(key)) + _OVERHEAD
