"""Changes of the last activity as they are stored: unpacked again, compressed or not."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from icefall.metrics.rows import pack_changes, unpack_earlier, unpack_fresh

IDS = st.integers(0, 2**40)
HOURS = st.integers(-1, 600_000)


@given(st.lists(IDS, max_size=300), st.lists(st.tuples(IDS, HOURS, HOURS), max_size=100))
def test_changes_are_unpacked_again(fresh: list[int], earlier: list[tuple[int, int, int]]) -> None:
    assert unpack_fresh(pack_changes(fresh)) == fresh
    assert unpack_earlier(pack_changes(earlier)) == earlier


def test_an_hour_of_many_addresses_takes_less_room() -> None:
    earlier = [(address, 472_222, 472_221) for address in range(10_000)]
    assert len(pack_changes(earlier)) < len(msgspec.msgpack.encode(earlier)) / 2
