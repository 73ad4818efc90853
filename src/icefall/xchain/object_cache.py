"""Objects of a chain that a worker keeps between two commits (docs/decisions/0025).

A node has its state in memory. A worker has what it was asked about last, for as long as it is certain that nothing has
changed.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class ObjectCache(Generic[K, T]):
    """Objects that were made of what is stored, by key, until anything is committed.

    `now` gives those of this moment, and `put` adds one to those it was looked for in: whatever is committed meanwhile,
    it is not found again. `size_max` is of all of them together, in what the caller counts; beyond it they are dropped.
    """

    __slots__ = ("_objects", "_size", "_size_max", "_version", "_version_of_objects")

    def __init__(self, version: Callable[[], int], size_max: int) -> None:
        self._version = version
        self._size_max = size_max
        self._objects: dict[K, T] = {}
        self._version_of_objects = 0
        self._size = 0

    def now(self) -> dict[K, T]:
        """The objects of this moment; none of them is known while the version is not."""
        version = self._version()
        if version != self._version_of_objects or not version:
            self._objects, self._version_of_objects, self._size = {}, version, 0
        return self._objects

    def put(self, objects: dict[K, T], key: K, made: T, size: int = 1) -> None:
        """Keep an object that was not found in `objects`, which `now` gave before it was made."""
        if objects is not self._objects or size > self._size_max:
            return
        if self._size + size > self._size_max:
            objects.clear()
            self._size = 0
        objects[key] = made
        self._size += size
