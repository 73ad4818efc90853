"""The way out to receivers: what counts as taken, and what is never followed, read or connected to."""

import asyncio
from contextlib import suppress

import msgspec
import pytest
from aiohttp import ClientSession
from tests.webhooks.scene import listening, sending

from icefall.compose.webhooks import ReceiverAccess
from icefall.evm.enriching.guarded_fetcher import _PinnedResolver
from icefall.webhooks.retrying import Outcome


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))[15:])
    body = await reader.readexactly(size)
    writer.write(answer)
    await writer.drain()
    writer.close()
    return head + body


ANSWERS = {
    "taken": (b"HTTP/1.1 204 No Content\r\n\r\n", Outcome(204)),
    "redirect": (
        b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n",
        Outcome(302, "it answered 302"),
    ),
    "busy": (
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
        Outcome(429, "it answered 429", 7.0),
    ),
    "closed": (
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 7200\r\ncontent-length: 0\r\n\r\n",
        Outcome(503, "it answered 503", 7200.0),
    ),
    "closed until a date": (
        b"HTTP/1.1 503 Service Unavailable\r\ndate: Thu, 19 Nov 2026 20:00:00 GMT\r\n"
        b"retry-after: Thu, 19 Nov 2026 20:01:40 GMT\r\ncontent-length: 0\r\n\r\n",
        Outcome(503, "it answered 503", 100.0),
    ),
    "closed until a date that is over, without saying what time it is": (
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: Thu, 19 Nov 2015 20:01:40 GMT\r\ncontent-length: 0\r\n\r\n",
        Outcome(503, "it answered 503"),
    ),
    "closed until a date without sense": (
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: Thu, 99 Nov 2026\r\ncontent-length: 0\r\n\r\n",
        Outcome(503, "it answered 503"),
    ),
    "closed until a date in a zone that no clock has": (
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: Thu, 19 Nov 2026 20:01:40 +99999999999999999999\r\n"
        b"content-length: 0\r\n\r\n",
        Outcome(503, "it answered 503"),
    ),
    "gigabytes": (b"HTTP/1.1 200 OK\r\ncontent-length: 4000000000\r\n\r\n" + b"x" * 65536, Outcome(200)),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_answers_of_receivers(kind: str) -> None:
    answer, outcome = ANSWERS[kind]

    async def run() -> None:
        got: list[bytes] = []

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                got.append(await _answered(reader, writer, answer))
            except ConnectionError:
                writer.close()

        async with listening(handle) as url, sending() as access:
            assert await access.send(url, b'{"a":1}', {"webhook-id": "x"}) == outcome
        assert len(got) <= 1
        if got:
            assert got[0].startswith(b"POST /hook HTTP/1.1\r\n")
            assert b"webhook-id: x" in got[0]
            assert got[0].endswith(b'\r\n\r\n{"a":1}')

    asyncio.run(run())


@pytest.mark.parametrize("answers_late", [False, True])
def test_a_receiver_that_hangs_or_answers_late_has_not_taken_it(answers_late: bool) -> None:
    async def run() -> None:
        given_up, ended = asyncio.Event(), asyncio.Event()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.IncompleteReadError):  # it gave up before it had sent anything
                await reader.readuntil(b"\r\n\r\n")
            await given_up.wait()
            if answers_late:
                with suppress(ConnectionError):
                    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
                    await writer.drain()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            ended.set()

        async with listening(handle) as url, sending() as access:
            access._fetcher.limits = msgspec.structs.replace(access._fetcher.limits, total_s=1.0)
            outcome = await access.send(url, b"{}", {})
            given_up.set()
            await ended.wait()
        assert not outcome.is_taken
        assert outcome.code == 0

    asyncio.run(run())


def test_a_receiver_that_closes_in_the_middle_has_not_taken_it() -> None:
    async def run() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 20")
            writer.close()

        async with listening(handle) as url, sending() as access:
            outcome = await access.send(url, b"{}", {})
        assert not outcome.is_taken
        assert outcome.code == 0

    asyncio.run(run())


@pytest.mark.parametrize("forbidden", ["127.0.0.1", "10.0.0.1", "::1"])
def test_a_name_is_looked_up_for_every_attempt(forbidden: str) -> None:
    """A name that leads to a public address first and to a forbidden one later. The connection of the first attempt is
    still open then, and is not used."""

    async def run() -> None:
        addresses = iter(["93.184.216.34", "93.184.216.34", forbidden, "93.184.216.34"])
        sent_to: list[str] = []

        async def lookup(_host: str) -> list[str]:
            return [next(addresses)]

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while not reader.at_eof():
                with suppress(asyncio.IncompleteReadError):
                    await reader.readuntil(b"\r\n\r\n")
                    await reader.readexactly(2)
                    sent_to.append("93.184.216.34")
                    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            writer.close()

        async with listening(handle) as url:
            access, port = ReceiverAccess(("93.184.216.34",)), url.split(":")[2].split("/")[0]
            fetcher = access._fetcher
            fetcher._lookup = lookup

            def to_this_machine(_addresses: object, idle_s: float) -> ClientSession:
                return fetcher._session(_PinnedResolver(["127.0.0.1"]), idle_s)

            fetcher._kept._open_session = to_this_machine  # the public address is played by this machine
            named = f"http://rebinds.example:{port}/hook"
            outcomes = [await access.send(named, b"{}", {}) for _ in range(4)]
            await access.close()
        assert [one.is_taken for one in outcomes] == [True, True, False, True]
        assert outcomes[2].error.startswith("the URL leads to")
        assert len(sent_to) == 3

    asyncio.run(run())
