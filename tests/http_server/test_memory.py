"""What is kept for clients is counted at its real size, and refused or dropped when there is no room for it."""

import asyncio
import socket
import sys
import tracemalloc
from contextlib import suppress

import pytest
from tests.http_server.serving import LIMIT_S, Running, get, read_answer, run, running

from icefall.server import head as head_module
from icefall.server.connection import READ_AHEAD_MAX, SMALL_SIZE
from icefall.server.head import HEADERS_MAX, HeadReader, RequestHead
from icefall.server.response import SMALL_ANSWER_SIZE

WAITING = get("/wait")
MANY_HEADERS = get("/many", *(f"h{number}: v{number}" for number in range(HEADERS_MAX - 1)))
BEHIND = MANY_HEADERS * (READ_AHEAD_MAX // len(MANY_HEADERS))


def client(address: tuple[str, int], sent: bytes) -> socket.socket:
    """A client that sends and does not read."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect(address)
    opened.sendall(sent)
    return opened


async def _begun(server: Running, count: int) -> None:
    await server.until(lambda: server.app.begun.count("/wait") == count)


@pytest.mark.parametrize(
    "sent",
    [
        get("/a"),
        MANY_HEADERS,
        get("/a", *("x: y" for _ in range(HEADERS_MAX - 1))),
        get("/a", *("xy: ab" for _ in range(HEADERS_MAX - 1))),
        get("/a", *(f"x{number}: {'y' * 500}" for number in range(HEADERS_MAX - 1))),
        b"GET /\xf0\x9f\x98\x80" + b"\xff" * 30_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        get("/%F0%9F%98%80" + "a" * 30_000),
        get("http://" + "a" * 60_000 + "/"),
        get("/" + "a" * 30_000 + "?" + "b" * 30_000),
    ],
)
def test_the_size_of_a_head_is_what_it_takes(sent: bytes) -> None:
    RequestHead(sent)  # what is allocated once
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        heads = [RequestHead(sent) for _ in range(10)]
        taken = (tracemalloc.get_traced_memory()[0] - before) / 10
    finally:
        tracemalloc.stop()
    assert taken <= heads[0].size
    assert heads[0].size <= 4 * taken, "close to what it takes"


def test_what_comes_behind_an_unfinished_request_is_counted_and_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    read = HeadReader.read

    def recorded(reader: HeadReader, given: bytes) -> RequestHead:
        parsed.append(given)
        return read(reader, given)

    monkeypatch.setattr(HeadReader, "read", recorded)

    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(WAITING)
            await _begun(server, 1)
            before = server.listener.held
            writer.write(BEHIND)
            await server.until(lambda: before + len(BEHIND) <= server.listener.held <= before + len(BEHIND) * 5 // 4)
            assert parsed == [WAITING]
            server.app.released.set()
            for _ in range(1 + BEHIND.count(MANY_HEADERS)):
                assert (await read_answer(reader))[0] == 200
            assert server.listener.held == 0

    run(scenario())


def test_what_comes_behind_unfinished_requests_has_the_budget() -> None:
    clients, held_max = 30, 100_000

    async def scenario() -> None:
        async with running(held_max=held_max) as server:
            opened = [client(server.address, WAITING) for _ in range(clients)]
            await _begun(server, clients)
            for one in opened:
                one.sendall(BEHIND)
            connections = list(server.listener._connections)
            await server.until(lambda: all(one._buffer or one._ended for one in connections))
            assert held_max // 3 < server.listener.held < held_max, "it is used, and not exceeded"
            server.app.released.set()
            assert (await server.exchange(get("/a"))).endswith(b"GET /a 0")
            for one in opened:
                one.close()
            await server.until(lambda: server.listener.held == 0)

    run(scenario())


def test_a_client_that_sends_ahead_is_read_no_further() -> None:
    async def scenario() -> None:
        async with running() as server:
            with client(server.address, WAITING) as sending:
                await _begun(server, 1)
                sending.setblocking(False)
                (connection,) = server.listener._connections
                while not connection._paused:
                    sending.send(BEHIND)
                    await asyncio.sleep(0)
                assert len(connection._buffer) > READ_AHEAD_MAX
                held = server.listener.held
                with suppress(BlockingIOError):  # the kernels take no more either
                    while True:
                        sending.send(BEHIND)
                for _ in range(20):
                    await asyncio.sleep(0)
                assert server.listener.held == held

    run(scenario())


def test_small_answers_that_are_not_read_are_counted() -> None:
    size = SMALL_ANSWER_SIZE - 1000

    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            await server.until(lambda: len(server.listener._connections) == 1)
            (connection,) = server.listener._connections
            while connection._output.stalled is None:
                writer.write(get(f"/big/{size}"))
                await asyncio.sleep(0)
            assert server.listener.held - len(connection._buffer) > size
            writer.transport.abort()
            await server.until(lambda: server.listener.held == 0)

    run(scenario())


def test_a_client_that_does_not_read_is_closed_when_there_is_no_room() -> None:
    async def scenario() -> None:
        async with running(held_max=1) as server:
            assert (await server.exchange(get("/a"))).endswith(b"GET /a 0"), "small requests are served"
            reader, writer = await server.connect()
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            await server.until(lambda: len(server.listener._connections) == 1)
            while server.listener._connections and not writer.is_closing():
                writer.write(get(f"/big/{SMALL_ANSWER_SIZE}"))
                await asyncio.sleep(0)
            await server.until(lambda: not server.listener._connections)
            assert server.listener.held == 0

    run(scenario())


def test_an_idle_connection_keeps_nothing_of_a_large_request() -> None:
    body = b"x" * 900_000

    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(get("/a", "x: " + "y" * 60_000))
            assert (await read_answer(reader))[0] == 200
            writer.write(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            assert (await read_answer(reader))[0] == 200
            (connection,) = server.listener._connections
            assert sys.getsizeof(connection._buffer) < 100
            assert server.listener.held == 0
            assert [connection._current, connection._reading, connection._task] == [None, None, None]

    run(scenario())


def test_few_connections_keep_their_last_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_module, "REMEMBERED_MAX", 3)

    async def scenario() -> None:
        async with running() as server:
            clients = [await server.connect() for _ in range(8)]
            for _ in range(2):
                for reader, writer in clients:
                    writer.write(get("/a"))
                    assert await read_answer(reader) == (200, b"GET /a 0")
                assert len(server.listener.remembering) == 3
            large, writer = await server.connect()
            writer.write(MANY_HEADERS)
            assert (await read_answer(large))[0] == 200
            assert all(one._head is not None and one._head.path == "/a" for one in server.listener.remembering)
            for _, writer in clients:
                writer.close()
            await server.until(lambda: not server.listener.remembering)

    run(scenario())


def test_a_body_in_pieces_is_kept_once() -> None:
    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(b"POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + b"x" * 200_000)
            await server.until(lambda: server.listener.held > 200_000)
            (connection,) = server.listener._connections
            request = connection._current
            assert request is not None
            writer.write(b"x" * 100_000)
            await server.until(lambda: len(server.app.bodies) == 1)
            assert server.app.bodies[0] is request.body_now(1 << 20)
            assert 300_000 < server.listener.held < 300_000 + SMALL_SIZE
            server.app.released.set()
            assert (await asyncio.wait_for(read_answer(reader), LIMIT_S))[0] == 200

    run(scenario())
