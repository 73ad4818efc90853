"""Which features an EVM upstream has, tested once on one of its own blocks."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from icefall.upstream.client import MALFORMED
from icefall.upstream.evm.block_parts import (
    Header,
    Hex,
    accounts_with,
    check_calls,
    check_diffs,
    check_mux_traces,
    check_receipts,
    check_replay,
    check_trace_block,
    decode_summary,
)
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import (
    IncompleteAnswer,
    NotThere,
    ReorgDuringFetch,
    RpcRefusal,
    Untraceable,
    WrongChain,
)
from icefall.upstream.evm.proven_header import proven_header

ZERO_ADDRESS = "0x" + "00" * 20
_RECENT = 8  # blocks searched for one with transactions, before the search takes larger steps
_SAMPLE_TXS_MAX = 50  # transactions; a sample with more takes long to trace


_CALL_TRACERS = frozenset(["call_tracer", "mux_tracer", "trace_block"])
_DIFF_TRACERS = frozenset(["prestate_tracer", "mux_tracer", "trace_replay"])


class Capabilities(msgspec.Struct, frozen=True):
    chain_id: int
    client_version: str
    head: int
    genesis_hash: str | None
    sample: int | None  # the block that was traced; None: no block with transactions was found, nothing is certain
    block_receipts: bool
    call_tracer: bool
    prestate_tracer: bool  # in diffMode
    mux_tracer: bool  # both of them in one request
    code_left_out: bool | None  # of the diffs, if requested; None: there was none to leave out
    code_hashed: bool  # its hash is there instead, so that it is known which accounts have code
    trace_block: bool
    trace_replay: bool
    archive: bool
    block_extra_data: bool  # a C-Chain: blocks carry atomic transactions
    is_avalanche: bool  # its headers have fields that only Avalanche's C-Chain and L1s have: accepted blocks are final
    genesis_traceable: bool
    batches: bool
    reasons: dict[str, str] = {}  # its error texts, by field
    incomplete: tuple[str, ...] = ()  # fields of what it answered, but incompletely: it may have it at another time

    @property
    def calls_by(self) -> str:
        """The method or tracer for call traces; empty if there is none."""
        return "callTracer" if self.call_tracer or self.mux_tracer else "trace_block" if self.trace_block else ""

    @property
    def diffs_by(self) -> str:
        """The method or tracer for state diffs; empty if there is none."""
        if self.prestate_tracer or self.mux_tracer:
            return "prestateTracer"
        return "trace_replayBlockTransactions" if self.trace_replay else ""

    @property
    def may_have_calls(self) -> bool:
        return bool(self.calls_by) or not _CALL_TRACERS.isdisjoint(self.incomplete)

    @property
    def may_have_diffs(self) -> bool:
        return bool(self.diffs_by) or not _DIFF_TRACERS.isdisjoint(self.incomplete)

    def limited_to(self, *, calls: bool) -> "Capabilities":
        """What is left of it where no diffs are to be fetched, and calls only if `calls` is set."""
        return msgspec.structs.replace(
            self,
            call_tracer=calls and (self.call_tracer or self.mux_tracer),
            trace_block=calls and self.trace_block,
            prestate_tracer=False,
            mux_tracer=False,
            trace_replay=False,
            incomplete=self.incomplete if calls else (),
        )

    @property
    def omits_code(self) -> bool:
        """Whether diffs are requested without code: it is most of their bytes, and only its presence matters."""
        return self.code_left_out is True and self.code_hashed

    def degraded(self) -> list[str]:
        """What is missing or slow because of features this upstream does not have, as text."""
        return [row.text + self._because(row.field) for row in _LIMITATIONS if row.holds(self)]

    def missing(self) -> list[str]:
        """Of that, what is missing, not only slower or not tested yet."""
        return [row.text + self._because(row.field) for row in _LIMITATIONS if row.holds(self) and row.is_missing]

    def _because(self, field: str) -> str:
        return f" ({self.reasons[field]})" if field in self.reasons else ""


class _Limitation(NamedTuple):
    field: str
    holds: Callable[[Capabilities], bool]
    text: str
    is_missing: bool = True  # else only slower, or not tested yet


_LIMITATIONS = (
    _Limitation(
        "call_tracer",
        lambda it: not it.calls_by,
        "no call traces: internal transactions and contracts created by contracts are missing",
    ),
    _Limitation(
        "prestate_tracer",
        lambda it: not it.diffs_by,
        "no state diffs: native balances are read from the upstream on request",
    ),
    _Limitation(
        "archive",
        lambda it: not it.archive,
        "no archive: state and traces of old blocks are gone, so only new blocks can be indexed whole",
    ),
    _Limitation("block_receipts", lambda it: not it.block_receipts, "receipts are fetched one by one: slower", False),
    _Limitation("batches", lambda it: not it.batches, "one call per request: slower", False),
    _Limitation(
        "mux_tracer",
        lambda it: it.call_tracer and it.prestate_tracer and not it.mux_tracer and it.sample is not None,
        "calls and diffs take one request each: slower",
        is_missing=False,
    ),
    _Limitation(
        "code_left_out",
        lambda it: it.diffs_by == "prestateTracer" and it.sample is not None and not it.omits_code,
        "state diffs repeat contract code: several times the bytes",
        is_missing=False,
    ),
    _Limitation(
        "call_tracer",
        lambda it: it.calls_by == "trace_block" and it.sample is not None,
        "call traces are trace_block's: CREATE2 shows as CREATE where the client does not distinguish them",
    ),
    _Limitation(
        "prestate_tracer",
        lambda it: it.diffs_by == "trace_replayBlockTransactions" and it.sample is not None,
        "state diffs are trace_replayBlockTransactions': destroyed contracts and code are read from"
        " state, block by block: slower, and only with an archive",
    ),
    _Limitation(
        "sample",
        lambda it: it.sample is None,
        "no block with transactions was found: traces are tested when there is one",
        is_missing=False,
    ),
)


def debug_trace(number: int, tracer: str, config: dict[str, Any]) -> Call:
    return Call("debug_traceBlockByNumber", (hex(number), {"tracer": tracer, "tracerConfig": config}))


def calls_call(number: int) -> Call:
    return debug_trace(number, "callTracer", {"withLog": False})


def diffs_call(number: int, *, leave_out_code: bool) -> Call:
    return debug_trace(number, "prestateTracer", _diff_config(leave_out_code))


def both_call(number: int, *, leave_out_code: bool) -> Call:
    config = {"callTracer": {"withLog": False}, "prestateTracer": _diff_config(leave_out_code)}
    return debug_trace(number, "muxTracer", config)


def _diff_config(leave_out_code: bool) -> dict[str, bool]:
    return {"diffMode": True, "disableCode": True} if leave_out_code else {"diffMode": True}


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
    left_out, hashed = await _code_left_out(client, found, results)
    newest = decode_summary(await client.call("eth_getBlockByNumber", hex(head), False))
    has_extra_data = newest.block_extra_data is not msgspec.UNSET
    return Capabilities(
        chain_id=its_chain,
        client_version="" if isinstance(version, RpcRefusal) else str(msgspec.json.decode(version)),
        head=head,
        genesis_hash=None if isinstance(genesis, RpcRefusal) else _hash_text(genesis, client.name),
        sample=found.number if found is not None else None,
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


_FEATURES = (
    _Feature("block_receipts", lambda n: Call("eth_getBlockReceipts", (hex(n),)), check_receipts),
    _Feature("call_tracer", calls_call, check_calls),
    _Feature("prestate_tracer", lambda n: diffs_call(n, leave_out_code=False), check_diffs),
    _Feature("mux_tracer", lambda n: both_call(n, leave_out_code=False), check_mux_traces),
    _Feature("trace_block", lambda n: Call("trace_block", (hex(n),)), check_trace_block),
    _Feature("trace_replay", lambda n: Call("trace_replayBlockTransactions", (hex(n), ["stateDiff"])), check_replay),
    _Feature("genesis_traceable", lambda n: calls_call(0), lambda raw, header: None),
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
        can["mux_tracer"] = False  # an empty list shows nothing
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
    """A recent block with transactions, if there is one: preferably several, but not hundreds."""
    for numbers in candidates:
        outcomes = await client.call_all([Call("eth_getBlockByNumber", (hex(number), False)) for number in numbers])
        blocks = [decode_summary(outcome) for outcome in outcomes if not isinstance(outcome, RpcRefusal)]
        busy = [block for block in blocks if block.transactions]
        if busy:
            best = max(busy, key=lambda block: (len(block.transactions) <= _SAMPLE_TXS_MAX, len(block.transactions)))
            return Header(int(best.number, 16), best.hash, best.parent_hash, tuple(best.transactions))
    return None


async def _code_left_out(client: EvmClient, header: Header | None, results: _TestResults) -> tuple[bool | None, bool]:
    """Whether it leaves code out if requested, and whether there is a hash wherever there would have been code."""
    if header is None or not (results.can["prestate_tracer"] or results.can["mux_tracer"]):
        return None, False
    calls = [diffs_call(header.number, leave_out_code=leave_out) for leave_out in (False, True)]
    with_code, without_code = await client.call_all(calls, lane="traces")
    if isinstance(without_code, RpcRefusal) or isinstance(with_code, RpcRefusal):
        return False, False
    coded = accounts_with(with_code, "code")
    still_coded, hashed = accounts_with(without_code, "code"), accounts_with(without_code, "codeHash")
    return (not still_coded, coded <= hashed) if coded else (None, False)


async def _archive(client: EvmClient, head: int, results: _TestResults) -> bool:
    (outcome,) = await client.call_all([Call("eth_getBalance", (ZERO_ADDRESS, hex(min(1, head))))])
    if isinstance(outcome, RpcRefusal):
        results.reasons["archive"] = str(outcome)
    return not isinstance(outcome, RpcRefusal)


_QUANTITY = msgspec.json.Decoder(Hex)


def quantity(outcome: Outcome, what: str) -> int:
    """A number as JSON-RPC writes it; its refusal is raised."""
    if isinstance(outcome, RpcRefusal):
        raise outcome
    try:
        return int(_QUANTITY.decode(outcome), 16)
    except MALFORMED as error:
        raise IncompleteAnswer(f"{what}: {error}") from error


def limitations(upstreams: Sequence[Capabilities]) -> list[str]:
    """What is missing or slow at all of several upstreams; nothing if there are none."""
    return [row.text for row in _LIMITATIONS if upstreams and all(row.holds(it) for it in upstreams)]
