"""Containers of the index are written as JSON by hand: the same bytes as those of their schema."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from icefall.api.node.handlers.index import _time_text, listed
from icefall.api.node.schema.node import IndexContainer
from icefall.node.index import IndexedContainer
from icefall.wire.ids import id_text
from icefall.wire.text import checksum_hex

_CONTAINER = st.tuples(
    st.integers(0, 2**63 - 1), st.binary(min_size=32, max_size=32), st.integers(0, 2**62), st.binary(max_size=100)
)


@given(st.lists(_CONTAINER, max_size=3), st.sampled_from(["hex", "hexc", "hexnc"]))
def test_the_json_is_that_of_the_schema(found: list[IndexedContainer], encoding: str) -> None:
    expected = [
        IndexContainer(id_text(key), checksum_hex.encode(raw, encoding), _time_text(ns), encoding, str(number))
        for number, key, ns, raw in found
    ]
    assert b"[%b]" % b",".join(listed(found, encoding)) == msgspec.json.encode(expected)
