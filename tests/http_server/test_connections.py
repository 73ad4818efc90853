"""Real connections to a listener: requests however they are cut, and clients that misbehave."""

import asyncio
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.http_server.serving import LIMIT_S, get, read_answer, run, running

from icefall.server.response import PackedHeads, Response

POST = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"PUT /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n"
)


async def _closed(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server ends the connection."""
    try:
        return await asyncio.wait_for(reader.read(), LIMIT_S)
    except ConnectionError:
        return b""


@settings(max_examples=25)
@given(st.lists(st.sampled_from([get("/a"), POST, CHUNKED]), min_size=1, max_size=30), st.data())
def test_requests_are_the_same_however_they_are_cut(sent: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(sent)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=12)))
    answers = {get("/a"): b"GET /a 0", POST: b"POST /echo 5", CHUNKED: b"PUT /c 5"}

    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
                writer.write(whole[begin:end])
                await writer.drain()
                await asyncio.sleep(0)
            for one in sent:
                assert await read_answer(reader) == (200, answers[one])
            assert server.listener.held == 0

    run(scenario())


@pytest.mark.parametrize("body_max", [4, 1 << 20])
def test_a_request_with_the_head_of_the_last_one_has_its_own_body(body_max: int) -> None:
    """Whole requests in one piece are read in a shorter way from the second on."""
    head = POST.removesuffix(b"hello")
    bodies = [b"hello", b"world", b"12345"]

    async def scenario() -> None:
        async with running(body_max=body_max) as server:
            reader, writer = await server.connect()
            for body in bodies:
                writer.write(head + body)
                status, answer = await read_answer(reader)
                assert (status, answer == b"POST /echo 5") == ((200, True) if body_max > 5 else (413, False))
                assert server.app.bodies[-1:] == ([body] if body_max > 5 else [])
            writer.write(head + bodies[0] + head)  # more than one: the rest is not lost
            writer.write(bodies[1] + get("/a"))
            for _ in range(3):
                assert (await read_answer(reader))[0] in (200, 413)
            await server.until(lambda: server.listener.held == 0)

    run(scenario())


def test_heads_of_answers_do_not_mix() -> None:
    """Those of the last answer are kept, and used only for the same headers and status."""
    heads = PackedHeads()
    heads.set_date("now")
    plain, other = [("a", "b")], [("a", "c")]
    for status, headers in ((200, plain), (200, other), (503, other), (200, other), (200, plain), (200, plain)):
        begin = f"HTTP/1.1 {status} ".encode()
        packed = heads.pack(Response(status, headers, b""), 7)
        assert packed.startswith(begin)
        assert packed.endswith(b"\r\na: %b\r\ncontent-length: 7\r\ndate: now\r\n\r\n" % headers[0][1].encode())


def test_a_client_that_ends_its_input_gets_its_answers() -> None:
    async def scenario() -> None:
        async with running() as server:
            answer = await server.exchange(get("/a") + POST)
            assert answer.count(b"HTTP/1.1 200") == 2
            assert answer.endswith(b"POST /echo 5")
            assert (await server.exchange(POST[:-1])).startswith(b"HTTP/1.1 400")
            assert (await server.exchange(get("/a")[:-4])) == b""

    run(scenario())


def test_a_request_behind_another_that_breaks_off_is_not_executed() -> None:
    """Its bytes are parsed when the input has ended long ago."""

    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(get("/wait") + POST[:-1])
            writer.write_eof()
            await server.until(lambda: any(one._ended for one in server.listener._connections))
            server.app.released.set()
            answers = await _closed(reader)
            assert b"GET /wait 0HTTP/1.1 400 " in answers
            assert server.app.bodies == [b""]

    run(scenario())


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * (2 << 20), 431),
        (get("/", "X: " + "a" * (64 << 10)), 431),
        (get("/", *["X: a"] * 100), 431),
        (get("/", *["X: a"] * 10_000), 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc--0\r\n\r\n", 400),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 4096 + b"0\r\n\r\n",
            400,
        ),
        (b"POST / HTTP/1.1\r\nHost: a\r\n" + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n", 413),
    ],
)
def test_what_cannot_be_read_is_refused_and_the_connection_ends(sent: bytes, status: int) -> None:
    async def scenario() -> None:
        async with running() as server:
            answer = await server.exchange(sent)
            assert answer.startswith(b"HTTP/1.1 %d " % status)
            assert b"connection: close" in answer

    run(scenario())


def test_the_answers_before_what_cannot_be_read_are_sent() -> None:
    async def scenario() -> None:
        async with running() as server:
            answer = await server.exchange(get("/a") + b"NONSENSE\r\n\r\n")
            assert answer.count(b"HTTP/1.1 ") == 2
            assert b"GET /a 0HTTP/1.1 400 " in answer

    run(scenario())


def test_a_head_of_the_longest_size_is_read() -> None:
    long = get("/a", *["X: a"] * 98, "Y: ")

    async def scenario() -> None:
        async with running() as server:
            filled = long[:-4] + b"y" * ((64 << 10) - len(long) + 4) + long[-4:]
            for sent in (long, filled):
                assert (await server.exchange(sent)).endswith(b"GET /a 0")

    run(scenario())


@pytest.mark.parametrize("end", [b"\n", b"T\r\n", b" T: v\r\n", b"T : v\r\n", b"T: v\n\r\n", b"T: \0\r\n"])
def test_no_request_is_swallowed_as_trailers(end: bytes) -> None:
    """Trailers are read like headers: what another server reads as a request must not pass as one of them."""

    async def scenario() -> None:
        async with running() as server:
            chunked = b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
            answer = await server.exchange(chunked + end + get("/a"))
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert answer.count(b"HTTP/1.1 ") == 1
            assert server.app.bodies == []

    run(scenario())


def test_a_long_body_is_refused_before_it_is_sent() -> None:
    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n")
            assert (await read_answer(reader))[0] == 413
            reader, writer = await server.connect()
            writer.write(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), LIMIT_S) == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"hello")
            assert await read_answer(reader) == (200, b"POST /echo 5")

    run(scenario())


def test_http10_ends_the_connection_unless_asked_to_keep_it() -> None:
    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert (await read_answer(reader))[1] == b"GET /a 0"
            writer.write(b"GET /b HTTP/1.0\r\n\r\n")
            assert (await _closed(reader)).endswith(b"GET /b 0")

    run(scenario())


def test_silent_connections_make_room_for_others() -> None:
    async def scenario() -> None:
        async with running(connections_max=20) as server:
            silent = [await server.connect() for _ in range(60)]
            reader, writer = await server.connect()
            writer.write(get("/a"))
            assert await read_answer(reader) == (200, b"GET /a 0")
            assert await _closed(silent[0][0]) == b""  # the oldest

    run(scenario())


@pytest.mark.parametrize("begin", [b"", b"GET / HTT"])
def test_a_client_that_sends_no_head_is_closed(begin: bytes) -> None:
    async def scenario() -> None:
        async with running(head_s=0.2) as server:
            reader, writer = await server.connect()
            writer.write(begin)
            assert await _closed(reader) == b""

    run(scenario())


def test_an_idle_connection_is_closed() -> None:
    async def scenario() -> None:
        async with running(idle_s=0.2) as server:
            reader, writer = await server.connect()
            writer.write(get("/a"))
            assert await read_answer(reader) == (200, b"GET /a 0")
            assert await _closed(reader) == b""

    run(scenario())


def _stalling(address: tuple[str, int], size: int) -> socket.socket:
    """A client that asks for much and reads nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(address)
    client.sendall(get(f"/big/{size}"))
    return client


def test_a_client_that_does_not_read_is_closed_and_its_answer_freed() -> None:
    async def scenario() -> None:
        async with running(write_s=1) as server:
            with _stalling(server.address, 32 << 20):
                await server.until(lambda: server.listener.held > 1 << 20)
                await server.until(lambda: server.listener.held == 0)

    run(scenario())


def test_unread_answers_have_a_budget_and_small_ones_are_still_sent() -> None:
    async def scenario() -> None:
        async with running(held_max=40 << 20) as server:
            with _stalling(server.address, 32 << 20):
                await server.until(lambda: server.listener.held > 20 << 20)
                refused = await server.exchange(get(f"/big/{32 << 20}"))
                assert refused.startswith(b"HTTP/1.1 503 ")
                assert b"retry-after: 1" in refused
                assert (await server.exchange(get("/a"))).endswith(b"GET /a 0")

    run(scenario())


def test_bodies_being_received_have_the_same_budget() -> None:
    async def scenario() -> None:
        async with running(held_max=100_000) as server:
            post = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n"
            reader, writer = await server.connect()
            writer.write(post + b"x" * 200_000)
            assert (await read_answer(reader))[0] == 503
            await server.until(lambda: server.listener.held == 0)
            assert (await server.exchange(POST)).endswith(b"POST /echo 5")

    run(scenario())


def test_urgent_requests_do_not_wait_for_others() -> None:
    async def scenario() -> None:
        async with running() as server:
            others = [await server.connect() for _ in range(200)]
            urgent, sender = await server.connect()
            for _, writer in others:
                writer.write(get("/a"))
            sender.write(get("/urgent"))
            for reader, _ in [*others, (urgent, sender)]:
                assert (await read_answer(reader))[0] == 200
            # Those that came in the same turn of the loop may have begun before it, not all that came before it.
            assert server.app.begun.index("/urgent") < 150

    run(scenario())


def test_too_many_requests_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefall.server.listener.RUNNING_MAX", 3)

    async def scenario() -> None:
        async with running() as server:
            waiting = [await server.connect() for _ in range(3)]
            for _, writer in waiting:
                writer.write(get("/wait"))
            await server.until(lambda: len(server.app.begun) == 3)
            assert (await server.exchange(get("/a"))).startswith(b"HTTP/1.1 503 ")
            assert (await server.exchange(get("/urgent"))).startswith(b"HTTP/1.1 200 ")
            server.app.released.set()
            for reader, _ in waiting:
                assert (await read_answer(reader))[0] == 200

    run(scenario())


def test_a_stream_is_sent_as_it_comes_and_ends_with_its_client() -> None:
    async def scenario() -> None:
        async with running() as server:
            gone, leaver = await server.connect()
            leaver.write(get("/stream"))
            assert b"chunked" in await asyncio.wait_for(gone.readuntil(b"\r\n\r\n5\r\nfirst\r\n"), LIMIT_S)
            leaver.transport.abort()
            await server.until(lambda: server.app.streams_ended == 1)
            reader, writer = await server.connect()
            writer.write(get("/stream"))
            await asyncio.wait_for(reader.readuntil(b"5\r\nfirst\r\n"), LIMIT_S)
            server.app.released.set()
            assert await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), LIMIT_S) == b"6\r\nsecond\r\n0\r\n\r\n"
            writer.write(get("/a"))
            assert await read_answer(reader) == (200, b"GET /a 0")

    run(scenario())


def test_a_header_with_a_line_break_is_never_sent() -> None:
    async def scenario() -> None:
        async with running() as server:
            reader, writer = await server.connect()
            writer.write(get("/bug"))
            assert await _closed(reader) == b""
            assert server.reported == ["GET /bug: a header with a line break"]

    run(scenario())


def test_a_stop_lets_requests_finish() -> None:
    async def scenario() -> None:
        async with running() as server:
            idle, _ = await server.connect()
            reader, writer = await server.connect()
            writer.write(get("/wait"))
            await server.until(lambda: server.app.begun == ["/wait"])
            server.stop.set()
            assert await _closed(idle) == b""
            server.app.released.set()
            answer = await _closed(reader)
            assert answer.endswith(b"GET /wait 0")
            assert b"connection: close" in answer

    run(scenario())
