"""Traces nested deeper than the decoder dares are taken apart all the same, and nothing in them is mistaken."""

import json

import msgspec
import pytest

from icefall.upstream.evm.block_parts import check_receipts, checked, decode_header
from icefall.upstream.evm.errors import IncompleteAnswer
from icefall.wire.evm.geth_format import check_calls, split_mux_traces
from icefall.wire.evm.trace_format import Header
from icefall.wire.text.jsonscan import CutJson

TXID = "0x" + "11" * 32
OF = Header(7, "0x" + "22" * 32, "0x" + "33" * 32, (TXID,))
DIFF = b'{"post":{},"pre":{}}'


def nested(depth: int) -> bytes:
    start = b'{"type":"CALL","revertReason":"]}\\"[{ \\\\","calls":['
    return start * depth + b'{"type":"CALL","calls":[]}' + b"]}" * depth


@pytest.mark.parametrize("depth", [1, 49, 50, 51, 400, 1024, 5000])
def test_any_depth(depth: int) -> None:
    frame = nested(depth)
    check_calls(msgspec.Raw(b'[{"txHash":"%s","result":%s}]' % (TXID.encode(), frame)), OF)
    both = b'[{"txHash":"%s","result":{"callTracer":%s,"prestateTracer":%s}}]' % (TXID.encode(), frame, DIFF)
    calls, diffs = split_mux_traces(msgspec.Raw(both), OF)
    assert calls == b'[{"txHash":"%s","result":%s}]' % (TXID.encode(), frame)
    assert diffs == b'[{"txHash":"%s","result":%s}]' % (TXID.encode(), DIFF)


def test_what_is_cut_out_is_put_back() -> None:
    deep = b"[1," + nested(300) + b',{"a":' + nested(200) + b"}]"
    cut = CutJson(deep)
    assert len(json.loads(cut.text)) == 3
    assert cut.restored(cut.text) == deep
    for broken in (b"[" * 100_000, b"[" * 300 + b"]" * 301, b"]["):
        with pytest.raises(msgspec.DecodeError):
            CutJson(broken)


def test_depth_where_none_belongs() -> None:
    hostile = msgspec.Raw(b"[" * 3000 + b"]" * 3000)
    with pytest.raises(IncompleteAnswer):
        check_receipts(hostile, OF)
    with pytest.raises(IncompleteAnswer):
        decode_header(hostile, 7)
    with pytest.raises(IncompleteAnswer):
        checked(check_calls, hostile, OF)
