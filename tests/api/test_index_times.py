"""The index formats acceptance times with a cache, which must give the same text."""

from hypothesis import example, given
from hypothesis import strategies as st

from icefall.api.node.handlers.index import _time_text
from icefall.wire.text.go_text import SECOND_NS, rfc3339_nano


@given(st.integers(0, 1 << 62))
@example(0)
@example(SECOND_NS)
@example(1_794_753_768 * SECOND_NS + 40_695_500)
@example(1_794_753_768 * SECOND_NS + 1)
def test_times_are_those_of_rfc3339_nano(ns: int) -> None:
    assert _time_text(ns) == rfc3339_nano(ns)
