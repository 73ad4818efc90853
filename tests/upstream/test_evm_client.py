"""Batches: every answer is matched to its call, and a batch that is too large is sent in smaller ones."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.upstream.evm_replay import EvmFault, EvmReplay
from tests.upstream.evm_scene import LIMITS, client_of, slept
from tests.upstream.replay import FOREVER

from icefall.upstream.client import (
    AnswerTooLong,
    ByteBudget,
    ByteBudgetExceeded,
    InvalidAnswer,
    Limits,
    UpstreamDown,
    UpstreamError,
)
from icefall.upstream.evm.client import Call, EvmClient, Outcome
from icefall.upstream.evm.errors import IncompleteAnswer, NotThere, RpcRefusal, TooHeavy, Unsupported

NUMBERS = range(30)
Scene = Callable[[EvmClient, EvmReplay], Awaitable[None]]


def calls() -> list[Call]:
    return [Call("eth_getBlockByNumber", (hex(number), False)) for number in NUMBERS]


def numbers(outcomes: list[Outcome]) -> list[int]:
    return [
        -1 if isinstance(outcome, RpcRefusal) else int(msgspec.json.decode(outcome)["number"], 16)
        for outcome in outcomes
    ]


def on(
    scene: Scene, *evm_faults: EvmFault, limits: Limits = LIMITS, replay: EvmReplay | None = None, **options: Any
) -> None:
    async def run() -> None:
        given = replay or EvmReplay("berlin-1")
        given.evm_faults = list(evm_faults)
        async with client_of(given, limits, **options) as client:
            await scene(client, given)

    asyncio.run(run())


def test_many_calls_in_one_request() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        assert replay.batches == [30]
        assert await client.call_all([]) == []
        assert bytes(await client.call("eth_blockNumber")) == b'"0x83"'
        assert replay.batches == [30, 1]
        with pytest.raises(Unsupported):
            await client.call("eth_noSuchMethod")
        (far,) = await client.call_all([Call("eth_getBlockByNumber", ("0xffff", False))])
        assert isinstance(far, NotThere)

    on(scene)


SURVIVED: dict[str, tuple[EvmFault, list[float]]] = {
    "429": (EvmFault(status=429), [0.25]),
    "429 that asks for two seconds": (EvmFault(status=429, headers={"Retry-After": "2"}), [2.0]),
    "500": (EvmFault(status=500), [0.25]),
    "502 that asks for three": (EvmFault(status=502, headers={"Retry-After": "3"}), [3.0]),
    "cut in two": (EvmFault(keep=0.5), [0.25]),
    "cut at the last byte": (EvmFault(keep=0.99999), [0.25]),
    "empty": (EvmFault(body=b""), [0.25]),
    "HTML": (EvmFault(body=b"<html>"), [0.25]),
    "a number": (EvmFault(body=b"7"), [0.25]),
    "hangs up": (EvmFault(hang_up=True), [0.25]),
    "an empty list": (EvmFault(body=b"[]"), [0.25]),
    "an object that says nothing": (EvmFault(body=b"{}"), [0.25]),
    "rate limit of all": (EvmFault(body=b'{"error":{"code":-32005,"message":"rate limited"}}'), [0.25]),
    "one answer left out": (EvmFault(number=7, left_out=True), [0.25]),
    "one answer twice": (EvmFault(number=7, twice=True), [0.25]),
    "one rate limited": (EvmFault(number=7, error=(429, "too many requests")), [0.25]),
    "one internal error": (EvmFault(number=7, error=(-32603, "internal error")), [0.25]),
    "one too large": (EvmFault(number=7, error=(-32003, "response too large")), []),
    "one timed out": (EvmFault(number=7, error=(-32002, "request timed out")), []),
    "one that says nothing": (EvmFault(body=b'[{"id":1}]'), [0.25]),
}


@pytest.mark.parametrize("name", SURVIVED)
def test_a_passing_fault_is_retried(name: str) -> None:
    evm_fault, pauses = SURVIVED[name]

    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        assert slept(client) == pauses
        assert replay.evm_faults == []

    on(scene, evm_fault)


def test_received_answers_are_not_requested_again() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        assert replay.batches == [30, 2]
        assert client.batches["state"].size == 15

    on(scene, EvmFault(number=7, left_out=True), EvmFault(number=9, left_out=True))


REFUSALS = ["array", "object", "413", "400"]


@pytest.mark.parametrize("style", REFUSALS)
@pytest.mark.parametrize("most", [1, 3, 10])
def test_a_limit_on_batches_is_found_and_kept_to(style: str, most: int) -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        replay.batch_max, replay.batch_refusal = most, style
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        refused = sum(size > most for size in replay.batches)
        for _ in range(8):
            assert numbers(await client.call_all(calls())) == list(NUMBERS)
        later = sum(size > most for size in replay.batches) - refused
        assert refused <= 5
        assert client.batches["state"].size <= max(most, 1) or style in ("413", "400")
        assert later <= (4 if style in ("array", "object") else 40)
        assert slept(client) == []

    on(scene)


def test_an_upstream_without_batches() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        replay.off = {"batch"}
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        await client.call_all(calls())
        assert client.batches["state"].refused == 2
        replay.batches.clear()
        await client.call_all(calls())
        assert set(replay.batches) == {1}

    on(scene)


LASTING: dict[str, tuple[EvmFault, type[Exception], str]] = {
    "429": (EvmFault(status=429), UpstreamDown, "answered 429"),
    "500": (EvmFault(status=500), UpstreamDown, "answered 500"),
    "cut": (EvmFault(keep=0.5), InvalidAnswer, "is not JSON"),
    "401": (EvmFault(status=401, body=b"no key"), UpstreamError, "answered 401: no key"),
    "empty list": (EvmFault(body=b"[]"), IncompleteAnswer, "left out"),
    "left out": (EvmFault(number=7, left_out=True), InvalidAnswer, "not JSON"),
    "twice": (EvmFault(number=7, twice=True), InvalidAnswer, "not JSON|answered already"),
    "too heavy": (EvmFault(number=7, error=(-32000, "execution timeout")), TooHeavy, "execution timeout"),
    "another id": (EvmFault(body=b'[{"id":999999,"result":1}]'), InvalidAnswer, "999999, which was not requested"),
    "rate limit": (EvmFault(number=7, error=(-32005, "rate limit")), UpstreamDown, "rate limit"),
    "nested without end": (EvmFault(body=b'[{"id":1,"result":' + b"[" * 100_000), InvalidAnswer, "not JSON"),
}


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_fault_is_named(name: str) -> None:
    evm_fault, kind, text = LASTING[name]

    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        with pytest.raises(kind, match=text):
            await client.call_all(calls())
        assert client.concurrency.in_use == 0
        replay.evm_faults.clear()
        assert numbers(await client.call_all(calls())) == list(NUMBERS)

    on(scene, evm_fault._replace(times=FOREVER))


def test_null_where_a_value_belongs_is_incomplete() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        assert bytes(await client.call("eth_blockNumber")) == b'"0x83"'
        assert slept(client) == [0.25]
        replay.evm_faults = [EvmFault(result=b"null", times=FOREVER)]
        with pytest.raises(IncompleteAnswer, match="null"):
            await client.call("eth_blockNumber")

    on(scene, EvmFault(result=b"null"))


def test_too_slow_asks_for_less() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        assert replay.batches == [30, 15, 7, 7, 7, 7, 2]
        assert client.concurrency.limit < 8

    on(scene, EvmFault(hang=True, times=2), limits=Limits(total_s=2.0))


def test_an_answer_too_long_asks_for_less() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        assert max(replay.batches) == 30
        assert len(replay.batches) > 2
        replay.evm_faults = [long._replace(times=FOREVER)]
        with pytest.raises(AnswerTooLong, match="more than 20000 bytes"):
            await client.call_all([Call("eth_getBlockByNumber", (hex(12), True))])

    long = EvmFault("eth_getBlockByNumber", number=12, result=b'"' + bytes(50_000) + b'"')
    on(scene, long, limits=Limits(60, 60, 4, 20_000))


def test_the_byte_budget_is_shared_and_given_back() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        budget = ByteBudget(1 << 20)
        await client.call_all(calls(), budget=budget)
        used = (1 << 20) - budget.left
        assert used > 30_000
        small = ByteBudget(used - 1)
        with pytest.raises(ByteBudgetExceeded):
            await client.call_all(calls(), budget=small)
        assert small.left == used - 1
        assert client.batches["state"].size == 100
        replay.evm_faults = [EvmFault(keep=0.9)]
        enough = ByteBudget(used + 1000)
        await client.call_all(calls(), budget=enough)
        assert 900 <= enough.left <= 1000 + 200

    on(scene)


def test_gzip_if_requested() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        replay.evm_faults = [EvmFault(body=b"\x1f\x8b\x08damaged", headers={"Content-Encoding": "gzip"})]
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        replay.evm_faults = [EvmFault(keep=0.5)]
        assert numbers(await client.call_all(calls())) == list(NUMBERS)
        replay.gzip = False
        assert numbers(await client.call_all(calls())) == list(NUMBERS)

    on(scene, compressed=True)


def test_a_small_body_that_grows_is_cut() -> None:
    import gzip

    bomb = gzip.compress(b'[{"id":1,"result":"' + b"0" * 50_000_000 + b'"}]')

    async def scene(client: EvmClient, _: EvmReplay) -> None:
        with pytest.raises(AnswerTooLong):
            await client.call("eth_blockNumber")

    evm_fault = EvmFault(body=bomb, headers={"Content-Encoding": "gzip"}, times=FOREVER)
    on(scene, evm_fault, limits=Limits(answer_size_max=1 << 20), compressed=True)


def test_fewer_at_a_time_when_turned_away_and_more_again_later() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        replay.at_once_max = 2
        many = [Call("eth_getBlockByNumber", (hex(number % 100), False)) for number in range(400)]
        limits = []
        replay.on_call = lambda method, params: limits.append(client.concurrency.limit)
        assert -1 not in numbers(await client.call_all(many))
        assert min(limits) < 8
        assert slept(client)
        replay.at_once_max = FOREVER
        for _ in range(12):
            await client.call_all(many)
        assert client.concurrency.limit == 8
        assert client.concurrency.in_use == 0

    on(scene, limits=Limits(total_s=60, calls_at_once=8), calls_per_batch={"state": 5, "blocks": 5, "traces": 5})


def test_a_refusal_in_the_http_status() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        text = b'{"error":{"code":-32601,"message":"method not found"}}'
        replay.evm_faults = [EvmFault("debug_", status=404, body=text, times=FOREVER)]
        mixed = [*calls()[:3], Call("debug_traceBlockByNumber", ("0x1", {})), *calls()[4:6]]
        outcomes = await client.call_all(mixed)
        assert isinstance(outcomes[3], Unsupported)
        assert numbers(outcomes) == [0, 1, 2, -1, 4, 5]

    on(scene)


def test_a_call_given_up_leaves_nothing_behind() -> None:
    async def scene(client: EvmClient, replay: EvmReplay) -> None:
        many = [Call("eth_getBlockByNumber", (hex(number % 100), False)) for number in range(400)]
        task = asyncio.create_task(client.call_all(many))
        while replay.evm_faults:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert client.concurrency.in_use == 0
        assert client.client.meter.in_flight == 0
        assert numbers(await client.call_all(calls())) == list(NUMBERS)

    on(scene, EvmFault(hang=True, times=4), calls_per_batch={"state": 10, "blocks": 5, "traces": 5})
