"""The features of an upstream are found by testing them once, and reported where they are missing."""

import asyncio
from itertools import product
from typing import Any

import pytest
from tests.upstream.evm_recording import CHAINS, recorded_blocks
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import client_of, expected, fetched, parts, upstream_of
from tests.upstream.replay import FOREVER

from icefall.upstream.client import UpstreamFailure
from icefall.upstream.evm.errors import WrongChain
from icefall.upstream.evm.probe import Capabilities, limitations, probe


def probed(replay: EvmReplay, **options: Any) -> Capabilities:
    async def run() -> Capabilities:
        async with client_of(replay) as client:
            return await probe(client, **options)

    return asyncio.run(run())


GETH = ("callTracer", "prestateTracer", "muxTracer")
ANVIL = ("callTracer", "prestateTracer", "trace_block", "trace_replayBlockTransactions")
RECORDED: dict[str, dict[str, Any]] = {
    "geth-1": {"chain_id": 1337, "traces": GETH, "code_left_out": True, "genesis_traceable": False, "head": 415},
    "cchain-1": {"chain_id": 43112, "traces": GETH, "code_left_out": False, "block_extra_data": True, "head": 198},
    "anvil-1": {
        "chain_id": 31337,
        "code_left_out": True,
        "traces": ANVIL,
    },
    "berlin-1": {"chain_id": 31338, "traces": ANVIL, "genesis_traceable": True, "client_version": "anvil/v1.7.1"},
}


def test_an_avalanche_l1_is_known_by_its_header() -> None:
    """Its blocks carry no atomic transactions, but a gas cost."""
    replay = EvmReplay()

    def with_cost(raw: bytes) -> bytes:
        return raw[:-1] + b',"blockGasCost":"0x0"}'

    replay.evm_faults = [EvmFault("eth_getBlockByNumber", number=replay.head, times=FOREVER, change=with_cost)]
    can = probed(replay)
    assert (can.is_avalanche, can.block_extra_data) == (True, False)


@pytest.mark.parametrize("chain", CHAINS)
def test_recorded_clients(chain: str) -> None:
    can = probed(EvmReplay(chain))
    assert {name: getattr(can, name) for name in RECORDED[chain]} == RECORDED[chain]
    assert can.block_receipts
    assert can.archive
    assert can.batches
    assert (can.calls_format, can.diffs_format) == ("geth", "geth")
    assert can.block_extra_data is can.is_avalanche is (chain == "cchain-1")
    assert can.genesis_hash == recorded_blocks(chain)[0].hash
    assert can.omits_code is (chain == "geth-1")
    assert ("state diffs repeat contract code: several times the bytes" in can.degraded()) is (chain != "geth-1")


FEATURES = ("eth_getBlockReceipts", "callTracer", "prestateTracer", "muxTracer", "disableCode", "batch")


COMBINATIONS = ["+".join(filter(None, some)) for some in product(*(("", feature) for feature in FEATURES))]


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_every_combination_of_features_switched_off(combination: str) -> None:
    """What cannot be had is None, everything else is there, byte for byte."""
    off = set(combination.split("+")) - {""}
    replay = EvmReplay("geth-1")
    replay.off = off
    numbers = [0, 5, 6, 7, 8, 16, 17, 18, 42, 43]

    async def run() -> None:
        async with upstream_of(replay) as upstream:
            assert await upstream.probe_all() == {}
            (can,) = upstream.capabilities().values()
            assert can.block_receipts is ("eth_getBlockReceipts" not in off)
            assert ("callTracer" in can.traces) is ("callTracer" not in off)
            assert ("prestateTracer" in can.traces) is ("prestateTracer" not in off)
            assert ("muxTracer" in can.traces) is off.isdisjoint({"muxTracer", "callTracer", "prestateTracer"})
            assert can.batches is ("batch" not in off)
            for block in await fetched(upstream, numbers):
                omits_code = "disableCode" not in off
                number, whole, receipts, calls, diffs = expected(
                    recorded_blocks("geth-1")[block.number], omits_code=omits_code
                )
                calls = None if "callTracer" in off else calls
                diffs = None if "prestateTracer" in off else diffs
                assert parts(block) == (number, whole, receipts, calls, diffs)
                assert numbers[0] == number
                numbers.pop(0)
            assert numbers == []

    asyncio.run(run())


WORDS: dict[str, tuple[set[str], int, str]] = {
    "calls": (
        {"debug_traceBlockByNumber"},
        0,
        "no call traces: .* (the method debug_traceBlockByNumber does not exist",
    ),
    "diffs": ({"prestateTracer", "muxTracer"}, 0, "no state diffs: .*ReferenceError"),
    "archive": (set(), 400, "no archive: .*missing trie node"),
    "receipts": ({"eth_getBlockReceipts"}, 0, "receipts are fetched one by one"),
    "mux": ({"muxTracer"}, 0, "calls and diffs take one request each"),
    "code": ({"disableCode"}, 0, "state diffs repeat contract code"),
    "batch": ({"batch"}, 0, "one call per request"),
}


