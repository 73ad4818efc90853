"""Handlers of the index of accepted containers.

A range holds up to a thousand of them, so each goes from its row to its JSON without a struct in between, and its JSON
is cached for those who ask again.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from icefall.api.dialect import Dialect
from icefall.api.node.schema.node import (
    ContainerByIdParams,
    ContainerByIndexParams,
    ContainerIdParams,
    ContainerRangeParams,
    EncodingParams,
    IndexNumber,
    IsAccepted,
)
from icefall.errors import CallFailed
from icefall.node.index import IndexedContainer, IndexReader
from icefall.wire.errors import WireError
from icefall.wire.ids import id_text
from icefall.wire.text import checksum_hex
from icefall.wire.text.go_text import SECOND_NS, rfc3339_nano

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


FETCH_MAX = 1024
_NUMBER_MAX = (1 << 63) - 1
_WHOLE_SECOND = len("2026-01-02T03:04:05")


async def get_container_by_id(params: ContainerByIdParams, index: IndexReader, cache: ContainerCache) -> msgspec.Raw:
    number = await index.number_of(params.id)
    if number is None:
        raise CallFailed("not found")
    return _joined(await _containers(index, cache, number, 1, params.encoding))


async def get_container_by_index(
    params: ContainerByIndexParams, index: IndexReader, cache: ContainerCache
) -> msgspec.Raw:
    found = await _containers(index, cache, params.index, 1, params.encoding) if params.index <= _NUMBER_MAX else []
    if not found:
        raise CallFailed(f"no container at index {params.index}")
    return _joined(found)


async def get_container_range(
    params: ContainerRangeParams, index: IndexReader, cache: ContainerCache, dialect: Dialect
) -> msgspec.Raw | None:
    if params.num_to_fetch > FETCH_MAX or (params.num_to_fetch == 0 and not dialect.empty_range):
        raise CallFailed(
            f"numToFetch must be in [{int(not dialect.empty_range)},{FETCH_MAX}] but is {params.num_to_fetch}"
        )
    if params.num_to_fetch == 0:
        return None
    last = await index.last_number()
    if last is None:
        raise CallFailed("no containers have been accepted")
    if params.start_index > last:
        raise CallFailed(f"start index ({params.start_index}) > last accepted index ({last})")
    count = min(params.num_to_fetch, last + 1 - params.start_index)
    found = await _containers(index, cache, params.start_index, count, params.encoding)
    return _joined(found, b"[", b"]") if dialect.range_is_array else _joined(found, b'{"containers":[', b"]}")


async def get_index(params: ContainerIdParams, index: IndexReader) -> IndexNumber:
    number = await index.number_of(params.id)
    if number is None:
        raise CallFailed("not found")
    return IndexNumber(str(number))


async def get_last_accepted(params: EncodingParams, index: IndexReader, cache: ContainerCache) -> msgspec.Raw:
    last = await index.last_number()
    if last is None:
        raise CallFailed("no containers have been accepted")
    return _joined(await _containers(index, cache, last, 1, params.encoding))


async def is_accepted(params: ContainerIdParams, index: IndexReader) -> IsAccepted:
    return IsAccepted(await index.number_of(params.id) is not None)


async def _containers(index: IndexReader, cache: ContainerCache, start: int, count: int, encoding: str) -> list[bytes]:
    """Return the JSON of the containers from number `start` on."""
    stamp, numbers = index.stamp(), range(start, start + count)
    found = cache.find(stamp, encoding, numbers)
    if found is None:
        rows = [row for row in await index.run(start, count) if row[0] in numbers]
        found = listed(rows, encoding)
        cache.put(index.stamp(), encoding, zip([row[0] for row in rows], found, strict=True))
    return found


def _joined(found: list[bytes], before: bytes = b"", after: bytes = b"") -> msgspec.Raw:
    return msgspec.Raw(before + b",".join(found) + after)


def listed(found: list[IndexedContainer], encoding: str) -> list[bytes]:
    """Render each container as `schema.IndexContainer`: no value holds a character that JSON escapes."""
    try:
        return [
            (
                f'{{"id":"{id_text(container_id)}","bytes":"{checksum_hex.encode(raw, encoding)}",'
                f'"timestamp":"{_time_text(accepted_ns)}","encoding":"{encoding}","index":"{number}"}}'
            ).encode()
            for number, container_id, accepted_ns, raw in found
        ]
    except WireError as error:
        raise CallFailed(str(error)) from error


def _time_text(ns_since_epoch: int) -> str:
    """Write a time as `rfc3339_nano` does, at a fraction of its cost where many containers were accepted within one
    second."""
    seconds, ns = divmod(ns_since_epoch, SECOND_NS)
    moment, zone = _second_text(seconds)
    if ns % 10:
        return f"{moment}.{ns:09d}{zone}"
    return moment + f".{ns:09d}".rstrip("0").rstrip(".") + zone


@lru_cache(maxsize=4096)
def _second_text(seconds: int) -> tuple[str, str]:
    """The text of a whole second, before and after its fraction."""
    text = rfc3339_nano(seconds * SECOND_NS)
    return text[:_WHOLE_SECOND], text[_WHOLE_SECOND:]
