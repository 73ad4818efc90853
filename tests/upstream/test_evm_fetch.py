"""Blocks fetched whole and in order: from every recorded chain, and through everything that may go wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.upstream.evm_recording import CHAINS, recorded_blocks
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import HASTY, LIMITS, collect, expected, fetched, parts, slept, upstream_of
from tests.upstream.replay import FOREVER

from icefall.demo.recording import RecordedBlock
from icefall.upstream.client import InvalidAnswer, UpstreamDown, UpstreamFailure
from icefall.upstream.evm.block_parts import FetchedBlock
from icefall.upstream.evm.errors import IncompleteAnswer, NoState, NotThere, ReorgDuringFetch
from icefall.upstream.evm.upstream import EvmUpstream

OMITS_CODE = {"geth-1": True, "cchain-1": False, "anvil-1": False, "berlin-1": False}
RUN = range(16, 60)


def on(scene: Callable[[EvmUpstream], Awaitable[None]], *replays: EvmReplay, **options: Any) -> None:
    async def run() -> None:
        async with upstream_of(*replays, **options) as upstream:
            await upstream.probe_all()
            await scene(upstream)

    asyncio.run(run())


def wanted(chain: str, numbers: range) -> list[tuple[Any, ...]]:
    return [expected(recorded_blocks(chain)[number], omits_code=OMITS_CODE[chain]) for number in numbers]


@pytest.mark.parametrize("chain", CHAINS)
def test_every_recorded_chain_from_genesis_to_head(chain: str) -> None:
    replay = EvmReplay(chain)

    async def scene(upstream: EvmUpstream) -> None:
        whole = range(await upstream.head() + 1)
        blocks = await fetched(upstream, whole)
        assert [parts(block) for block in blocks] == wanted(chain, whole)
        assert {block.source for block in blocks} == {replay.url}
        assert slept(upstream) == []
        look = upstream.last_prefetch
        assert look is not None
        assert (look.held_blocks, look.held_bytes) == (0, 0)

    on(scene, replay)


def test_any_numbers_in_the_order_given() -> None:
    numbers = [5, 6, 7, 100, 20, 21, 3, 0, 415]

    async def scene(upstream: EvmUpstream) -> None:
        assert [block.number for block in await fetched(upstream, numbers)] == numbers
        assert [block.number for block in await fetched(upstream, iter(numbers))] == numbers
        assert await fetched(upstream, []) == []

    on(scene, EvmReplay("geth-1"))


def test_capabilities_by_name() -> None:
    async def scene(upstream: EvmUpstream) -> None:
        assert await upstream.head() == 198
        assert await upstream.block_hash(7) == bytes.fromhex(recorded_blocks("cchain-1")[7].hash[2:])
        assert await upstream.block_hash(199) is None
        replay.evm_faults = [EvmFault(BLOCK, result=b"null", times=2)]
        assert await upstream.block_hash(8) == bytes.fromhex(recorded_blocks("cchain-1")[8].hash[2:])
        assert upstream.degraded() == ["state diffs repeat contract code: several times the bytes"]

    replay = EvmReplay("cchain-1")
    on(scene, replay)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def fewer(raw: bytes) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(raw, type=list[msgspec.Raw])[:-1])


def without_transactions(raw: bytes) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(raw, type=dict[str, msgspec.Raw]), "transactions": []})


def emptied_rows(raw: bytes) -> bytes:
    return msgspec.json.encode([{**row, "result": {}} for row in msgspec.json.decode(raw)])


def null_rows(raw: bytes) -> bytes:
    return msgspec.json.encode([{**row, "result": None} for row in msgspec.json.decode(raw)])


def failed_rows(raw: bytes) -> bytes:
    return msgspec.json.encode(
        [{"txHash": row["txHash"], "error": "execution timeout"} for row in msgspec.json.decode(raw)]
    )


def after_busy() -> RecordedBlock:
    blocks = recorded_blocks("geth-1")
    assert len(blocks[BUSY].txids) > 3
    return blocks[BUSY + 1]


def turned(raw: bytes) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(raw, type=list[msgspec.Raw])[::-1])


BUSY = 23  # with several transactions
BLOCK, RECEIPTS, TRACE = "eth_getBlockByNumber", "eth_getBlockReceipts", "debug_traceBlockByNumber"

TROUBLES: dict[str, EvmFault] = {
    "429": EvmFault(status=429),
    "429 asking for a while": EvmFault(status=429, headers={"Retry-After": "7"}),
    "500": EvmFault(status=500),
    "503": EvmFault(status=503),
    "hangs": EvmFault(hang=True),
    "hangs up": EvmFault(hang_up=True),
    "truncated": EvmFault(keep=0.7),
    "empty body": EvmFault(body=b""),
    "empty list": EvmFault(body=b"[]"),
    "HTML": EvmFault(body=b"<html>"),
    "rate limited in JSON": EvmFault(error=(-32005, "rate limit exceeded")),
    "internal error": EvmFault(error=(-32603, "internal error")),
    "unknown error": EvmFault(error=(-32000, "an unknown error")),
    "answer left out": EvmFault(left_out=True),
    "answer twice": EvmFault(twice=True),
    "null": EvmFault(result=b"null"),
    "of another shape": EvmFault(result=b'{"a":1}'),
    "a text": EvmFault(result=b'"no"'),
    "block null": EvmFault(BLOCK, number=BUSY, result=b"null"),
    "another block": EvmFault(BLOCK, number=BUSY, change=lambda _: after_busy().block),
    "block without its transactions": EvmFault(BLOCK, number=BUSY, change=without_transactions),
    "no receipts": EvmFault(RECEIPTS, number=BUSY, result=b"[]"),
    "receipts null": EvmFault(RECEIPTS, number=BUSY, result=b"null"),
    "a receipt missing": EvmFault(RECEIPTS, number=BUSY, change=fewer),
    "receipts of another block": EvmFault(RECEIPTS, number=BUSY, change=lambda _: after_busy().receipts),
    "receipts out of order": EvmFault(RECEIPTS, number=BUSY, change=turned),
    "receipts too large": EvmFault(RECEIPTS, number=BUSY, error=(-32003, "response too large")),
    "no traces": EvmFault(TRACE, number=BUSY, result=b"[]"),
    "traces null": EvmFault(TRACE, number=BUSY, result=b"null"),
    "a trace missing": EvmFault(TRACE, number=BUSY, change=fewer),
    "traces out of order": EvmFault(TRACE, number=BUSY, change=turned),
    "empty traces": EvmFault(TRACE, number=BUSY, change=emptied_rows),
    "null traces": EvmFault(TRACE, number=BUSY, change=null_rows),
    "failed traces": EvmFault(TRACE, number=BUSY, change=failed_rows),
    "trace not there": EvmFault(TRACE, number=BUSY, error=(-32000, f"block #{BUSY} not found")),
}


@pytest.mark.parametrize(("times", "mux"), [(1, True), (3, False)], ids=["once, mux", "thrice, single"])
@pytest.mark.parametrize("name", TROUBLES)
def test_what_goes_wrong_for_a_while_changes_no_byte(name: str, times: int, mux: bool) -> None:
    replay = EvmReplay("geth-1")
    replay.off = set() if mux else {"muxTracer"}

    async def scene(upstream: EvmUpstream) -> None:
        replay.evm_faults = [TROUBLES[name]._replace(times=times)]
        assert [parts(block) for block in await fetched(upstream, RUN)] == wanted("geth-1", RUN)
        assert replay.evm_faults == []

    on(scene, replay, limits=HASTY if TROUBLES[name].hang else LIMITS)


@pytest.mark.parametrize("name", TROUBLES)
def test_what_goes_wrong_for_good_is_a_failure_and_never_a_block(name: str) -> None:
    replay = EvmReplay("geth-1")

    async def scene(upstream: EvmUpstream) -> None:
        replay.evm_faults = [TROUBLES[name]._replace(times=FOREVER, number=BUSY)]
        blocks: list[FetchedBlock] = []
        with pytest.raises(UpstreamFailure) as caught:
            await collect(upstream, RUN, blocks)
        got = [parts(block) for block in blocks]
        assert not isinstance(caught.value, NotThere)
        assert str(caught.value)
        assert got == wanted("geth-1", range(RUN.start, RUN.start + len(got)))
        assert RUN.start + len(got) <= BUSY
        replay.evm_faults.clear()
        assert [parts(block) for block in await fetched(upstream, RUN)] == wanted("geth-1", RUN)

    on(scene, replay, limits=HASTY if TROUBLES[name].hang else LIMITS)


HEAVY: dict[str, EvmFault] = {
    "too slow for the node": EvmFault(error=(-32000, "execution timeout")),
    "too long for the node": EvmFault(error=(-32003, "response too large")),
    "too slow for us": EvmFault(hang=True),
}
SPLIT = {"geth, one request": set[str](), "geth, two requests": {"muxTracer"}, "parity": {"debug_traceBlockByNumber"}}


@pytest.mark.parametrize("offered", SPLIT)
@pytest.mark.parametrize("name", HEAVY)
def test_a_block_that_is_too_heavy_is_traced_one_transaction_at_a_time(name: str, offered: str) -> None:
    replay = EvmReplay("geth-1")
    replay.off, replay.parity = set(SPLIT[offered]), offered == "parity"
    method = "trace_replayBlockTransactions" if replay.parity else TRACE

    async def scene(upstream: EvmUpstream) -> None:
        whole = await fetched(upstream, RUN)
        replay.evm_faults = [HEAVY[name]._replace(method=method, number=BUSY, times=FOREVER)]
        split = await fetched(upstream, RUN)
        assert [msgspec.structs.replace(block, calls=b"", diffs=b"") for block in split] == [
            msgspec.structs.replace(block, calls=b"", diffs=b"") for block in whole
        ]
        for before, after in zip(whole, split, strict=True):
            for part in ("calls", "diffs"):
                assert msgspec.json.decode(getattr(after, part)) == msgspec.json.decode(getattr(before, part))
        asked = replay.asked(method)
        await fetched(upstream, [BUSY])  # now it is known to be too heavy
        assert replay.asked(method) == asked

    on(scene, replay, limits=HASTY if HEAVY[name].hang else LIMITS)


def test_a_transaction_that_is_too_heavy_is_a_failure_and_never_a_block() -> None:
    replay = EvmReplay("geth-1")

    async def scene(upstream: EvmUpstream) -> None:
        heavy = HEAVY["too slow for the node"]
        replay.evm_faults = [
            heavy._replace(method=TRACE, number=BUSY, times=FOREVER),
            heavy._replace(method="debug_traceTransaction", times=FOREVER),
        ]
        blocks: list[FetchedBlock] = []
        with pytest.raises(UpstreamFailure, match="execution timeout"):
            await collect(upstream, RUN, blocks)
        assert [parts(block) for block in blocks] == wanted("geth-1", range(RUN.start, RUN.start + len(blocks)))
        assert RUN.start + len(blocks) <= BUSY

    on(scene, replay)


@pytest.mark.parametrize("name", ["no receipts", "a receipt missing", "a trace missing", "500", "truncated"])
def test_another_upstream_takes_over(name: str) -> None:
    bad, good = EvmReplay("geth-1"), EvmReplay("geth-1")

    async def scene(upstream: EvmUpstream) -> None:
        assert (await fetched(upstream, [16]))[0].source == bad.url
        bad.evm_faults = [TROUBLES[name]._replace(times=FOREVER, number=BUSY)]
        blocks = await fetched(upstream, RUN)
        assert [parts(block) for block in blocks] == wanted("geth-1", RUN)
        assert next(block.source for block in blocks if block.number == BUSY) == good.url
        assert [source.name for source in upstream.pool.usable()] == [good.url]

    on(scene, bad, good)


def test_receipts_one_by_one_must_all_be_there() -> None:
    replay = EvmReplay("geth-1")
    replay.off = {"eth_getBlockReceipts"}

    async def scene(upstream: EvmUpstream) -> None:
        replay.evm_faults = [EvmFault("eth_getTransactionReceipt", result=b"null", times=3)]
        assert [parts(block) for block in await fetched(upstream, RUN)] == wanted("geth-1", RUN)
        replay.evm_faults = [EvmFault("eth_getTransactionReceipt", result=b"null", times=FOREVER)]
        with pytest.raises(IncompleteAnswer, match="is known, but a part of it is missing"):
            await fetched(upstream, RUN)

    on(scene, replay)


# -- the end of the chain ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", CHAINS)
def test_beyond_the_head(chain: str) -> None:
    replay = EvmReplay(chain)

    async def scene(upstream: EvmUpstream) -> None:
        replay.shown = 40
        blocks: list[FetchedBlock] = []
        with pytest.raises(NotThere, match="at block 40: there is no block 41 yet"):
            await collect(upstream, range(30, 60), blocks)
        assert [block.number for block in blocks] == list(range(30, 41))
        assert slept(upstream) == []
        assert upstream.pool.failing() == {}
        replay.shown = 30  # its head goes backwards
        assert await upstream.head() == 30
        assert await upstream.block_hash(31) is None
        with pytest.raises(NotThere):
            await fetched(upstream, [31])

    on(scene, replay)


def test_one_that_lags_is_no_end_of_the_chain() -> None:
    behind, ahead = EvmReplay("geth-1"), EvmReplay("geth-1")

    async def scene(upstream: EvmUpstream) -> None:
        await fetched(upstream, [5])
        behind.shown = 30
        blocks = await fetched(upstream, range(20, 60))
        assert [parts(block) for block in blocks] == wanted("geth-1", range(20, 60))
        assert {block.source for block in blocks} == {behind.url, ahead.url}
        assert upstream.pool.failing() == {}

    on(scene, behind, ahead)


def test_forgotten_state_is_not_a_block_without_traces() -> None:
    pruned, archive = EvmReplay("geth-1"), EvmReplay("geth-1")
    pruned.pruned_below = 40

    async def alone(upstream: EvmUpstream) -> None:
        with pytest.raises(NoState, match="missing trie node"):
            await fetched(upstream, RUN)
        assert len(await fetched(upstream, range(40, 60))) == 20
        assert any("no archive" in line for line in upstream.degraded())

    async def both(upstream: EvmUpstream) -> None:
        assert [parts(block) for block in await fetched(upstream, RUN)] == wanted("geth-1", RUN)
        assert not any("no archive" in line for line in upstream.degraded())

    on(alone, pruned)
    on(both, pruned, archive)


# -- reorganisations ---------------------------------------------------------------------------------------------------


def spliced(name: str) -> dict[int, RecordedBlock]:
    """anvil-1 up to where a recorded stretch begins, and that stretch."""
    stretch = recorded_blocks("anvil-1", name)
    return {n: b for n, b in recorded_blocks("anvil-1").items() if n < min(stretch)} | stretch


@pytest.mark.parametrize("which", ["reorg1", "reorg2"])
@pytest.mark.parametrize("method", [BLOCK, RECEIPTS, TRACE])
@pytest.mark.parametrize("nth", [1, 2, 5, 12, 30])
def test_a_block_is_never_put_together_from_two_chains(which: str, method: str, nth: int) -> None:
    """The chain changes at the nth call of a method: whatever is handed out is one recorded block or another."""
    before, after = spliced(f"{which}_before_blocks"), spliced(f"{which}_after_blocks")
    replay = EvmReplay("anvil-1", before)
    numbers = range(min(recorded_blocks("anvil-1", f"{which}_before_blocks")), max(after) + 1)

    async def scene(upstream: EvmUpstream) -> None:
        seen = []

        def switch(called: str, params: list[Any]) -> None:
            seen.append(called)
            if seen.count(method) == nth:
                replay.blocks = after

        replay.on_call = switch
        blocks = await fetched(upstream, numbers)
        assert [block.number for block in blocks] == list(numbers)
        for block in blocks:
            assert parts(block) in (
                expected(before[block.number], omits_code=False),
                expected(after[block.number], omits_code=False),
            )

    on(scene, replay)


def forged(block: RecordedBlock, mark: str) -> RecordedBlock:
    """The same transactions in another block, after which the state is another."""
    made = RecordedBlock.__new__(RecordedBlock)
    made.__dict__.update(block.__dict__)
    made.hash = "0x" + mark * 64
    for part in ("block", "receipts", "without_txs"):
        setattr(made, part, getattr(block, part).replace(block.hash.encode(), made.hash.encode()))
    made.calls = (block.calls or b"").replace(b'"type":', f'"mark":"{mark}","type":'.encode())
    return made


@pytest.mark.parametrize("mux", [True, False], ids=["mux", "single"])
def test_the_same_transactions_in_another_block_are_noticed(mux: bool) -> None:
    """Traces name no block: only fetching the hash once more shows that they are of another."""
    replay = EvmReplay("geth-1")
    replay.off = set() if mux else {"muxTracer"}
    other = forged(recorded_blocks("geth-1")[BUSY], "b")

    async def scene(upstream: EvmUpstream) -> None:
        def switch(called: str, params: list[Any]) -> None:
            if called == TRACE:
                replay.blocks = {**recorded_blocks("geth-1"), BUSY: other}

        replay.on_call = switch
        (block,) = await fetched(upstream, [BUSY])
        assert parts(block) == expected(other, omits_code=True)
        assert block.calls is not None
        assert b'"mark":"b"' in block.calls

    on(scene, replay)


def test_blocks_that_do_not_follow_each_other_are_fetched_again_and_at_last_left_to_the_reader() -> None:
    replay = EvmReplay("anvil-1", spliced("reorg1_before_blocks"))
    after = recorded_blocks("anvil-1", "reorg1_after_blocks")

    async def scene(upstream: EvmUpstream) -> None:
        replay.evm_faults = [
            EvmFault(BLOCK, number=1957, result=after[1957].block, times=FOREVER),
            EvmFault(RECEIPTS, number=1957, result=after[1957].receipts, times=FOREVER),
        ]
        blocks = await fetched(upstream, range(1950, 1960))
        assert [block.number for block in blocks] == list(range(1950, 1960))
        assert blocks[7].block == after[1957].block, "not the child of 1956, and a reader must notice"
        assert any("block 1957 is not the child of block 1956" in str(line) for line in upstream._log.lines)  # type: ignore[attr-defined]
        replay.evm_faults = [evm_fault._replace(times=2) for evm_fault in replay.evm_faults]
        blocks = await fetched(upstream, range(1950, 1960))
        assert blocks[7].block != after[1957].block

    on(scene, replay)


@pytest.mark.parametrize("method", [BLOCK, RECEIPTS, TRACE])
def test_a_block_that_stays_incomplete_does_not_hold_up_those_before_it(method: str) -> None:
    replay = EvmReplay("geth-1")

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        replay.evm_faults = [EvmFault(method, number=BUSY, result=b"[]", times=FOREVER)]
        blocks: list[FetchedBlock] = []
        with pytest.raises(IncompleteAnswer, match=f"block {BUSY}"):
            await collect(upstream, range(BUSY - 9, BUSY + 9), blocks)
        assert [block.number for block in blocks] == list(range(BUSY - 9, BUSY))
        replay.evm_faults = []
        assert [parts(block) for block in await fetched(upstream, RUN)] == wanted("geth-1", RUN)

    on(scene, replay)


def test_kinds_of_garbage_are_distinguished() -> None:
    assert issubclass(IncompleteAnswer, InvalidAnswer)
    assert issubclass(ReorgDuringFetch, IncompleteAnswer)
    assert not issubclass(NotThere, InvalidAnswer | UpstreamDown)
