"""What a client can hold of a listener: bytes are counted whatever they belong to, and none is counted twice."""

import asyncio
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.http_server.serving import LIMIT_S, Running, get, read_answer, run, running

BIG = 4 << 20
LONG_HEAD = b"GET /a HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 60_000


def test_heads_that_are_arriving_have_a_budget() -> None:
    async def scenario() -> None:
        async with running(held_max=100_000) as server:
            (_, first), (second, writer) = await server.connect(), await server.connect()
            first.write(LONG_HEAD)
            await server.until(lambda: server.listener.held >= len(LONG_HEAD))
            writer.write(LONG_HEAD)
            assert (await read_answer(second))[0] == 503
            assert (await server.exchange(get("/a"))).endswith(b"GET /a 0")
            first.write(b"\r\n\r\n")
            await server.until(lambda: server.listener.held == 0)
            assert server.app.begun == ["/a"], "parsed, it takes twice as much"

    run(scenario())


def test_long_heads_count_until_their_requests_are_answered() -> None:
    async def scenario() -> None:
        async with running(held_max=200_000) as server:
            long = LONG_HEAD.replace(b"/a", b"/wait") + b"\r\n\r\n"
            reader, writer = await server.connect()
            writer.write(long)
            await server.until(lambda: server.app.begun == ["/wait"])
            assert 2 * len(long) < server.listener.held < 3 * len(long), "as it came, and as fields"
            assert (await server.exchange(long)).startswith(b"HTTP/1.1 503 ")
            server.app.released.set()
            assert (await read_answer(reader))[0] == 200
            assert server.listener.held == 0

    run(scenario())


def test_one_that_does_not_read_gains_no_time_by_sending() -> None:
    async def scenario() -> None:
        async with running(write_s=1) as server:
            reader, writer = await server.connect()
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(get(f"/big/{32 << 20}"))
            await server.until(lambda: server.listener.held > 1 << 20)
            writer.write(get("/a"))
            await server.until(lambda: server.listener.held == 0)

    run(scenario())


@pytest.mark.parametrize(
    "unreadable",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * (2 << 20),
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_nothing_is_executed_after_what_cannot_be_read(unreadable: bytes) -> None:
    """The rest of a head that was too long must not pass as a request."""

    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(get("/wait"))
            await server.until(lambda: server.app.begun == ["/wait"])
            writer.write(unreadable)
            await writer.drain()
            for _ in range(20):
                writer.write(get("/hidden"))
                await asyncio.sleep(0.001)
            server.app.released.set()
            assert b"GET /wait 0" in await _all(reader)
            assert "/hidden" not in server.app.begun

    run(scenario())


async def _all(reader: asyncio.StreamReader) -> bytes:
    """Also what came before a reset."""
    came = b""
    try:
        while piece := await asyncio.wait_for(reader.read(1 << 16), LIMIT_S):
            came += piece
    except ConnectionError:
        pass
    return came


def test_an_http10_stream_ends_with_its_connection() -> None:
    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(b"GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get("/a"))
            server.app.released.set()
            answer = await _all(reader)
            assert b"connection: close" in answer
            assert answer.endswith(b"\r\n\r\nfirstsecond")

    run(scenario())


def test_head_of_a_stream_has_no_body() -> None:
    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(get("/stream").replace(b"GET", b"HEAD") + get("/a", "Connection: close"))
            heads = (await _all(reader)).split(b"\r\n\r\n")
            assert len(heads) == 3
            assert heads[1].startswith(b"HTTP/1.1 200")
            assert heads[2] == b"GET /a 0"

    run(scenario())


def test_connections_accepted_during_a_stop_do_not_delay_it() -> None:
    async def scenario() -> None:
        async with running() as server:
            connecting = [asyncio.ensure_future(server.connect()) for _ in range(30)]
            await asyncio.sleep(0)
            server.stop.set()
            await asyncio.wait(connecting)
            await server.until(lambda: not server.listener._connections)

    run(scenario())


def test_a_burst_of_connections_is_accepted_in_a_few_turns() -> None:
    async def scenario() -> None:
        async with running() as server:
            turns = [0]

            async def count_turns() -> None:
                while True:
                    turns[0] += 1
                    await asyncio.sleep(0)

            silent = [socket.create_connection(server.address) for _ in range(300)]  # the kernel takes them for now
            counting = asyncio.ensure_future(count_turns())
            assert (await server.exchange(get("/urgent"))).startswith(b"HTTP/1.1 200")
            counting.cancel()
            for one in silent:
                one.close()
            assert turns[0] < 150

    run(scenario())


POST = b"POST /echo HTTP/1.1\r\nHost: a\r\n"
SENT = {
    "small": get("/a"),
    "big": get(f"/big/{BIG}"),
    "stream": get("/stream"),
    "half a long head": LONG_HEAD,
    "long head": LONG_HEAD + b"\r\n\r\n",
    "body": POST + b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000,
    "part of a body": POST + b"Content-Length: 300000\r\n\r\n" + b"x" * 100_000,
    "part of chunks": POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "bad chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n20000\r\n" + b"x" * 0x20000 + b"!!",
    "nonsense": b"NONSENSE\r\n\r\n",
}
END = st.sampled_from(["eof", "abort", "close", "read"])


@settings(max_examples=15)
@given(st.lists(st.tuples(st.lists(st.sampled_from(sorted(SENT)), max_size=4), END), min_size=1, max_size=6))
def test_nothing_is_held_once_clients_are_gone(clients: list[tuple[list[str], str]]) -> None:
    async def scenario() -> None:
        async with running(held_max=6 << 20, write_s=0.1, head_s=0.1, idle_s=0.1) as server:
            server.app.released.set()
            await asyncio.gather(*(_client(server, sent, end) for sent, end in clients))
            await server.until(lambda: not server.listener._connections and not server.listener._running)
            assert server.listener.held == 0
            assert (await server.exchange(get("/a"))).endswith(b"GET /a 0")
            assert server.reported == []

    run(scenario())


async def _client(server: Running, sent: list[str], end: str) -> None:
    reader, writer = await server.connect()
    if end != "read":
        reader._transport.pause_reading()  # type: ignore[attr-defined]
    for one in sent:
        writer.write(SENT[one])
        assert server.listener.held >= 0
        await asyncio.sleep(0)
    if end in ("eof", "read") and not writer.is_closing():
        writer.write_eof()
    if end == "abort":
        writer.transport.abort()
    elif end == "close":
        writer.close()
    elif end == "read":
        await _all(reader)
