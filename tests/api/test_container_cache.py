"""Containers that a worker has shown before are shown again from memory: the same bytes, and little memory."""

from hypothesis import given
from hypothesis import strategies as st
from tests.evm.reading_scene import now

from icefall.api.dialect import INTERFACE
from icefall.api.node.handlers.index import (
    ContainerCache,
    get_container_by_index,
    get_container_range,
    get_last_accepted,
    listed,
)
from icefall.api.node.schema.node import ContainerByIndexParams, ContainerRangeParams, EncodingParams
from icefall.db.engine import Row, StatementParams
from icefall.node.index import C_BLOCK, SQL, IndexReader

CONTAINERS = [(number, bytes([number]) * 32, number * 10**8, bytes(range(number))) for number in range(30)]


class Store:
    """A store of these containers, part of the process or on a server."""

    joins_are_slow = False

    def __init__(self, *, is_embedded: bool) -> None:
        self.is_embedded = is_embedded
        self.generation = 1
        self.read = 0

    async def rows(self, statement: str, params: StatementParams = ()) -> list[Row]:
        assert isinstance(params, dict)
        if statement == SQL.last_number:
            return [(len(CONTAINERS) - 1,)]
        self.read += 1
        return list(CONTAINERS[params["start"] : params["start"] + params["count"]])

    async def rows_of_each(self, statement: str, keys: object) -> list[Row]:
        raise NotImplementedError

    def version(self) -> int | None:
        return None

    async def current_version(self) -> int | None:
        return None

    def close(self) -> None:
        pass


def range_of(index: IndexReader, cache: ContainerCache, start: int, count: int, encoding: str) -> bytes:
    found = now(get_container_range(ContainerRangeParams(start, count, encoding), index, cache, INTERFACE))
    assert found is not None
    return bytes(found)


@given(
    st.lists(
        st.tuples(st.integers(0, 29), st.integers(1, 40), st.sampled_from(["hex", "hexc", "hexnc"])),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
def test_ranges_are_the_same_bytes_whatever_was_asked_before(
    asked: list[tuple[int, int, str]], is_embedded: bool
) -> None:
    index, cache = IndexReader(Store(is_embedded=is_embedded), C_BLOCK, bytes(32)), ContainerCache()
    for start, count, encoding in asked:
        expected = b"[%b]" % b",".join(listed(CONTAINERS[start : start + count], encoding))
        assert range_of(index, cache, start, count, encoding) == expected
        one = now(get_container_by_index(ContainerByIndexParams(start, encoding), index, cache))
        assert [bytes(one)] == listed(CONTAINERS[start : start + 1], encoding)
    newest = now(get_last_accepted(EncodingParams("hex"), index, cache))
    assert [bytes(newest)] == listed(CONTAINERS[-1:], "hex")


def test_a_store_is_read_once_and_a_server_each_time() -> None:
    for is_embedded, reads in ((True, 1), (False, 3)):
        store = Store(is_embedded=is_embedded)
        index, cache = IndexReader(store, C_BLOCK, bytes(32)), ContainerCache()
        for start, count in ((5, 10), (5, 10), (7, 2)):
            range_of(index, cache, start, count, "hex")
        assert store.read == reads


def test_a_store_that_was_opened_again_is_read_again() -> None:
    store = Store(is_embedded=True)
    index, cache = IndexReader(store, C_BLOCK, bytes(32)), ContainerCache()
    range_of(index, cache, 5, 10, "hex")
    store.generation = 2
    range_of(index, cache, 5, 10, "hex")
    assert store.read == 2


def test_the_older_half_makes_room() -> None:
    cache = ContainerCache(size_max=5_000)
    for number in range(100):
        cache.put(1, "hex", [(number, b"x" * 300)])
        assert cache.find(1, "hex", [number]) == [b"x" * 300]
        assert sum(cache.find(1, "hex", [one]) is not None for one in range(100)) * 500 <= 5_000
    assert cache.find(1, "hex", [80]) is None
    assert cache.find(1, "hexnc", [99]) is None
