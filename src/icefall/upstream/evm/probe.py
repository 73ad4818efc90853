"""What an EVM upstream can do, found by trying each thing once on one of its own blocks."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from icefall.upstream.client import MALFORMED
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import (
    IncompleteAnswer,
    NotThere,
    ReorgDuringFetch,
    RpcRefusal,
    Untraceable,
    WrongChain,
)
from icefall.upstream.evm.parts import (
    Header,
    Hex,
    check_calls,
    check_diffs,
    check_receipts,
    check_replay,
    check_trace_block,
    places_of,
    sketch,
    taken_apart,
)

NOBODY = "0x" + "00" * 20
_RECENT = 8  # blocks looked at for one with transactions, before the search takes larger steps
_PLENTY = 50  # transactions: a sample with more takes long to trace


class Capabilities(msgspec.Struct, frozen=True):
    chain_id: int
    client_version: str
    head: int
    genesis_hash: str | None
    sample: int | None  # the block things were tried on; None: no block with transactions was found, nothing is certain
    block_receipts: bool
    call_tracer: bool
    prestate_tracer: bool  # in diffMode
    mux_tracer: bool  # both of them in one request
    code_left_out: bool | None  # of the diffs, if asked; None: there was none to leave out
    code_hashed: bool  # and its hash is there instead: that an account has code is never left out
    trace_block: bool
    trace_replay: bool
    archive: bool
    block_extra_data: bool  # a C-Chain: blocks carry atomic transactions
    genesis_traceable: bool
    batches: bool
    words: dict[str, str] = {}  # what it said when it refused, by field

    @property
    def calls_by(self) -> str:
        """The request that gives call traces; empty if there is none."""
        return "callTracer" if self.call_tracer or self.mux_tracer else "trace_block" if self.trace_block else ""

    @property
    def diffs_by(self) -> str:
        """The request that gives state diffs; empty if there is none."""
        if self.prestate_tracer or self.mux_tracer:
            return "prestateTracer"
        return "trace_replayBlockTransactions" if self.trace_replay else ""

    @property
    def lean(self) -> bool:
        """Whether diffs are asked for without code: most of their bytes, of which only the presence matters."""
        return self.code_left_out is True and self.code_hashed

    def degraded(self) -> list[str]:
        """What is missing or slow because of what this upstream cannot do, for people."""
        return [row.text + self._because(row.field) for row in _DEGRADED if row.holds(self)]

    def missing(self) -> list[str]:
        """Of that, what is not merely slower."""
        return [row.text + self._because(row.field) for row in _DEGRADED if row.holds(self) and not row.only_slower]

    def _because(self, field: str) -> str:
        return f" ({self.words[field]})" if field in self.words else ""


class _Lack(NamedTuple):
    field: str
    holds: Callable[[Capabilities], bool]
    text: str
    only_slower: bool = False


_DEGRADED = (
    _Lack(
        "call_tracer",
        lambda it: not it.calls_by,
        "no call traces: internal transactions and contracts made by contracts are missing",
    ),
    _Lack(
        "prestate_tracer",
        lambda it: not it.diffs_by,
        "no state diffs: native balances are read from the upstream when asked for",
    ),
    _Lack(
        "archive",
        lambda it: not it.archive,
        "no archive: state and traces of old blocks are gone, so only new blocks can be indexed whole",
    ),
    _Lack("block_receipts", lambda it: not it.block_receipts, "receipts are asked for one by one: slower", True),
    _Lack("batches", lambda it: not it.batches, "one call per request: slower", True),
    _Lack(
        "mux_tracer",
        lambda it: it.call_tracer and it.prestate_tracer and not it.mux_tracer and it.sample is not None,
        "calls and diffs take a request each: slower",
        only_slower=True,
    ),
    _Lack(
        "code_left_out",
        lambda it: it.diffs_by == "prestateTracer" and it.sample is not None and not it.lean,
        "state diffs repeat contract code: several times the bytes",
        only_slower=True,
    ),
    _Lack(
        "call_tracer",
        lambda it: it.calls_by == "trace_block" and it.sample is not None,
        "call traces are trace_block's: CREATE2 shows as CREATE where the client does not tell them apart",
    ),
    _Lack(
        "prestate_tracer",
        lambda it: it.diffs_by == "trace_replayBlockTransactions" and it.sample is not None,
        "state diffs are trace_replayBlockTransactions': what became of destroyed contracts and of code is asked of"
        " state, block by block: slower, and not without an archive",
    ),
    _Lack(
        "sample",
        lambda it: it.sample is None,
        "no block with transactions yet: tracers are tried again when there is one",
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
    """Everything at once. WrongChain if it is not the chain we were told of. `sample` is known to have transactions."""
    start = [
        Call("eth_chainId", ()),
        Call("eth_blockNumber", ()),
        Call("web3_clientVersion", ()),
        Call("eth_getBlockByNumber", (hex(0), False)),
    ]
    told, height, version, genesis = await client.ask(start)
    its_chain = quantity(told, "eth_chainId")
    if chain_id is not None and its_chain != chain_id:
        raise WrongChain(f"{client.name} serves chain {its_chain}, not {chain_id}")
    head = quantity(height, "eth_blockNumber")
    found = await _sample(client, _candidates(head, sample))
    tried = await _try_all(client, found or Header(head, "", "", ()))
    left_out, hashed = await _code_left_out(client, found, tried)
    newest = await client.one("eth_getBlockByNumber", hex(head), False)
    return Capabilities(
        chain_id=its_chain,
        client_version="" if isinstance(version, RpcRefusal) else str(msgspec.json.decode(version)),
        head=head,
        genesis_hash=None if isinstance(genesis, RpcRefusal) else sketch(genesis).hash,
        sample=found.number if found is not None else None,
        code_left_out=left_out,
        code_hashed=hashed,
        archive=await _archive(client, head, tried),
        block_extra_data=sketch(newest).block_extra_data is not msgspec.UNSET,
        batches=all(batch.size > 1 for batch in client.batches.values()),
        words=tried.words,
        **tried.can,
    )


class _Tried(NamedTuple):
    can: dict[str, bool]
    words: dict[str, str]


class _Feature(NamedTuple):
    field: str
    call: Callable[[int], Call]
    check: Callable[[msgspec.Raw, Header], Any]


_FEATURES = (
    _Feature("block_receipts", lambda n: Call("eth_getBlockReceipts", (hex(n),)), check_receipts),
    _Feature("call_tracer", calls_call, check_calls),
    _Feature("prestate_tracer", lambda n: diffs_call(n, leave_out_code=False), check_diffs),
    _Feature("mux_tracer", lambda n: both_call(n, leave_out_code=False), taken_apart),
    _Feature("trace_block", lambda n: Call("trace_block", (hex(n),)), check_trace_block),
    _Feature("trace_replay", lambda n: Call("trace_replayBlockTransactions", (hex(n), ["stateDiff"])), check_replay),
    _Feature("genesis_traceable", lambda n: calls_call(0), lambda raw, of: None),
)


async def _try_all(client: EvmClient, of: Header) -> _Tried:
    """Each feature on one block. An answer that is not whole gets a second chance, and then counts as none."""
    can, words = {}, {}
    outcomes = await client.ask([feature.call(of.number) for feature in _FEATURES], lane="traces")
    for feature, outcome in zip(_FEATURES, outcomes, strict=True):
        said = _complaint(feature, outcome, of)
        if isinstance(said, IncompleteAnswer):
            (again,) = await client.ask([feature.call(of.number)], lane="traces")
            said = _complaint(feature, again, of)
        if isinstance(said, ReorgDuringFetch | NotThere):
            raise ReorgDuringFetch(f"{client.name} changed its chain while it was tried: {said}")
        # Genesis is not traceable anywhere; whether later blocks are is shown by the first transaction.
        can[feature.field] = said is None or (isinstance(said, Untraceable) and feature.field != "genesis_traceable")
        if said is not None:
            words[feature.field] = str(said)
    if not of.txids:
        can["mux_tracer"] = False  # an empty list shows nothing
    return _Tried(can, words)


def _complaint(feature: _Feature, outcome: Outcome, of: Header) -> RpcRefusal | IncompleteAnswer | None:
    if isinstance(outcome, RpcRefusal):
        return outcome
    try:
        feature.check(outcome, of)
    except IncompleteAnswer as failure:
        return failure
    return None


def _candidates(head: int, known: int | None) -> Iterator[list[int]]:
    yield [number for number in range(head, head - _RECENT, -1) if number > 0]
    yield [head - (1 << power) for power in range(3, 64) if head - (1 << power) > 0]
    yield [] if known is None else [known]


async def _sample(client: EvmClient, candidates: Iterator[list[int]]) -> Header | None:
    """A block with transactions, if there is one near: rather more than one, rather not hundreds."""
    for numbers in candidates:
        outcomes = await client.ask([Call("eth_getBlockByNumber", (hex(number), False)) for number in numbers])
        blocks = [sketch(outcome) for outcome in outcomes if not isinstance(outcome, RpcRefusal)]
        busy = [block for block in blocks if block.transactions]
        if busy:
            best = max(busy, key=lambda block: (len(block.transactions) <= _PLENTY, len(block.transactions)))
            return Header(int(best.number, 16), best.hash, best.parent_hash, tuple(best.transactions))
    return None


async def _code_left_out(client: EvmClient, of: Header | None, tried: _Tried) -> tuple[bool | None, bool]:
    """Whether it leaves code out if asked, and whether a hash stands wherever there would have been code."""
    if of is None or not (tried.can["prestate_tracer"] or tried.can["mux_tracer"]):
        return None, False
    calls = [diffs_call(of.number, leave_out_code=leave_out) for leave_out in (False, True)]
    whole, lean = await client.ask(calls, lane="traces")
    if isinstance(lean, RpcRefusal) or isinstance(whole, RpcRefusal):
        return False, False
    coded, bare, hashed = places_of(whole, "code"), places_of(lean, "code"), places_of(lean, "codeHash")
    return (not bare, coded <= hashed) if coded else (None, False)


async def _archive(client: EvmClient, head: int, tried: _Tried) -> bool:
    (outcome,) = await client.ask([Call("eth_getBalance", (NOBODY, hex(min(1, head))))])
    if isinstance(outcome, RpcRefusal):
        tried.words["archive"] = str(outcome)
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


def lacks(them: Sequence[Capabilities]) -> list[str]:
    """What not even one of several upstreams makes up for; nothing is known of none."""
    return [row.text for row in _DEGRADED if them and all(row.holds(it) for it in them)]
