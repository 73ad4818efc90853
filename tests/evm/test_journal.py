"""The journal of a block: what is packed is unpacked again, also as older releases packed it."""

from hypothesis import example, given
from hypothesis import strategies as st
from tests.evm.older_rows import older_touched

from icefall.evm.storing.rollback import TouchedAddresses, unpack_touched

IDS = st.integers(0, 200) | st.integers(0, 2**32 - 1)
LISTS = st.lists(IDS, max_size=30).map(tuple)
PAIRS = st.lists(st.tuples(IDS, IDS), max_size=10).map(tuple)
TOUCHED = st.builds(TouchedAddresses, LISTS, LISTS, LISTS, PAIRS, LISTS, LISTS)


@given(TOUCHED)
@example(TouchedAddresses())
@example(TouchedAddresses(native=(0,)))
def test_it_is_unpacked_again(touched: TouchedAddresses) -> None:
    packed = touched.pack()
    assert unpack_touched(packed) == touched
    assert len(packed) % 4 != 0 or not packed
    older = older_touched(packed)
    assert unpack_touched(older) == touched
    assert len(older) % 4 == 0