@pytest.mark.parametrize("name", WORDS)
def test_missing_features_are_reported(name: str) -> None:
    off, pruned_below, text = WORDS[name]
    replay = EvmReplay("geth-1")
    replay.off, replay.pruned_below = off, pruned_below
    said = probed(replay).degraded()
    start, _, rest = text.partition(".*")
    assert any(line.startswith(start.split(" (")[0]) and rest.strip(" (") in line for line in said), said


def test_parity_traces_where_nothing_else_is_offered() -> None:
    replay = EvmReplay("berlin-1")
    replay.off = {"debug_traceBlockByNumber"}

    async def run() -> None:
        async with upstream_of(replay) as upstream:
            blocks = await fetched(upstream, range(132))
            assert [block.number for block in blocks] == list(range(132))
            assert {(block.calls_format, block.diffs_format) for block in blocks} == {("parity", "parity")}
            replay.off.add("trace_replayBlockTransactions")
        async with upstream_of(replay) as upstream:
            (block,) = await fetched(upstream, [12])
            assert block.diffs is None
            assert block.calls is not None

    asyncio.run(run())


def test_another_chain_is_refused() -> None:
    replay = EvmReplay("berlin-1")
    with pytest.raises(WrongChain, match="serves chain 31338, not 43114"):
        probed(replay, chain_id=43114)
    assert probed(replay, chain_id=31338).chain_id == 31338


def test_a_chain_without_transactions_is_tried_again_when_it_has_some() -> None:
    replay = EvmReplay("geth-1")
    replay.shown = 3  # geth-1's first transactions are in block 6
    early = [block for block in recorded_blocks("geth-1").values() if block.number <= 3]
    assert all(not block.txids for block in early)

    async def run() -> None:
        async with upstream_of(replay) as upstream:
            await upstream.probe_all()
            (can,) = upstream.capabilities().values()
            assert (can.sample, can.traces) == (None, ("callTracer", "prestateTracer"))
            assert len(await fetched(upstream, range(4))) == 4
            replay.shown = None
            blocks = await fetched(upstream, range(4, 30))
            assert [parts(block) for block in blocks] == [
                expected(recorded_blocks("geth-1")[number], omits_code=True) for number in range(4, 30)
            ]
            (can,) = upstream.capabilities().values()
            assert "muxTracer" in can.traces
            assert can.sample is not None

    asyncio.run(run())


def test_an_empty_block_that_is_not_the_newest_is_looked_past() -> None:
    replay = EvmReplay("geth-1")
    empty = [number for number, block in recorded_blocks("geth-1").items() if not block.txids]
    for replay.shown in (empty[10], empty[50], empty[100]):
        can = probed(replay)
        assert can.sample is not None
        assert "muxTracer" in can.traces


def test_a_partial_answer_while_probing_does_not_cost_a_feature() -> None:
    for evm_fault in (
        EvmFault("eth_getBlockReceipts", result=b"[]"),
        EvmFault("debug_", result=b"[]", times=3),
        EvmFault("debug_", left_out=True),
        EvmFault("eth_", status=429, times=3),
        EvmFault("debug_", keep=0.5),
    ):
        replay = EvmReplay("geth-1")
        replay.evm_faults = [evm_fault]
        can = probed(replay)
        assert can.block_receipts
        assert can.traces == GETH


@pytest.mark.parametrize("body", [b"null", b'"0x"', b'"7"', b"[]", b'"0xzz"'])
def test_a_chain_id_that_is_none(body: bytes) -> None:
    replay = EvmReplay("geth-1")
    replay.evm_faults = [EvmFault("eth_chainId", result=body, times=FOREVER)]
    with pytest.raises(UpstreamFailure):
        probed(replay)


def test_code_is_left_out_only_if_its_hash_stays() -> None:
    """Otherwise contracts and wallets could not be distinguished."""

    def unhashed(raw: bytes) -> bytes:
        return raw.replace(b'"codeHash"', b'"other"')

    replay = EvmReplay("geth-1")
    replay.evm_faults = [EvmFault("debug_", change=unhashed, times=FOREVER)]
    can = probed(replay)
    assert (can.code_left_out, can.code_hashed, can.omits_code) == (True, False, False)
    replay.evm_faults.clear()
    assert probed(replay).omits_code
    replay.shown = 6  # a block without any contract shows nothing
    can = probed(replay)
    assert (can.code_left_out, can.omits_code) == (None, False)


def test_no_upstream_has_no_limitations() -> None:
    """While every upstream is away, that they lack everything would be news."""
    assert limitations([]) == []
