"""Calls to upstreams during a request are bounded; an error names what is missing, never the upstream."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.waiting import LIMIT_S

from icefall.errors import BadGateway, IcefallError, Unavailable
from icefall.evm.reading import state as asking
from icefall.evm.reading.state import RequestState

UNUSED_ADDRESS = bytes(20)
MANY = 10_000


@asynccontextmanager
async def state_of(*replays: EvmReplay, timeout_s: float = LIMIT_S) -> AsyncIterator[RequestState]:
    for replay in replays:
        await replay.start()
    state = RequestState([f"{replay.url}/secret-key" for replay in replays], 1337, timeout_s=timeout_s)
    try:
        yield state
    finally:
        await state.close()
        for replay in replays:
            await replay.stop()


def geth() -> EvmReplay:
    replay = EvmReplay("geth-1")
    replay.chain_id = 1337
    return replay


async def refused(state: RequestState, at: int | bytes = 5) -> IcefallError:
    with pytest.raises(IcefallError) as caught:
        await state.balances([UNUSED_ADDRESS], at)
    shown = str(caught.value)
    assert "127.0.0.1" not in shown
    assert "secret" not in shown
    assert "http" not in shown
    return caught.value


def test_nothing_is_connected_before_the_first_question() -> None:
    async def work() -> None:
        replay = geth()
        async with state_of(replay) as state:
            assert replay.calls == []
            await state.balances([UNUSED_ADDRESS], 5)
            await state.balances([UNUSED_ADDRESS], 6)
            assert [method for method, _ in replay.calls] == ["eth_chainId", "eth_getBalance", "eth_getBalance"]

    asyncio.run(work())


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (EvmFault("eth_getBalance", MANY, body=b"<html>"), BadGateway, "is invalid"),
        (EvmFault("eth_getBalance", MANY, result=b'"a lot"'), BadGateway, "is invalid"),
        (EvmFault("eth_getBalance", MANY, result=b"null"), BadGateway, "is invalid"),
        (EvmFault("eth_getBalance", MANY, left_out=True), BadGateway, "is invalid"),
        (EvmFault("eth_getBalance", MANY, error=(-32000, "missing trie node 12ab")), Unavailable, "archive node"),
        (EvmFault("eth_getBalance", MANY, error=(-32000, "header not found")), Unavailable, "does not have block 5"),
        (EvmFault("eth_getBalance", MANY, error=(-32601, "no")), Unavailable, "does not offer the call"),
        (EvmFault("eth_getBalance", MANY, status=502), Unavailable, "none answers"),
        (EvmFault("eth_getBalance", MANY, hang_up=True), Unavailable, "none answers"),
    ],
)
def test_failures(fault: EvmFault, kind: type[IcefallError], message: str) -> None:
    async def work() -> None:
        replay = geth()
        replay.evm_faults.append(fault)
        async with state_of(replay) as state:
            error = await refused(state)
            assert type(error) is kind
            assert message in str(error)
            assert len(replay.calls) <= 10, "few retries"

    asyncio.run(work())


def test_a_block_that_is_no_longer_there() -> None:
    async def work() -> None:
        async with state_of(geth()) as state:
            error = await refused(state, b"\xab" * 32)
            assert isinstance(error, Unavailable)
            assert "reorganised" in str(error)

    asyncio.run(work())


def test_no_upstream_answers_and_then_one_does() -> None:
    async def work() -> None:
        replay = geth()
        async with state_of(replay) as state:
            port = int(replay.url.rpartition(":")[2])
            await replay.stop()
            assert "none answers" in str(await refused(state))
            await replay.start(port)
            assert await state.balances([UNUSED_ADDRESS], 5) is not None

    asyncio.run(work())


def test_once_is_no_failure() -> None:
    async def work() -> None:
        replay = geth()
        replay.evm_faults.append(EvmFault("eth_getBalance", 1, body=b"<html>"))
        async with state_of(replay) as state:
            assert len(await state.balances([UNUSED_ADDRESS], 5)) == 1

    asyncio.run(work())


def test_another_upstream_answers() -> None:
    async def work() -> None:
        other_chain, pruned, sound = geth(), geth(), geth()
        other_chain.chain_id = 7
        pruned.evm_faults.append(EvmFault("eth_getBalance", MANY, error=(-32000, "missing trie node 12ab")))
        async with state_of(other_chain, pruned, sound) as state:
            assert len(await state.balances([UNUSED_ADDRESS], 5)) == 1
            assert other_chain.asked("eth_getBalance") == 0
            assert pruned.asked("eth_getBalance") == 1
            assert sound.asked("eth_getBalance") == 1

    asyncio.run(work())


def test_silence_ends_in_time_and_is_not_waited_for_again() -> None:
    async def work() -> None:
        silent, sound = geth(), geth()
        silent.evm_faults.append(EvmFault("", MANY, hang=True))
        async with state_of(silent, timeout_s=0.5) as state:
            assert isinstance(await refused(state), Unavailable)
            asked = len(silent.batches)
            assert isinstance(await refused(state), Unavailable)
            assert len(silent.batches) == asked
        silent.evm_faults.append(EvmFault("", MANY, hang=True))
        async with state_of(silent, sound, timeout_s=4.0) as state:
            assert len(await state.balances([UNUSED_ADDRESS], 5)) == 1

    asyncio.run(work())


def test_a_crowd_is_let_in_slowly_and_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        replay = geth()
        async with state_of(replay) as state:
            await state.balances([UNUSED_ADDRESS], 5)
            monkeypatch.setattr(asking, "WAITING_MAX", 40)
            shown: list[Any] = await asyncio.gather(
                *(state.balances([UNUSED_ADDRESS], 5) for _ in range(60)), return_exceptions=True
            )
            turned_away = [one for one in shown if isinstance(one, Unavailable)]
            assert len(turned_away) == 20
            assert all("too many" in str(one) for one in turned_away)
            assert sum(isinstance(one, list) for one in shown) == 40
            assert replay.most_at_once <= asking.AT_ONCE

    asyncio.run(work())
