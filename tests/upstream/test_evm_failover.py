"""Several upstreams of one chain: which one is used, which back off, which are disabled."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.upstream.evm_recording import recorded_blocks
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import RecordingLog, expected, fetched, parts, slept, upstream_of
from tests.upstream.fake_clock import FakeClock
from tests.upstream.replay import FOREVER
from tests.upstream.threaded import in_thread

from icefall.upstream.client import UpstreamDown, WrongUpstream
from icefall.upstream.evm import probe
from icefall.upstream.evm.errors import WrongChain
from icefall.upstream.evm.upstream import EvmUpstream, RequiredTraces

RUN = range(16, 60)


def on(scene: Callable[[EvmUpstream], Awaitable[None]], *replays: EvmReplay, **options: Any) -> None:
    async def run() -> None:
        async with upstream_of(*replays, **options) as upstream:
            await scene(upstream)

    asyncio.run(run())


def whole(numbers: range = RUN) -> list[tuple[Any, ...]]:
    return [expected(recorded_blocks("geth-1")[number], omits_code=True) for number in numbers]


def test_the_first_is_used_while_it_is_usable() -> None:
    first, second = EvmReplay(), EvmReplay()

    async def scene(upstream: EvmUpstream) -> None:
        assert await upstream.probe_all() == {}
        asked = len(second.calls)
        assert [parts(block) for block in await fetched(upstream, RUN)] == whole()
        assert len(second.calls) == asked
        assert list(upstream.capabilities()) == [first.url, second.url]

    on(scene, first, second)


def test_one_that_dies_in_the_middle_is_replaced_and_comes_back() -> None:
    first, second = EvmReplay(), EvmReplay()

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        got = []
        async for block in upstream.fetch(RUN):
            got.append(parts(block))
            if block.number == 20:
                first.evm_faults = [EvmFault(status=500, times=FOREVER)]
            if block.number == 40:
                await second.stop()
                first.evm_faults.clear()
        assert got == whole()
        second.evm_faults = [EvmFault(status=500, times=FOREVER)]
        assert [parts(block) for block in await fetched(upstream, RUN)] == whole()

    on(scene, first, second)


def test_all_down_names_every_reason() -> None:
    first, second = EvmReplay(), EvmReplay()

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        first.evm_faults = [EvmFault(status=500, times=FOREVER)]
        second.evm_faults = [EvmFault(status=503, times=FOREVER)]
        with pytest.raises(UpstreamDown, match="answered 50"):
            await fetched(upstream, RUN)
        with pytest.raises(UpstreamDown) as caught:
            await upstream.head()
        assert "answered 50" in str(caught.value)
        assert sum(slept(upstream)) < 1000
        first.evm_faults.clear()
        assert [parts(block) for block in await fetched(upstream, RUN)] == whole()

    on(scene, first, second)


def test_an_upstream_of_another_chain_is_not_used_and_probed_again() -> None:
    wrong, right = EvmReplay("berlin-1"), EvmReplay()

    async def scene(upstream: EvmUpstream) -> None:
        against = await upstream.probe_all()
        assert list(against) == [wrong.url]
        assert "serves chain 31338, not 1337" in against[wrong.url]
        assert [parts(block) for block in await fetched(upstream, RUN)] == whole()
        assert [source.name for source in upstream.pool.usable()] == [right.url]
        assert wrong.asked("eth_getBlockReceipts") == 0

    async def alone(upstream: EvmUpstream) -> None:
        with pytest.raises(WrongChain, match="serves chain 31338, not 1"):
            await upstream.probe_all()
        for _ in range(10):
            with pytest.raises(WrongUpstream, match="serves chain 31338, not 1"):
                await upstream.head()  # at once: no use to wait for it
            await upstream.clock.sleep(60.0)
        assert slept(upstream) == [60.0] * 10
        wrong.chain_id = 1
        assert await upstream.head() == wrong.head

    on(scene, wrong, right, chain_id=1337)
    on(alone, wrong, chain_id=1)


def test_two_chains_with_the_same_id_differ_in_their_genesis() -> None:
    first, second = EvmReplay(), EvmReplay("berlin-1")
    second.chain_id = 1337

    async def scene(upstream: EvmUpstream) -> None:
        against = await upstream.probe_all()
        assert len(against) == 1
        assert "another chain with the same ID" in next(iter(against.values()))

    on(scene, first, second, chain_id=None)


def test_the_chain_id_is_learnt_if_not_configured() -> None:
    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        assert upstream.chain_id == 43112

    on(scene, EvmReplay("cchain-1"), chain_id=None)


def test_an_upstream_without_traces_is_not_used_for_blocks_if_others_have_them() -> None:
    poor, rich = EvmReplay(), EvmReplay()
    poor.off = {"debug_traceBlockByNumber"}

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        assert upstream.required == RequiredTraces(calls=True, diffs=True)
        assert [parts(block) for block in await fetched(upstream, RUN)] == whole()
        assert poor.asked("eth_getBlockReceipts") == 1
        assert await upstream.head() == 415
        rich.evm_faults = [EvmFault(status=500, times=FOREVER)]
        with pytest.raises(UpstreamDown):
            await fetched(upstream, RUN)

    async def alone(upstream: EvmUpstream) -> None:
        blocks = await fetched(upstream, RUN)
        assert upstream.required == RequiredTraces(calls=False, diffs=False)
        assert {(block.calls, block.diffs) for block in blocks} == {(None, None)}
        assert any(line.startswith("no call traces") for line in upstream.degraded())

    async def logged(upstream: EvmUpstream) -> None:
        with pytest.raises(UpstreamDown, match="no upstream can be used"):
            await fetched(upstream, RUN)

    on(scene, poor, rich)
    on(alone, poor)
    on(logged, poor, required=RequiredTraces(calls=True, diffs=True))


def test_the_source_of_an_invalid_block_backs_off_and_comes_back() -> None:
    forger, honest = EvmReplay(), EvmReplay()

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        (block,) = await fetched(upstream, [20])
        assert block.source == forger.url
        upstream.back_off_source(block.source, "its receipts do not give its receiptsRoot")
        assert upstream.has_source()
        (second,) = await fetched(upstream, [20])
        assert second.source == honest.url
        assert upstream.pool.disabled() == {}
        assert upstream.pool.failing() == {forger.url: "its receipts do not give its receiptsRoot"}
        upstream.back_off_source(second.source, "nor do these")
        assert not upstream.has_source()
        assert (await fetched(upstream, [20]))[0].source in (forger.url, honest.url)

    on(scene, forger, honest)


def test_a_source_without_the_required_traces_is_none() -> None:
    poor, rich = EvmReplay(), EvmReplay()
    poor.off = {"debug_traceBlockByNumber"}

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        (block,) = await fetched(upstream, [20])
        assert block.source == rich.url
        upstream.back_off_source(block.source, "invalid")
        assert [source.name for source in upstream.pool.usable()] == [poor.url]
        assert not upstream.has_source()

    on(scene, poor, rich)


def test_traces_that_failed_during_a_probe_are_tested_again_when_they_are_needed() -> None:
    replay = EvmReplay()
    replay.evm_faults = [EvmFault("debug_", times=FOREVER, result=b"[]")]

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        assert not upstream.has_source()
        with pytest.raises(UpstreamDown, match="none has what this needs"):
            await fetched(upstream, RUN)
        replay.evm_faults = []
        assert [parts(block) for block in await fetched(upstream, RUN)] == whole()

    on(scene, replay, required=RequiredTraces(calls=True, diffs=True))


def test_two_with_the_same_name_are_renamed() -> None:
    replay = EvmReplay()

    async def run() -> None:
        async with replay:
            urls = [f"{replay.url}/?key=a", f"{replay.url}/?key=b"]
            upstream = EvmUpstream(urls, None, RecordingLog(), clock=FakeClock())
            await upstream.probe_all()
            (block,) = await fetched(upstream, [20])
            assert block.source == replay.url
            upstream.back_off_source(block.source, "wrong")
            (block,) = await fetched(upstream, [20])
            assert block.source == f"{replay.url}#2"
            await upstream.close()

    asyncio.run(run())


def test_failures_are_logged() -> None:
    replay = EvmReplay("cchain-1")
    replay.off |= {"prestateTracer", "muxTracer"}

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        logged = upstream._log
        assert isinstance(logged, RecordingLog)
        ((message, fields),) = logged.lines
        assert message == "upstream lacks features"
        assert fields["upstream"] == replay.url
        (missing,) = fields["missing"]
        assert missing.startswith("no state diffs: native balances are read from the upstream on request")
        replay.evm_faults = [EvmFault(status=500, times=4)]
        await upstream.head()
        assert logged.lines[1][0] == "upstream failed, backing off"

    on(scene, replay)


def test_a_chain_without_transactions_is_no_fault_of_its_upstream() -> None:
    """A fresh anvil has none, and is probed again with every block until there is one."""
    replay = EvmReplay()
    replay.shown = 0

    async def scene(upstream: EvmUpstream) -> None:
        logged = upstream._log
        assert isinstance(logged, RecordingLog)
        for _ in range(3):
            await upstream.probe_all()
        ((message, _),) = logged.lines
        assert message.startswith("no transactions found yet: blocks are indexed")
        replay.shown = None
        replay.off |= {"prestateTracer", "muxTracer"}
        for _ in range(3):
            await upstream.probe_all()
        assert [message for message, _ in logged.lines[1:]] == ["upstream lacks features"]

    on(scene, replay)


UNTESTED = "no block with transactions was found: traces are tested when there is one"


@pytest.mark.parametrize("off", [set(), {"prestateTracer", "muxTracer", "callTracer", "trace_block"}])
def test_an_upstream_is_probed_again_with_the_first_transactions(off: set[str]) -> None:
    """Also one that has no tracers, whose blocks with transactions are fetched without."""
    replay = EvmReplay()
    replay.shown = 5
    replay.off |= off
    required = RequiredTraces(calls=not off, diffs=not off)

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        assert upstream.degraded().count(UNTESTED) == 1
        replay.shown = None
        assert len(await fetched(upstream, RUN)) == len(RUN)
        assert upstream.degraded().count(UNTESTED) == 0

    on(scene, replay, required=required)


@pytest.mark.parametrize("is_archive", [True, False])
def test_an_upstream_is_probed_with_a_stored_block(is_archive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions may be so rare that a search from the head on finds none. Where state is pruned, that of the stored
    block may be too: it proves nothing about the tracers."""
    monkeypatch.setattr(probe, "_candidates", lambda _head, known: iter([[] if known is None else [known]]))
    replay = EvmReplay()
    if not is_archive:
        replay.evm_faults = [EvmFault("eth_getBalance", error=(-32000, "missing trie node"), times=FOREVER)]

    async def scene(upstream: EvmUpstream) -> None:
        await upstream.probe_all()
        logged = upstream._log
        assert isinstance(logged, RecordingLog)
        (found,) = upstream.capabilities().values()
        assert found.sample == (20 if is_archive else None)
        assert any("no transactions found yet" in message for message, _ in logged.lines) is not is_archive

    on(scene, replay, busy_block=lambda: 20)


def test_an_upstream_in_another_thread() -> None:
    with in_thread(EvmReplay()) as replay:

        async def run() -> None:
            upstream = EvmUpstream([replay.url], 1337, RecordingLog())
            assert [parts(block) for block in await fetched(upstream, RUN)] == whole()
            await upstream.close()

        asyncio.run(run())


def test_a_wrong_genesis_heals() -> None:
    replay = EvmReplay()
    genesis = bytes.fromhex(replay.blocks[0].hash[2:])
    other = recorded_blocks("berlin-1")[0].without_txs

    async def scene(upstream: EvmUpstream) -> None:
        with pytest.raises(WrongChain, match="another chain with the same ID"):
            await upstream.probe_all()
        await upstream.clock.sleep(60.0)
        assert await upstream.head() == replay.head

    replay.evm_faults = [EvmFault("eth_getBlockByNumber", number=0, result=other)]
    on(scene, replay, genesis=lambda: genesis)
