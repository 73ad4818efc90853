"""Each row of the table of trace formats does all that an index needs of it, on blocks as anvil sent them."""

from collections.abc import Callable

import msgspec
import pytest
from tests.evm.parity_samples import Sample, samples

from icefall.wire.errors import WireError
from icefall.wire.evm.decode import TRACE_FORMATS, decode_tx_calls, trace_format
from icefall.wire.evm.trace_format import Header, JsonText, TraceFormat, TraceParts, TraceRequest
from icefall.wire.evm.types import IncompleteBlock, OtherTransactions

BY_NAME = {one.name: one for one in TRACE_FORMATS}
REQUESTS = {request.name: (one, request) for one in TRACE_FORMATS for request in one.requests}
NAME = "berlin-1"


def mux_answer(sample: Sample) -> bytes:
    calls, diffs = (msgspec.json.decode(part) for part in (sample.calls, sample.diffs))
    both = [
        {"txHash": call["txHash"], "result": {"callTracer": call["result"], "prestateTracer": diff["result"]}}
        for call, diff in zip(calls, diffs, strict=True)
    ]
    return msgspec.json.encode(both)


# What the recorded client answers to each request. A new format brings its own.
ANSWERS: dict[str, Callable[[Sample], bytes]] = {
    "callTracer": lambda sample: sample.calls,
    "prestateTracer": lambda sample: sample.diffs,
    "muxTracer": mux_answer,
    "trace_block": lambda sample: sample.trace_block,
    "trace_replayBlockTransactions": lambda sample: sample.trace_replay,
}


def header_of(sample: Sample) -> Header:
    txids = tuple(row["txHash"] for row in msgspec.json.decode(sample.calls))
    return Header(sample.number, sample.block["hash"], "", txids)


def recorded() -> list[tuple[Sample, Header]]:
    found = [(sample, header_of(sample)) for sample in samples(NAME)]
    return [(sample, header) for sample, header in found if len(header.txids) > 1]


def test_no_two_rows_have_the_same_name() -> None:
    assert len(BY_NAME) == len(TRACE_FORMATS)
    assert len(REQUESTS) == sum(len(one.requests) for one in TRACE_FORMATS)
    assert set(ANSWERS) == set(REQUESTS)
    with pytest.raises(WireError, match="no known format"):
        trace_format("flatCallTracer")


@pytest.mark.parametrize("name", BY_NAME)
def test_each_part_that_a_request_gives_with_another_can_be_requested_alone(name: str) -> None:
    requests = BY_NAME[name].requests
    alone = {(one.gives_calls, one.gives_diffs) for one in requests if not one.gives_both}
    for request in requests:
        assert not request.gives_calls or (True, False) in alone
        assert not request.gives_diffs or (False, True) in alone


@pytest.mark.parametrize("name", REQUESTS)
def test_answers_are_split_and_decoded(name: str) -> None:
    traces, request = REQUESTS[name]
    geth = TRACE_FORMATS[0]
    for sample, header in recorded():
        raw = msgspec.Raw(ANSWERS[name](sample))
        request.check(raw, header)
        parts = request.read(raw, header)
        assert (parts.calls is not None, parts.diffs is not None) == (request.gives_calls, request.gives_diffs)
        if parts.calls is not None:
            frames = [trace.frames for trace in geth.decode_calls(sample.calls, None)]
            found = [trace.frames for trace in traces.decode_calls(parts.calls, None)]
            assert [[(it.opcode, it.to, it.value) for it in one] for one in found] == [
                [(it.opcode, it.to, it.value) for it in one] for one in frames
            ]
            trees, expected = traces.decode_call_trees(parts.calls), geth.decode_call_trees(sample.calls)
            assert [[(it.depth, it.sender, it.input) for it in one] for one in trees] == [
                [(it.depth, it.sender, it.input) for it in one] for one in expected
            ]
        if parts.diffs is not None:
            assert len(traces.decode_diffs(parts.diffs, None)) == len(header.txids)


@pytest.mark.parametrize("name", REQUESTS)
def test_incomplete_answers_are_refused(name: str) -> None:
    """They must not be taken for a block with fewer transactions, nor for another block."""
    _, request = REQUESTS[name]
    for sample, header in recorded():
        raw = msgspec.Raw(ANSWERS[name](sample))
        more = msgspec.structs.replace(header, txids=(*header.txids, "0x" + "ab" * 32))
        others = msgspec.structs.replace(header, txids=("0x" + "ab" * 32, *header.txids[1:]))
        for run in (request.check, request.read):
            assert refused(run, raw, more) is IncompleteBlock
            assert refused(run, raw, others) is OtherTransactions
            assert refused(run, msgspec.Raw(b"[]"), header) is IncompleteBlock
            assert refused(run, msgspec.Raw(b'{"a":1}'), header) is IncompleteBlock


def refused(run: Callable[[JsonText, Header], object], raw: msgspec.Raw, header: Header) -> type[Exception] | None:
    try:
        run(raw, header)
    except WireError as error:
        return type(error)
    return None


@pytest.mark.parametrize("name", BY_NAME)
def test_the_calls_of_one_transaction(name: str) -> None:
    traces = BY_NAME[name]
    sample, header = recorded()[0]
    whole = traces.decode_call_trees(block_answer(traces, sample))
    assert [decode_tx_calls(one, traces) for one in tx_answers(traces, sample, header)] == whole
    with pytest.raises(WireError, match="calls: "):
        decode_tx_calls(b"[]", traces)


def block_answer(traces: TraceFormat, sample: Sample) -> bytes:
    request: TraceRequest = next(one for one in traces.requests if one.gives_calls)
    return ANSWERS[request.name](sample)


def tx_answers(traces: TraceFormat, sample: Sample, header: Header) -> list[bytes]:
    """What each format answers for one transaction: geth the frame itself, the others the transaction's rows."""
    rows = msgspec.json.decode(block_answer(traces, sample), type=list[dict[str, msgspec.Raw]])
    if "txHash" in rows[0]:
        return [bytes(row["result"]) for row in rows]
    return [
        msgspec.json.encode([row for row in rows if bytes(row.get("transactionHash", b"")) == b'"%s"' % txid.encode()])
        for txid in header.txids
    ]


def test_a_request_for_one_part_gives_it_unchanged() -> None:
    sample, header = recorded()[0]
    calls, diffs = REQUESTS["callTracer"][1], REQUESTS["prestateTracer"][1]
    assert calls.read(sample.calls, header) == TraceParts(calls=sample.calls)
    assert diffs.read(sample.diffs, header) == TraceParts(diffs=sample.diffs)
