"""Tests once, on one of its own blocks, which features an EVM upstream has."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from icefall.upstream.client import MALFORMED
from icefall.upstream.evm.block_parts import BlockSummary, Hex, check_receipts, checked, decode_summary, proven_header
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import (
    IncompleteAnswer,
    NotThere,
    ReorgDuringFetch,
    RpcRefusal,
    Untraceable,
    WrongChain,
)
from icefall.wire.errors import WireError
from icefall.wire.evm.decode import TRACE_FORMATS
from icefall.wire.evm.trace_format import Header, TraceFormat, TraceRequest

ZERO_ADDRESS = "0x" + "00" * 20
_RECENT = 8  # blocks searched for one with transactions, before the search takes larger steps
_SAMPLE_TXS_MAX = 50  # transactions; a sample with more takes long to trace

_REQUESTS = {request.name: (traces, request) for traces in TRACE_FORMATS for request in traces.requests}


class Capabilities(msgspec.Struct, frozen=True):
    chain_id: int
    client_version: str
    head: int
    genesis_hash: str | None
    sample: int | None  # the block that was traced; None: no block with transactions was found, nothing is certain
    block_receipts: bool
    traces: tuple[str, ...]  # the names of the trace requests that it answers
    code_left_out: bool | None  # of the diffs, if requested; None: there was none to leave out
    code_hashed: bool  # its hash is there instead, so that it is known which accounts have code
    archive: bool
    block_extra_data: bool  # a C-Chain: blocks carry atomic transactions
    is_avalanche: bool  # its headers have fields that only Avalanche's C-Chain and L1s have: accepted blocks are final
    genesis_traceable: bool
    batches: bool
    reasons: dict[str, str] = {}  # its error texts, by field or trace request
    incomplete: tuple[str, ...] = ()  # what it answered, but incompletely: it may have it at another time

    @property
    def trace_requests(self) -> list[TraceRequest]:
        """The requests for the traces of a block: a single one where it gives both parts, else one for each part."""
        known = [request for name, (_, request) in _REQUESTS.items() if name in self.traces]
        both = next((one for one in known if one.gives_both), None)
        if both is not None:
            return [both]
        calls = next((one for one in known if one.gives_calls), None)
        diffs = next((one for one in known if one.gives_diffs), None)
        return [one for one in (calls, diffs) if one is not None]

    @property
    def calls_format(self) -> str:
        """The name of the format of call traces; empty if there are none."""
        return next((_REQUESTS[one.name][0].name for one in self.trace_requests if one.gives_calls), "")

    @property
    def diffs_format(self) -> str:
        """The name of the format of state diffs; empty if there are none."""
        return next((_REQUESTS[one.name][0].name for one in self.trace_requests if one.gives_diffs), "")

    @property
    def may_have_calls(self) -> bool:
        return any(_REQUESTS[name][1].gives_calls for name in (*self.traces, *self.incomplete) if name in _REQUESTS)

    @property
    def may_have_diffs(self) -> bool:
        return any(_REQUESTS[name][1].gives_diffs for name in (*self.traces, *self.incomplete) if name in _REQUESTS)

    def limited_to(self, *, calls: bool) -> "Capabilities":
        """Return what is left of it where no diffs are to be fetched, and calls only if `calls` is set."""
        formats = dict.fromkeys(_REQUESTS[name][0] for name in self.traces if _REQUESTS[name][1].gives_calls)
        alone = [one.name for traces in formats for one in traces.requests if one.gives_calls and not one.gives_diffs]
        return msgspec.structs.replace(
            self, traces=tuple(alone) if calls else (), incomplete=self.incomplete if calls else ()
        )

    @property
    def omits_code(self) -> bool:
        """Return whether diffs are requested without code: it is most of their bytes, and only its presence matters."""
        return self.code_left_out is True and self.code_hashed

    def degraded(self) -> list[str]:
        """Return what is missing or slow because of features this upstream does not have, as text."""
        return [row.text + self._because(row.field) for row in _LIMITATIONS if row.holds(self)]

    def missing(self) -> list[str]:
        """Return what is missing because of features it lacks, without what is only slower or not tested yet."""
        return [row.text + self._because(row.field) for row in _LIMITATIONS if row.holds(self) and row.is_missing]

    def _because(self, field: str) -> str:
        return f" ({self.reasons[field]})" if field in self.reasons else ""


class _Limitation(NamedTuple):
    field: str  # or trace request, whose error text is the reason
    holds: Callable[[Capabilities], bool]
    text: str
    is_missing: bool = True  # else only slower, or not tested yet


def _takes_two_requests(traces: TraceFormat, both: TraceRequest) -> Callable[[Capabilities], bool]:
    """Return a test of whether calls and diffs are requested one by one, although `both` could give them at once."""
    alone = {one.name for one in traces.requests if not one.gives_both}
    return lambda can: alone <= set(can.traces) and both.name not in can.traces and can.sample is not None


def _repeats_code(can: Capabilities) -> bool:
    could_omit = any(one.name == can.diffs_format and one.code_left_out is not None for one in TRACE_FORMATS)
    return could_omit and can.sample is not None and not can.omits_code


def _preferred(*, calls: bool) -> str:
    """Return the name of the first request for calls alone, or for diffs alone: why it failed is worth reporting."""
    return next(name for name, (_, one) in _REQUESTS.items() if not one.gives_both and one.gives_calls is calls)


def _comes_from(request: TraceRequest) -> Callable[[Capabilities], bool]:
    return lambda can: request in can.trace_requests and can.sample is not None


_LIMITATIONS = (
    _Limitation(
        _preferred(calls=True),
        lambda it: not it.calls_format,
        "no call traces: internal transactions are not listed, and contracts created by contracts are missing in lists,"
        " deployments, cumulativeContracts and cumulativeDeployers",
    ),
    _Limitation(
        _preferred(calls=False),
        lambda it: not it.diffs_format,
        "no state diffs: native balances are read from the upstream on request",
    ),
    _Limitation(
        "archive",
        lambda it: not it.archive,
        "no archive: state and traces of old blocks are gone. Old blocks can be indexed without traces (traces = false"
        " in [[chain]]): then past balances that logs do not determine are unknown",
    ),
    _Limitation("block_receipts", lambda it: not it.block_receipts, "receipts are fetched one by one: slower", False),
    _Limitation("batches", lambda it: not it.batches, "one call per request: slower", False),
    *[
        _Limitation(
            request.name,
            _takes_two_requests(traces, request),
            "calls and diffs take one request each: slower",
            is_missing=False,
        )
        for traces, request in _REQUESTS.values()
        if request.gives_both
    ],
    _Limitation(
        "code_left_out", _repeats_code, "state diffs repeat contract code: several times the bytes", is_missing=False
    ),
    *[
        _Limitation(_preferred(calls=request.gives_calls), _comes_from(request), request.limitation)
        for _, request in _REQUESTS.values()
        if request.limitation
    ],
    _Limitation(
        "sample",
        lambda it: it.sample is None,
        "no block with transactions was found: traces are tested when there is one",
        is_missing=False,
    ),
)


async def probe(client: EvmClient, chain_id: int | None = None, *, sample: int | None = None) -> Capabilities:
    """Test everything. WrongChain if its chain is not `chain_id`. `sample` is a block known to have transactions."""
    start = [
        Call("eth_chainId", ()),
        Call("eth_blockNumber", ()),
        Call("web3_clientVersion", ()),
        Call("eth_getBlockByNumber", (hex(0), False)),
    ]
    its_chain_id, height, version, genesis = await client.call_all(start)
    its_chain = quantity(its_chain_id, "eth_chainId")
    if chain_id is not None and its_chain != chain_id:
        raise WrongChain(f"{client.name} serves chain {its_chain}, not {chain_id}")
    head = quantity(height, "eth_blockNumber")
    found = await _sample(client, _candidates(head, sample))
    results = await _test_features(client, found or Header(head, "", "", ()))
    traces = tuple(name for name in _REQUESTS if results.can.pop(name))
    left_out, hashed = await _code_left_out(client, found, traces)
    newest = decode_summary(await client.call("eth_getBlockByNumber", hex(head), False))
    has_extra_data = newest.block_extra_data is not msgspec.UNSET
    return Capabilities(
        chain_id=its_chain,
        client_version="" if isinstance(version, RpcRefusal) else str(msgspec.json.decode(version)),
        head=head,
        genesis_hash=None if isinstance(genesis, RpcRefusal) else _hash_text(genesis, client.name),
        sample=found.number if found is not None else None,
        traces=traces,
        code_left_out=left_out,
        code_hashed=hashed,
        archive=await _archive(client, head, results),
        block_extra_data=has_extra_data,
        is_avalanche=has_extra_data or newest.block_gas_cost is not msgspec.UNSET,
        batches=all(batch.size > 1 for batch in client.batches.values()),
        reasons=results.reasons,
        incomplete=tuple(results.incomplete),
        **results.can,
    )


def _hash_text(genesis: msgspec.Raw, name: str) -> str:
    return "0x" + proven_header(genesis, 0, name).block_hash.hex()


class _TestResults(NamedTuple):
    can: dict[str, bool]
    reasons: dict[str, str]
    incomplete: list[str]


class _Feature(NamedTuple):
    field: str
    call: Callable[[int], Call]
    check: Callable[[msgspec.Raw, Header], Any]


def _trace_feature(request: TraceRequest) -> _Feature:
    return _Feature(
        request.name,
        lambda number: Call(*request.call(number, False)),
        lambda raw, header: checked(request.check, raw, header),
    )


_FEATURES = (
    _Feature("block_receipts", lambda n: Call("eth_getBlockReceipts", (hex(n),)), check_receipts),
    *[_trace_feature(request) for _, request in _REQUESTS.values()],
    _Feature(
        "genesis_traceable", lambda n: Call(*TRACE_FORMATS[0].requests[0].call(0, False)), lambda raw, header: None
    ),
)


async def _test_features(client: EvmClient, header: Header) -> _TestResults:
    """Test each feature on one block. An incomplete answer is retried once."""
    can, reasons, incomplete = {}, {}, []
    outcomes = await client.call_all([feature.call(header.number) for feature in _FEATURES], lane="traces")
    for feature, outcome in zip(_FEATURES, outcomes, strict=True):
        problem = _problem(feature, outcome, header)
        if isinstance(problem, IncompleteAnswer):
            (second,) = await client.call_all([feature.call(header.number)], lane="traces")
            problem = _problem(feature, second, header)
        if isinstance(problem, ReorgDuringFetch | NotThere):
            raise ReorgDuringFetch(f"{client.name} changed its chain while it was probed: {problem}")
        # Genesis is not traceable anywhere; later blocks are tested when there is a transaction.
        can[feature.field] = problem is None or (
            isinstance(problem, Untraceable) and feature.field != "genesis_traceable"
        )
        if problem is not None:
            reasons[feature.field] = str(problem)
        if isinstance(problem, IncompleteAnswer):
            incomplete.append(feature.field)
    if not header.txids:
        can |= {name: False for name, (_, request) in _REQUESTS.items() if request.gives_both}  # nothing to be split
    return _TestResults(can, reasons, incomplete)


def _problem(feature: _Feature, outcome: Outcome, header: Header) -> RpcRefusal | IncompleteAnswer | None:
    if isinstance(outcome, RpcRefusal):
        return outcome
    try:
        feature.check(outcome, header)
    except IncompleteAnswer as failure:
        return failure
    return None


def _candidates(head: int, known: int | None) -> Iterator[list[int]]:
    yield [number for number in range(head, head - _RECENT, -1) if number > 0]
    yield [head - (1 << power) for power in range(3, 64) if head - (1 << power) > 0]
    yield [] if known is None else [known]


async def _sample(client: EvmClient, candidates: Iterator[list[int]]) -> Header | None:
    """Return a recent block with transactions, if there is one: preferably several, but not hundreds, and as few as
    there are where all have more."""
    for numbers in candidates:
        outcomes = await client.call_all([Call("eth_getBlockByNumber", (hex(number), False)) for number in numbers])
        blocks = [decode_summary(outcome) for outcome in outcomes if not isinstance(outcome, RpcRefusal)]
        busy = [block for block in blocks if block.transactions]
        if busy:
            best = max(busy, key=_fitness)
            return Header(int(best.number, 16), best.hash, best.parent_hash, tuple(best.transactions))
    return None


def _fitness(block: BlockSummary) -> int:
    count = len(block.transactions)
    return count if count <= _SAMPLE_TXS_MAX else -count


async def _code_left_out(client: EvmClient, header: Header | None, traces: Sequence[str]) -> tuple[bool | None, bool]:
    """Return whether it leaves code out of diffs if requested, and whether there is a hash wherever there would have
    been code."""
    of_diffs = next((_REQUESTS[name][0] for name in traces if _REQUESTS[name][1].gives_diffs), None)
    if header is None or of_diffs is None or of_diffs.code_left_out is None:
        return None, False
    request = next(one for one in of_diffs.requests if one.gives_diffs and not one.gives_both)
    calls = [Call(*request.call(header.number, leave_out)) for leave_out in (False, True)]
    with_code, without_code = await client.call_all(calls, lane="traces")
    if isinstance(without_code, RpcRefusal) or isinstance(with_code, RpcRefusal):
        return False, False
    try:
        return of_diffs.code_left_out(with_code, without_code)
    except WireError as error:
        raise IncompleteAnswer(str(error)) from error


async def _archive(client: EvmClient, head: int, results: _TestResults) -> bool:
    (outcome,) = await client.call_all([Call("eth_getBalance", (ZERO_ADDRESS, hex(min(1, head))))])
    if isinstance(outcome, RpcRefusal):
        results.reasons["archive"] = str(outcome)
    return not isinstance(outcome, RpcRefusal)


_QUANTITY = msgspec.json.Decoder(Hex)


def quantity(outcome: Outcome, what: str) -> int:
    """Return a number as JSON-RPC writes it; a refusal is raised."""
    if isinstance(outcome, RpcRefusal):
        raise outcome
    try:
        return int(_QUANTITY.decode(outcome), 16)
    except MALFORMED as error:
        raise IncompleteAnswer(f"{what}: {error}") from error


def limitations(upstreams: Sequence[Capabilities]) -> list[str]:
    """Return what is missing or slow at all of several upstreams; nothing if there are none."""
    return [row.text for row in _LIMITATIONS if upstreams and all(row.holds(it) for it in upstreams)]


def limitations_without(*, calls: bool, diffs: bool) -> list[str]:
    """Return what is missing in an index without calls, or without diffs."""
    wanted = [_preferred(calls=is_calls) for is_calls, is_missing in ((True, calls), (False, diffs)) if is_missing]
    return [next(row.text for row in _LIMITATIONS if row.field == field) for field in wanted]
