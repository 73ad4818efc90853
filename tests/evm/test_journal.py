"""The journal of a block: what is packed is unpacked again, and lists that are empty take little room."""

from hypothesis import example, given
from hypothesis import strategies as st

from icefall.evm.storing.rollback import TouchedAddresses, unpack_touched

IDS = st.integers(0, 200) | st.integers(0, 2**32 - 1)
LISTS = st.lists(IDS, max_size=30).map(tuple)
PAIRS = st.lists(st.tuples(IDS, IDS), max_size=10).map(tuple)
TOUCHED = st.builds(TouchedAddresses, LISTS, LISTS, LISTS, PAIRS, LISTS, LISTS)


@given(TOUCHED)
@example(TouchedAddresses())
@example(TouchedAddresses(native=(0,)))
@example(TouchedAddresses(code_changed=(7,)))
def test_it_is_unpacked_again(touched: TouchedAddresses) -> None:
    assert unpack_touched(touched.pack()) == touched


def test_the_last_lists_take_no_room_while_they_are_empty() -> None:
    assert TouchedAddresses().pack() == b""
    assert TouchedAddresses(native=(5, 6)).pack() == bytes([2, 5, 6])
    assert TouchedAddresses(native=(5,), storage_changed_unlogged=(9,)).pack() == bytes([1, 5, 0, 1, 9])
