"""One upstream: what is retried and when, what is not, and the limits on hostile answers."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.upstream.fake_clock import FakeClock
from tests.upstream.replay import FOREVER, Fault, Replay
from tests.waiting import LIMIT_S

from icefall.upstream.client import (
    Client,
    InvalidAnswer,
    Limits,
    Retry,
    UpstreamDown,
    UpstreamError,
    UpstreamFailure,
)


class NetworkId(msgspec.Struct, rename={"network_id": "networkID"}):
    network_id: str


@asynccontextmanager
async def asking(
    *faults: Fault, limits: Limits | None = None, chance: float = 1.0
) -> AsyncIterator[tuple[Client, Replay, FakeClock]]:
    clock = FakeClock()
    async with Replay({"X": [], "P": [], "C": []}) as replay:
        replay.faults = list(faults)
        client = Client(replay.url, clock=clock, chance=lambda: chance, limits=limits or Limits(total_s=5))
        try:
            yield client, replay, clock
        finally:
            await client.close()


async def ask(client: Client, **options: Any) -> str:
    return (await client.call("/ext/info", "info.getNetworkID", {}, NetworkId, **options)).network_id


PASSING: dict[str, tuple[Fault, float]] = {
    "429": (Fault(status=429), 0.25),
    "429 that asks for two seconds": (Fault(status=429, headers={"Retry-After": "2"}), 2.0),
    "429 that asks for an hour": (Fault(status=429, headers={"Retry-After": "3600"}), 30.0),
    "429 with a date": (
        Fault(
            status=429,
            headers={"Retry-After": "Sun, 15 Nov 2026 14:25:10 GMT", "Date": "Sun, 15 Nov 2026 14:25:07 GMT"},
        ),
        3.0,
    ),
    "429 with nonsense": (Fault(status=429, headers={"Retry-After": "soon"}), 0.25),
    "500": (Fault(status=500, body=b"boom"), 0.25),
    "503 still bootstrapping": (
        Fault(status=503, body=b"API call rejected because chain is not done bootstrapping\n"),
        0.25,
    ),
    "cut in two": (Fault(keep=0.5), 0.25),
    "empty": (Fault(body=b""), 0.25),
    "a page of HTML": (Fault(body=b"<html>502</html>"), 0.25),
    "hangs up half-way": (Fault(hang_up=True), 0.25),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_passing_fault_is_survived(name: str) -> None:
    fault, pause_s = PASSING[name]

    async def scene() -> None:
        async with asking(fault) as (client, _, clock):
            assert await ask(client) == "12345"
            assert clock.slept == [pause_s]
            assert (client.meter.calls, client.meter.failures, client.meter.reachable) == (2, 1, True)
            assert client.meter.recent() == (2, 1)

    asyncio.run(scene())


LASTING: dict[str, tuple[Fault, type[UpstreamFailure], str, int]] = {
    "429": (Fault(status=429), UpstreamDown, "answered 429", 4),
    "500": (Fault(status=500, body=b"boom\x00\n"), UpstreamDown, r"answered 500: boom\?", 4),
    "cut in two": (Fault(keep=0.5), InvalidAnswer, "is not JSON", 4),
    "hangs up": (Fault(hang_up=True), UpstreamDown, "disconnected", 4),
    "404": (Fault(status=404, body=b"404 page not found\n"), UpstreamError, "answered 404: 404 page not found", 1),
    "403": (Fault(status=403, body=b"invalid host specified\n"), UpstreamError, "invalid host specified", 1),
    "moved": (Fault(status=301, headers={"Location": "https://b/"}), UpstreamError, "points to https://b/", 1),
    "a number": (Fault(body=b"7"), InvalidAnswer, "something else", 1),
    "another id": (Fault(body=b'{"id":99,"result":{}}'), InvalidAnswer, "the answer to 99", 1),
    "no result": (Fault(body=b'{"id":1}'), InvalidAnswer, "neither a result nor an error", 1),
    "another shape": (Fault(body=b'{"id":1,"result":{"networkID":5}}'), InvalidAnswer, "Expected `str`", 1),
    "not UTF-8": (Fault(body=b'{"id":1,"result":{"networkID":"\xff"}}'), InvalidAnswer, "something else", 1),
    "an error": (Fault(body=b'{"id":1,"error":{"code":-32000,"message":"no"}}'), UpstreamError, "^no$", 1),
    "nested": (Fault(body=b'{"id":1,"result":' + b"[" * 100_000), InvalidAnswer, "recursion", 4),
}


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_fault_is_named(name: str) -> None:
    fault, kind, text, calls = LASTING[name]

    async def scene() -> None:
        async with asking(fault._replace(times=FOREVER)) as (client, replay, clock):
            with pytest.raises(kind, match=text):
                await ask(client)
            assert len(replay.calls) == calls
            assert clock.slept == [0.25, 0.5, 1.0][: calls - 1]

    asyncio.run(scene())


def test_pauses_double_up_to_a_limit_and_half_is_chance() -> None:
    retry = Retry(first_s=1, longest_s=5)
    assert [retry.pause_s(n, 0, 1.0) for n in (1, 2, 3, 4, 500)] == [1, 2, 4, 5, 5]
    assert [retry.pause_s(n, 0, 0.0) for n in (1, 2, 3)] == [0.5, 1, 2]


def test_too_slow() -> None:
    async def scene() -> None:
        hang = Fault(hang_s=60, times=FOREVER)
        async with asking(hang, limits=Limits(total_s=0.3)) as (client, replay, _):
            with pytest.raises(UpstreamDown, match=r"no answer within 0\.3 s"):
                await ask(client)
            assert len(replay.calls) == 4
            with pytest.raises(UpstreamDown) as caught:
                await ask(client, retry_timeouts=False)
            assert caught.value.timed_out
            assert len(replay.calls) == 5

    asyncio.run(scene())


def test_connection_refused() -> None:
    async def scene() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            client = Client(f"http://127.0.0.1:{taken.getsockname()[1]}", clock=FakeClock())
            with pytest.raises(UpstreamDown, match="cannot be reached") as caught:
                await ask(client, repeatable=False)
            assert not caught.value.sent
            assert client.meter.failures == 4
            assert not client.meter.reachable
            await client.close()

    asyncio.run(scene())


def test_what_must_not_happen_twice_is_not_repeated() -> None:
    async def scene() -> None:
        for fault, calls in ((Fault(status=500), 1), (Fault(keep=0.5), 1), (Fault(hang_up=True), 1)):
            async with asking(fault) as (client, replay, _):
                with pytest.raises((UpstreamDown, InvalidAnswer)):
                    await ask(client, repeatable=False)
                assert len(replay.calls) == calls
        for fault in (Fault(status=429), Fault(status=503)):
            async with asking(fault) as (client, replay, _):
                assert await ask(client, repeatable=False) == "12345"
                assert len(replay.calls) == 2

    asyncio.run(scene())


def test_an_answer_without_end_is_cut() -> None:
    async def scene() -> None:
        endless = Fault(body=json.dumps({"id": 1, "result": "x" * 300_000}).encode())
        async with asking(endless, limits=Limits(answer_size_max=100_000)) as (client, replay, _):
            with pytest.raises(InvalidAnswer, match="more than 100000 bytes"):
                await ask(client)
            assert len(replay.calls) == 1
            assert await ask(client) == "12345"

    asyncio.run(scene())


def test_a_compressed_answer_is_not_unpacked() -> None:
    async def scene() -> None:
        bomb = Fault(body=b"\x1f\x8b" + bytes(50), headers={"Content-Encoding": "gzip"}, times=FOREVER)
        async with asking(bomb) as (client, _, _), asyncio.timeout(LIMIT_S):
            with pytest.raises(InvalidAnswer):
                await ask(client)

    asyncio.run(scene())


def test_no_more_calls_at_once_than_allowed() -> None:
    async def scene() -> None:
        hang = Fault(hang_s=0.2, times=FOREVER)
        async with asking(hang, limits=Limits(calls_at_once=2)) as (client, _, clock):
            calls = [asyncio.create_task(ask(client)) for _ in range(3)]
            for _ in range(10):
                await asyncio.sleep(0)
            assert client.meter.in_flight == 2
            clock.time += 7
            assert client.meter.longest_s == 7
            await asyncio.gather(*calls)
            assert (client.meter.in_flight, client.meter.longest_s) == (0, 0.0)
            assert client.meter.last_received_s == clock.now()

    asyncio.run(scene())


def test_a_call_given_up_counts_for_nothing() -> None:
    async def scene() -> None:
        async with asking(Fault(hang_s=60)) as (client, _, _):
            call = asyncio.create_task(ask(client))
            await asyncio.sleep(0.01)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert (client.meter.in_flight, client.meter.failures, client.meter.recent()) == (0, 0, (0, 0))

    asyncio.run(scene())


def test_old_failures_are_forgotten() -> None:
    async def scene() -> None:
        async with asking(Fault(status=500)) as (client, _, clock):
            await ask(client)
            assert client.meter.recent() == (2, 1)
            clock.time += 100
            assert client.meter.recent() == (0, 0)
            assert client.meter.failures == 1

    asyncio.run(scene())


def test_an_address_may_have_a_path_and_a_query() -> None:
    async def scene() -> None:
        async with asking() as (_, replay, clock):
            client = Client(replay.url + "/some/where/?token=abc%2F1", clock=clock)
            assert await ask(client) == "12345"
            assert replay.paths == ["/some/where/ext/info?token=abc/1"]
            await client.close()

    asyncio.run(scene())


def test_a_long_error_is_cut() -> None:
    async def scene() -> None:
        long = json.dumps({"id": 1, "error": {"code": 1, "message": "x" * 1_000_000}}).encode()
        async with asking(Fault(body=long)) as (client, _, _):
            with pytest.raises(UpstreamError) as caught:
                await ask(client)
            assert len(str(caught.value)) == 10_000

    asyncio.run(scene())


def test_a_name_keeps_what_may_be_secret() -> None:
    client = Client("https://user:pass@node.example:9650/key/secret?token=abc")
    assert client.name == "https://node.example:9650"
    for bad in ("ftp://a", "node:9650", "", "http://"):
        with pytest.raises(ValueError, match="looks like http://host:9650"):
            Client(bad)
